/**
 * Tests how the public log detects that Postgres was restored to an older state, or that a copy of the
 * installation signs with the same key.
 */

import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { checkpointText, parseCheckpoint } from '../../../src/domain/publicLog/checkpoints.js';
import { parseNote, signatureLine, signerOf, vkeyOf } from '../../../src/domain/publicLog/notes.js';
import { Policy } from '../../../src/domain/publicLog/policy.js';
import { newTiles, recordsOf, tilePath } from '../../../src/domain/publicLog/tiles.js';
import { leafHash, MemoryTree } from '../../../src/domain/publicLog/tree.js';
import { giveCopyUp } from '../../../src/engine/recovery/outsideCopies.store.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { hashOfOrigin } from '../../../src/publicLog/log/forkEvidence.js';
import { serveWitness } from '../../../src/publicLog/witness/serving.js';
import { WitnessState } from '../../../src/publicLog/witness/witnessState.js';
import { constants } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';
import {
  checkpoint,
  ends,
  flushRedis,
  folder,
  keepDatabase,
  key,
  logged,
  noteInCopy,
  noteInRedis,
  ORIGIN,
  openPartner,
  partner,
  restoreDatabase,
  run,
  service,
  sizeOf,
  spin,
  sql,
  start,
  statusz,
  stores,
  untilMissing,
  useFreshStores,
} from './restoredLog.js';

const witnessKey = signerOf('witness.example/w1', 'witness', Buffer.alloc(32, 22));

useFreshStores();

/** Creates games, so that the log grows, and spins each of them. */
async function play(games: number): Promise<number[]> {
  const ids: number[] = [];
  for (let i = 0; i < games; i++) {
    const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
    ids.push(gameId);
    for (let n = 0; n < 3; n++) expect((await spin(gameId)).status).toBe(200);
  }
  return ids;
}

/**
 * Deals outcomes, then restores an older copy of the database, which lacks the newest games and published
 * checkpoints.
 * @param kept reads the newest note that is stored outside Postgres
 */
async function restored(more: NodeJS.ProcessEnv, kept: () => Promise<string>): Promise<void> {
  await run(more);
  await openPartner(100);
  await play(2);
  await service.running.stop();
  await keepDatabase();
  await run(more);
  await play(2);
  await until(
    async () => (await kept()).startsWith(parseNote(await checkpoint()).text),
    'it is known outside',
  );
  await service.running.stop();
  await restoreDatabase();
}

/** Checks that nothing is dealt, appended or signed, and that the reason is reported. */
async function expectHeld(games: readonly number[], from: string): Promise<void> {
  const before = await logged();
  const problem = `records, but the log has only ${before.size} \\(${from}\\)`;
  const command = 'run `spindle log import --from DIR\\|URL`';
  await untilMissing(new RegExp(`log: a checkpoint with our signature has \\d+ ${problem}: ${command}`));
  for (const gameId of games) {
    const answer = await spin(gameId);
    expect([answer.status, answer.body.errorCode]).toEqual([503, 'KS-5002']);
  }
  expect(service.lines).toContainEqual(
    expect.objectContaining({
      level: 60,
      msg: 'public log is older than its published copies, dealing stopped',
      reason: expect.stringMatching(/spindle log import .*spindle log begin/),
    }),
  );
  const signed = await sql<{ size: string }[]>`SELECT size FROM log_checkpoints WHERE size > ${before.size}`;
  expect([...signed]).toEqual([]);
  expect(await logged()).toMatchObject({ size: before.size, is_held: true });
  const entries = await sql`SELECT actor, action FROM audit_log WHERE action = 'log.halt'`;
  expect([...entries]).toEqual([{ actor: 'worker', action: 'log.halt' }]);
}

const games = async (): Promise<number[]> =>
  (await sql<{ game_id: number }[]>`SELECT game_id FROM games`).map((row) => row.game_id);

