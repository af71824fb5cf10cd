/**
 * Tests how a public log continues from the mirror of a witness, from a copy with many more records than
 * Postgres, and with a key stored in Postgres.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseNote, parseVkey, signerOf, signersOf, vkeyOf } from '../../../src/domain/publicLog/notes.js';
import { Policy } from '../../../src/domain/publicLog/policy.js';
import { Pulling } from '../../../src/publicLog/witness/pulling.js';
import { WitnessState } from '../../../src/publicLog/witness/witnessState.js';
import { verify } from '../../../verifier/verify.mjs';
import { auditFindings } from '../../support/communal.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';
import {
  checkpoint,
  flushRedis,
  folder,
  keepDatabase,
  key,
  logged,
  noteInCopy,
  openPartner,
  partner,
  restoreDatabase,
  run,
  service,
  sizeOf,
  spin,
  spindleLog,
  sql,
  statusz,
  stores,
  useFreshStores,
} from './restoredLog.js';

useFreshStores();

const sheet = parSheet('classic-3-reel');
let slot: number;
/** A spin that the restored database contains. */
let kept: { spinId: string };

async function play(): Promise<void> {
  const { status, text, body } = await spin(slot);
  expect(status, text).toBe(200);
  kept = body as unknown as { spinId: string };
  await until(async () => (await service.metric('spindle_outbox_entries')) === 0, 'all is booked');
}

/**
 * Deals outcomes, saves the database, appends more records to the log, and restores the saved database.
 * @returns the newest signed note
 */
async function restored(
  more: NodeJS.ProcessEnv,
  log: () => Promise<unknown>,
  isKnown: () => Promise<string>,
): Promise<string> {
  await run(more);
  await openPartner(1000);
  slot = await service.newGame(partner.key, sheet);
  await play();
  await service.running.stop();
  await keepDatabase();
  await run(more);
  const before = sizeOf(await checkpoint());
  await log();
  await until(async () => {
    const [row] = await sql`SELECT count(*)::int AS n FROM log_entries WHERE log_index IS NULL`;
    return row!.n === 0 && sizeOf(await checkpoint()) > before;
  }, 'more is published');
  await until(
    async () => (await isKnown()).startsWith(parseNote(await checkpoint()).text),
    'it is known outside',
  );
  const note = await checkpoint();
  await service.running.stop();
  await restoreDatabase();
  return note;
}

async function expectGoesOn(more: NodeJS.ProcessEnv, note: string): Promise<void> {
  await until(async () => (await statusz()).status === 200, 'it goes on');
  await until(async () => (await spin(slot)).status === 200, 'the slot has its next block');
  expect(sizeOf(await checkpoint())).toBeGreaterThan(sizeOf(note));
  const proof = await service.request('GET', `/api/partner/v1/spins/${kept.spinId}/proof`, {
    key: partner.key,
  });
  expect(await verify(proof.body, { logKeys: [vkeyOf(key)] })).toEqual([]);
  await until(async () => (await service.metric('spindle_outbox_entries')) === 0, 'all is booked');
  expect(await auditFindings(stores)).toEqual([]);
  await service.running.stop();
  await run(more);
  expect((await statusz()).status).toBe(200);
  expect(await logged()).toMatchObject({ halt: null });
}

test('continues a public log after an import of the mirror of a pulling witness', async () => {
  const mirror = join(folder, 'mirror');
  const state = new WitnessState(
    join(folder, 'witness'),
    signerOf('witness.example/w1', 'witness', Buffer.alloc(32, 22)),
  );
  const policy = new Policy(`log ${vkeyOf(key)}\nquorum none\n`);
  const pulled = async (): Promise<string> => {
    await new Pulling({ policy, state, url: `${service.base}/log`, mirror, say: () => {} }).look();
    return readFile(join(mirror, 'checkpoint'), 'utf8');
  };
  const rotate = () => service.operator('POST', `/games/${slot}/rotate`, { reason: 'more is logged' });
  const note = await restored({}, rotate, pulled);
  await run();
  expect((await statusz()).missing).toContain('spindle log import');
  const done = await spindleLog({}, 'import', '--from', mirror, '--yes');
  expect(done.status, done.out).toBe(0);
  await expectGoesOn({}, note);
});

test('continues a public log after an import of more records than fit into one step', async () => {
  const more = { LOG_COPY_DIR: join(folder, 'copy') };
  const many = 17_000;
  const log = () => sql`
    WITH g AS (UPDATE log_games SET next_number = next_number + ${many} WHERE game_id = ${slot} RETURNING next_number - ${many} AS first)
    INSERT INTO log_entries (game_id, number, kind, from_index, to_index, at, reason)
    SELECT ${slot}, first + n, 4, 1000000000 + n, 1000000001 + n, now(), 'many' FROM g, generate_series(0, ${many - 1}::int) n`;
  const note = await restored(more, log, noteInCopy);
  await flushRedis();
  await run(more);
  const done = await spindleLog(more, 'import', '--from', more.LOG_COPY_DIR, '--yes');
  expect(done.status, done.out).toBe(0);
  expect(done.out.match(/^imported \d+ of \d+ records$/gm)).toHaveLength(2);
  const [lost] = await sql<{ numbers: number }[]>`
    SELECT (to_index - from_index + 1)::int AS numbers FROM log_entries WHERE game_id = ${slot} AND kind = 5`;
  expect(lost!.numbers).toBeGreaterThanOrEqual(many);
  await expectGoesOn(more, note);
});

test('starts a new public log with a generated key that is stored in Postgres, while the service runs', async () => {
  const more = { LOG_KEY: undefined, LOG_ORIGIN: undefined };
  await run(more);
  await openPartner(1000);
  slot = await service.newGame(partner.key, sheet);
  await play();
  const [old] = await sql<{ vkeys: string[]; signer: string }[]>`SELECT vkeys, signer FROM logs`;
  const origin = 'spindle.example/kept-in-postgres';
  const begun = await spindleLog(more, 'begin', '--origin', origin, '--reason', 'a key was stolen', '--yes');
  expect(begun.status, begun.out).toBe(0);
  const rows = await sql<{ origin: string; vkeys: string[]; signer: string | null; is_replaced: boolean }[]>`
    SELECT origin, vkeys, signer, is_replaced FROM logs ORDER BY log_id`;
  expect(rows).toMatchObject([{ is_replaced: true }, { origin, is_replaced: false }]);
  const { vkeys, signer } = rows[1]!;
  expect(signer).not.toBeNull();
  expect(signer).not.toBe(old!.signer);
  expect(vkeys).not.toEqual(old!.vkeys);
  const signedBy = async (vkey: string): Promise<boolean> =>
    signersOf(parseNote(await checkpoint()), [parseVkey(vkey)]).length > 0;
  await until(() => signedBy(vkeys[0]!), 'the worker signs with the new key');
  await service.running.stop();
  await run(more);
  await play();
  expect(await signedBy(vkeys[0]!)).toBe(true);
  const proof = await service.request('GET', `/api/partner/v1/spins/${kept.spinId}/proof`, {
    key: partner.key,
  });
  expect(await verify(proof.body, { logKeys: [vkeys[0]!] })).toEqual([]);
  expect(await auditFindings(stores)).toEqual([]);
});
