/** Tests the output and the exit status of `spindle verify`. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, test, vi } from 'vitest';
import { UsageError } from '../../src/cli/command.js';
import { verifyProofFile } from '../../src/cli/verifyProof.js';
import { readVectors } from '../domain/publicLog/proofVectors.js';

const { proof, log, witness } = readVectors();
const folder = mkdtempSync(join(tmpdir(), 'spindle-verify-'));
afterAll(() => rmSync(folder, { recursive: true }));
const file = (name: string, value: unknown): string => {
  const path = join(folder, name);
  writeFileSync(path, typeof value === 'string' ? value : JSON.stringify(value));
  return path;
};
const good = file('proof.json', proof);
let out = '';
beforeEach(() => {
  out = '';
});
async function run(path: string, options: Parameters<typeof verifyProofFile>[1]): Promise<number> {
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    out += text;
    return true;
  });
  try {
    return await verifyProofFile(path, options);
  } finally {
    write.mockRestore();
  }
}

test("spindle verify confirms a valid proof, and says that it can't tell since when the record was logged", async () => {
  expect(await run(good, { logKey: log.vkey })).toBe(0);
  expect(out).toMatch(
    /^PROVEN: spin 0{2}1{2}[^\n]+, game 7, log index 1\n {2}Logged: [^\n]* The proof alone can't show since when: a checkpoint [^\n]*\(--seen\), or a witness/,
  );
});

test('spindle verify claims no more of a saved checkpoint than that the record was logged before it was saved', async () => {
  const seen = [file('seen', log.checkpoint3)];
  const policy = file('policy', `log ${log.vkey}\nwitness w ${witness.vkey}\nquorum w\n`);
  expect(await run(good, { policy, seen })).toBe(0);
  expect(out).toContain(
    'Fixed before you saved the checkpoint of 3 records. That proves something only if you saved it before the bet.',
  );
});

test('spindle verify names every fault of a proof', async () => {
  const broken = file('broken.json', { ...proof, logIndex: 2, outcome: { ...proof.outcome, code: 4 } });
  expect(await run(broken, { logKey: log.vkey })).toBe(1);
  expect(out.split('\n')).toEqual([
    'NOT PROVEN',
    '  logged: logIndex is 2, but tlogProof has the index 1',
    '  outcome: the outcome is not in the logged block',
    '',
  ]);
  expect(await run(broken, { logKey: log.vkey, json: true })).toBe(1);
});

test.each([
  ['no key', good, {}],
  ['a wrong key', good, { logKey: 'x' }],
  ['no file', join(folder, 'absent'), { logKey: log.vkey }],
  ['no JSON', file('no.json', '{'), { logKey: log.vkey }],
  ['a wrong address', good, { logKey: log.vkey, url: 'ftp://x' }],
])('spindle verify reports wrong usage with %s', async (_, path, options) => {
  await expect(run(path, options)).rejects.toThrow(UsageError);
});