describe('detecting a restore of Postgres to an older state', () => {
  test('detects a restore of Postgres by the note in Redis, unless Redis was emptied as well', async () => {
    await restored({}, noteInRedis);
    await run();
    await expectHeld(await games(), 'Redis');
    // A later start finds the halt in Postgres, because Redis may no longer have the evidence.
    await service.running.stop();
    await flushRedis();
    await run();
    await untilMissing(/log: a checkpoint (of|with) /);
    await service.running.stop();
    await restoreDatabase();
    await run();
    await until(async () => (await statusz()).status === 200, 'it deals: nothing tells of a later state');
    expect(await logged()).toMatchObject({ halt: null });
  });

  test('detects a restore of Postgres by the files in LOG_COPY_DIR', async () => {
    const more = { LOG_COPY_DIR: join(folder, 'copy') };
    await restored(more, noteInCopy);
    await flushRedis();
    const note = await noteInCopy();
    await run(more);
    await expectHeld(await games(), 'LOG_COPY_DIR');
    expect(await noteInCopy()).toBe(note);
  });

  test('detects a restore of Postgres by a witness', async () => {
    const state = new WitnessState(join(folder, 'w1'), witnessKey);
    const policy = new Policy(`log ${vkeyOf(key)}\nquorum none\n`);
    const server = await serveWitness({ policy, state, host: '127.0.0.1', port: 0, say: () => {} });
    ends.push(() => server.close());
    const path = join(folder, 'policy.txt');
    await writeFile(path, `witness w1 ${vkeyOf(witnessKey)} http://127.0.0.1:${server.port}\nquorum none\n`);
    const more = { LOG_POLICY: path, ...constants({ logBatchMs: 1, logCosignMs: 50 }) };
    const shown = async (): Promise<string> =>
      (await fetch(`http://127.0.0.1:${server.port}/${hashOfOrigin(ORIGIN)}/checkpoint`)).text();
    await restored(more, shown);
    await flushRedis();
    await run(more);
    await expectHeld(await games(), 'witness w1');
  });
});

describe('copies of the public log', () => {
  test('completes the files in LOG_COPY_DIR after each publication, even if the folder was removed', async () => {
    const copy = join(folder, 'copy');
    await run({ LOG_COPY_DIR: copy });
    await openPartner(100);
    await play(2);
    await expectWhole(copy);
    const vanished = () => service.metric('spindle_outside_copies_vanished_total{setting="LOG_COPY_DIR"}');
    expect(await vanished()).toBe(0);
    // A file is in the place of the folder, so the copy of the log can't be written. The service must not
    // wait for it.
    let tries = 0;
    await until(async () => {
      await rename(copy, `${copy}-away-${++tries}`);
      // The worker may create the folder again in between.
      return writeFile(copy, '').then(
        () => true,
        () => false,
      );
    }, 'a file is there');
    await play(1);
    await until(
      async () => (await service.metric('spindle_log_copy_behind_seconds')) > 0,
      'the metric tells that it is behind',
    );
    await rm(copy);
    await until(
      async () => (await service.metric('spindle_log_copy_behind_seconds')) === 0,
      'it has caught up',
    );
    expect(await vanished()).toBeGreaterThanOrEqual(1);
    await expectWhole(copy);
    // Once a tile is full, its partial versions are gone.
    await fill(300);
    await expectWhole(copy);
    expect(await readdir(join(copy, 'tile', 'entries'))).toEqual(['000', '001.p']);
  });

  test('deals nothing after a start without the recorded LOG_COPY_DIR, until an operator gives up the copy', async () => {
    const copy = join(folder, 'copy');
    const more = { LOG_COPY_DIR: copy };
    await run(more);
    await openPartner(100);
    const [gameId] = await play(1);
    await until(
      async () => (await sql`SELECT 1 FROM outside_copies WHERE setting = 'LOG_COPY_DIR'`).length === 1,
      'Postgres has the copy on record',
    );
    await service.running.stop();
    await rm(copy, { recursive: true });
    for (const settings of [{}, more]) {
      await run(settings);
      await untilMissing(
        /LOG_COPY_DIR .*Postgres has on record a copy of the public log .*spindle log begin/,
      );
      expect((await spin(gameId!)).body.errorCode).toBe('KS-5002');
      await service.running.stop();
    }
    await run(more);
    await untilMissing(/is missing/);
    const books = connectPostgres(stores.databaseUrl, { max: 1, name: 'test', onError: () => {} });
    ends.push(() => books.end());
    expect(await giveCopyUp(books, 'LOG_COPY_DIR')).toBe(true);
    await until(async () => (await statusz()).status === 200, 'it is ready without a restart');
    await play(1);
    await expectWhole(copy);
  });

  test('does not halt the log for two concurrent workers, a restart, or a start with an emptied Redis', async () => {
    const more = { LOG_COPY_DIR: join(folder, 'copy') };
    await run(more);
    const other = await start(more);
    await openPartner(100);
    await Promise.all([play(4), play(4)]);
    await other.running.stop();
    await service.running.stop();
    await run(more);
    await play(1);
    await service.running.stop();
    await flushRedis();
    await run(more);
    await play(1);
    expect(await logged()).toMatchObject({ halt: null, is_held: false });
    expect(service.lines.filter(({ level }) => Number(level) >= 60)).toEqual([]);
  });

  test("leaves the copy of another database's log in LOG_COPY_DIR untouched", async () => {
    const copy = join(folder, 'copy');
    await mkdir(copy);
    const root = new MemoryTree([leafHash(Buffer.from('other'))]).root();
    const text = checkpointText({ origin: 'other.example/log', size: 1, root });
    const note = `${text}\n${signatureLine(text, signerOf('other.example/log', 'log', Buffer.alloc(32, 9)))}`;
    await writeFile(join(copy, 'checkpoint'), note);
    await run({ LOG_COPY_DIR: copy });
    await until(
      async () => service.lines.some(({ msg }) => msg === 'public log copy failed, will retry'),
      'it is said',
    );
    expect(await readFile(join(copy, 'checkpoint'), 'utf8')).toBe(note);
    await until(async () => (await statusz()).status === 200, 'it is ready');
  });
});

