/** Tests `spindle compliance report`, which writes the files that an auditor needs, with an auditor's key. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { beforeAll, expect, test } from 'vitest';
import { world } from '../setup/world.js';
import { openToOthers } from '../support/openToOthers.js';
import { cliOf, ROOT } from '../support/root.js';
import { parSheet } from '../support/sheets.js';
import { until } from '../support/wait.js';

type Json = Record<string, unknown>;

const { stores, service } = world();
let gameId: number;
let keys: string[];
const folder = mkdtempSync(join(tmpdir(), 'spindle-compliance-'));
const day = new Date().toISOString().slice(0, 10);

beforeAll(async () => {
  const partner = await service.newPartner();
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  for (let i = 0; i < 5; i++)
    expect((await service.spin(partner.key, { gameId, playerId: 'p', wagerUsd: 0.25 })).status).toBe(200);
  // The audit log has more entries than one page.
  for (let i = 0; i < 120; i++)
    await service.operator('PATCH', `/partners/${partner.partnerId}`, { largeWinThresholdUsd: 100 + i });
  const { body } = await service.operator('POST', '/operators', { name: 'audrey', role: 'auditor' });
  keys = [body.apiKey as string, partner.key];
  const reported = () => service.operator<{ noActivity: boolean }>('GET', '/reports/games?interval=DTD');
  await until(async () => !(await reported()).body.noActivity, 'the spins are booked');
  await service.operator('POST', `/partners/${partner.partnerId}/settlements/${day}`);
});

async function report(...args: string[]): Promise<{ status: number; out: string; error: string }> {
  const words = [cliOf(ROOT), 'compliance', 'report', ...args];
  const env = { PATH: process.env.PATH, SPINDLE_URL: service.base, OPERATOR_API_KEY: keys[0] };
  const child = spawn(process.execPath, words, { env });
  let [out, error] = ['', ''];
  child.stdout.on('data', (text: Buffer) => {
    out += text;
  });
  child.stderr.on('data', (text: Buffer) => {
    error += text;
  });
  const [status] = (await once(child, 'close')) as [number];
  return { status, out, error };
}

test('spindle compliance report writes each file with its hash, and no key', async () => {
  const out = join(folder, 'today');
  const made = await report('--from', day, '--to', day, '--out', out, '--json');
  expect(made.status, made.error).toBe(0);
  const index = JSON.parse(readFileSync(join(out, 'index.json'), 'utf8')) as {
    files: { file: string; rows: number; bytes: number; sha256: string }[];
  };
  expect(JSON.parse(made.out)).toEqual(index);
  expect(openToOthers(out)).toEqual([]);
  expect(index.files.map(({ file }) => file).sort()).toEqual(
    readdirSync(out)
      .filter((name) => name !== 'index.json')
      .sort(),
  );
  const rows = new Map<string, Json[]>();
  for (const { file, bytes, sha256, ...of } of index.files) {
    const content = readFileSync(join(out, file));
    expect([content.length, createHash('sha256').update(content).digest('hex')]).toEqual([bytes, sha256]);
    const lines = content.toString().split('\n').slice(0, -1);
    expect(lines).toHaveLength(of.rows);
    for (const key of keys) expect(content.includes(key), file).toBe(false);
    rows.set(
      file,
      lines.map((line) => JSON.parse(line)),
    );
  }
  expect(rows.get('games.jsonl')).toMatchObject([
    { report: 'games', from: day, to: day, totals: { spins: 5 } },
    { gameConfigId: gameId, spins: 5, wageredUsd: 1.25 },
  ]);
  expect(rows.get('settlements.jsonl')).toMatchObject([
    { reportDate: day, logCheckpoint: expect.any(String) },
  ]);
  expect(rows.get('returns.jsonl')).toMatchObject([{ gameConfigId: gameId }]);
  const { body } = await service.operator<{ total: number }>('GET', '/audit-log');
  const ids = rows.get('audit-log.jsonl')!.map(({ auditId }) => auditId as number);
  expect(ids).toEqual(Array.from({ length: ids.length }, (_, i) => ids[0]! - i));
  expect(ids.at(-1)).toBe(1);
  expect(ids.length).toBeLessThanOrEqual(body.total);
  expect(ids.length).toBeGreaterThan(120);
  const books = postgres(stores.databaseUrl, { max: 1 });
  const chain = await books<{ hash: string }[]>`
    SELECT encode(hash, 'hex') AS hash FROM audit_log WHERE audit_id <= ${ids[0]!} ORDER BY audit_id DESC`;
  await books.end();
  expect(rows.get('audit-log.jsonl')!.map(({ hash }) => hash)).toEqual(chain.map(({ hash }) => hash));
  const version = await service.partner('GET', '/version', keys[1]!);
  // The installed packages are checked up to a minute after the start.
  const ofProgram = rows.get('program.jsonl')!.filter(({ part }) => part === 'program');
  expect(ofProgram).toMatchObject([
    { part: 'program', isStart: true, version: version.body.version, manifest: version.body.manifest },
  ]);
});

test('spindle compliance report writes games with zeros for days without play, and overwrites nothing', async () => {
  const out = join(folder, 'past');
  const wanted = ['--from', '2020-01-01', '--to', '2020-01-31', '--out', out];
  expect((await report(...wanted)).status).toBe(0);
  const read = (file: string): string => readFileSync(join(out, file), 'utf8');
  expect(JSON.parse(read('games.jsonl').split('\n')[0]!)).toMatchObject({ noActivity: true });
  for (const file of ['events', 'audit-log', 'settlements', 'program'])
    expect(read(`${file}.jsonl`)).toBe('');
  const before = read('index.json');
  expect(await report(...wanted)).toMatchObject({
    status: 2,
    error: expect.stringContaining('must be empty'),
  });
  expect(read('index.json')).toBe(before);
  for (const days of [
    ['--from', '2026-02-30', '--to', day],
    ['--from', '2026-02-02', '--to', '2026-02-01'],
    ['--from', day],
  ])
    expect((await report(...days, '--out', join(folder, 'none'))).status).toBe(2);
});