/** Appends a number of records without a game to the log. */
async function fill(records: number): Promise<void> {
  await sql`
    INSERT INTO log_notices (name, body)
    SELECT 'fill ' || n, jsonb_build_object('type', 'program', 'at', n::text) FROM generate_series(1, ${records}) n`;
  const waiting = () => sql`SELECT 1 FROM log_notices WHERE log_index IS NULL LIMIT 1`;
  await until(async () => (await waiting()).length === 0, 'the log has them');
}

/** Checks that the folder has the newest published note and each tile and record of its tree. */
async function expectWhole(copy: string): Promise<void> {
  let note = '';
  await until(async () => {
    note = await checkpoint();
    const size = (await logged()).size;
    return (
      String(sizeOf(note)) === size &&
      (await readFile(join(copy, 'checkpoint'), 'utf8').catch(() => '')) === note
    );
  }, 'the copy has what is published');
  const { size, root } = parseCheckpoint(parseNote(note).text);
  const tree = new MemoryTree();
  for (const place of newTiles(0, size)) {
    const bytes = await readFile(join(copy, tilePath(place)));
    expect(
      bytes.equals(Buffer.from(await (await fetch(`${service.base}/log/${tilePath(place)}`)).arrayBuffer())),
    ).toBe(true);
    if (place.level === 'entries') for (const record of recordsOf(bytes)!) tree.append(leafHash(record));
  }
  expect(tree.root(size).equals(root)).toBe(true);
}

test('a note of another tree halts the log permanently while a worker runs, but logged blocks are dealt', async () => {
  await run();
  await openPartner(100);
  const [gameId] = await play(1);
  // A copy of this installation has another history and uses the same Redis.
  const size = Number((await logged()).size) + 5;
  const text = checkpointText({ origin: ORIGIN, size, root: Buffer.alloc(32, 1) });
  const redis = new Redis(stores.redisUrl, { protocol: 2 });
  await redis.hset(
    `spindle:log:${hashOfOrigin(ORIGIN)}`,
    String(size),
    `${text}\n${signatureLine(text, key)}`,
  );
  redis.disconnect();
  await until(async () => (await logged()).halt !== null, 'the log is halted');
  expect(await logged()).toMatchObject({ is_held: false });
  const before = (await logged()).size;
  expect((await spin(gameId!)).status).toBe(200);
  await until(async () => (await statusz()).status === 200, 'it is ready');
  await until(async () => (await service.metric('spindle_log_halted')) === 1, 'the metric tells it');
  await sql`INSERT INTO log_notices (name, body) VALUES ('waits', '{"type": "program", "at": ""}')`;
  await until(async () => (await service.metric('spindle_log_waiting_seconds')) > 1, 'it waits');
  expect((await logged()).size).toBe(before);
  await service.running.stop();
  await flushRedis();
  await run();
  await untilMissing(/log: a checkpoint (of|with) /);
  expect((await logged()).size).toBe(before);
});
