/** Tests that this version of the service takes over the stores of version 1.4.0. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { Client as Pg } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SpinBody as Schema } from '../../src/api/spins/contract.js';
import { FORMATS } from '../../src/domain/formats.js';
import { poolFaults, type RevealedPool } from '../../src/domain/games/rafflePool.js';
import { ENTRY_KINDS } from '../../src/domain/ledgerEntry.js';
import { cellKey } from '../../src/engine/redis/keys.js';
import { freshStores } from '../setup/freshStores.js';
import { movePartner } from '../support/moves.js';
import { untilReleased } from '../support/requestSegments.js';
import { cliOf, ROOT } from '../support/root.js';
import { deal } from '../support/rounds.js';
import { startService } from '../support/service.js';
import type { TestStores } from '../support/stores.js';
import { until } from '../support/wait.js';
import { type Answers, HELD_FORMAT, HELD_SETTINGS, readAnswers, restoreHeld, type SpinBody } from './held.js';

const SPINS = 50;

let stores: TestStores;
let redis: Redis;
let pg: Pg;
let held: Answers;
let freshSchema: string[];
let service: Awaited<ReturnType<typeof startService>>;
/** Prize names of the tickets that were sold after the upgrade. */
const won: string[] = [];
const spunSince: { body: SpinBody; text: string }[] = [];

beforeAll(async () => {
  // The empty stores, with whose schema the upgraded schema is compared, are made before the held data is
  // restored, because making stores empties the Redis database of this test worker.
  const fresh = await freshStores();
  const other = new Pg({ connectionString: fresh.databaseUrl });
  await other.connect();
  freshSchema = await schemaOf(other);
  await other.end();
  await fresh.drop();
  stores = await freshStores({ hasSchema: false });
  redis = new Redis(stores.redisUrl, { protocol: 2 });
  pg = new Pg({ connectionString: stores.databaseUrl });
  await pg.connect();
  held = await readAnswers();
  await restoreHeld(redis, pg);
  service = await startService(stores, HELD_SETTINGS);
  // A response to a replay proves that the cell is open and that the front end has read the request ids.
  await until(async () => (await spin(held.sent[0]!.body)).status === 200, 'spins are answered');
});

afterAll(async () => {
  await service?.stop();
  await pg.end();
  redis.disconnect();
  await stores.drop();
});

const spin = (body: SpinBody) =>
  service.spin<{ errorCode?: string; spinId: string; presentation: { prizeName: string } }>(
    held.apiKey,
    body,
  );
const get = async (path: string): Promise<string> => (await service.partner('GET', path, held.apiKey)).text;
const outboxEntries = async (): Promise<number> => {
  const cells = Array.from({ length: Number(HELD_SETTINGS.CELLS) }, (_, cell) =>
    redis.xlen(`{c${cell}}:outbox`),
  );
  return (await Promise.all(cells)).reduce((sum, length) => sum + length, 0);
};
const count = async (query: string): Promise<number> =>
  Number((await pg.query<{ rows: string }>(query)).rows[0]!.rows);
const ledgerRows = () => count('SELECT count(*) AS rows FROM ledger');
const ticketsRemaining = async (): Promise<number> =>
  (await service.operator<{ ticketsRemaining: number }>('GET', `/games/${held.raffleId}`)).body
    .ticketsRemaining;

/**
 * Returns columns, constraints, indexes, triggers and functions of a database, without partitions and the
 * records of migrations.
 */
async function schemaOf(client: Pg): Promise<string[]> {
  const { rows } = await client.query<{ line: string }>(`
    WITH tables AS (
      SELECT c.oid, relname FROM pg_class c
      WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v') AND NOT relispartition
        AND relname NOT IN ('migrations', 'schema_migrations'))
    SELECT concat_ws(' ', relname, attname, format_type(atttypid, atttypmod), attcollation::regcollation, attnotnull, attidentity,
                     attgenerated, attstorage, pg_get_expr(adbin, adrelid)) AS line
      FROM tables t JOIN pg_attribute a ON attrelid = t.oid AND attnum > 0 AND NOT attisdropped
      LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    UNION ALL SELECT concat_ws(' ', relname, conname, pg_get_constraintdef(c.oid)) FROM tables t JOIN pg_constraint c ON conrelid = t.oid WHERE contype <> 'n'
    UNION ALL SELECT pg_get_indexdef(indexrelid) FROM tables t JOIN pg_index ON indrelid = t.oid
    UNION ALL SELECT pg_get_triggerdef(g.oid) FROM tables t JOIN pg_trigger g ON tgrelid = t.oid WHERE NOT tgisinternal
    UNION ALL SELECT pg_get_viewdef(oid) FROM tables WHERE relname = 'postings'
    UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT concat_ws(' ', sequencename, data_type, increment_by) FROM pg_sequences WHERE sequencename !~ 'migrations'
    ORDER BY line`);
  return rows.map(({ line }) => line);
}

/** Runs the `spindle` command as an operator does. */
async function spindle(...args: string[]): Promise<{ status: number; output: string }> {
  const child = spawn(process.execPath, [cliOf(ROOT), ...args], {
    env: { PATH: process.env.PATH, REDIS_URL: stores.redisUrl, DATABASE_URL: stores.databaseUrl },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk;
    });
  const [status] = (await once(child, 'close')) as [number];
  return { status, output };
}
const auditStores = () => spindle('audit');

/** Returns the format of the installation and the format of each cell. */
async function formats(): Promise<number[]> {
  const { rows } = await pg.query<{ format: number }>('SELECT format FROM installation');
  const cells = Array.from({ length: Number(HELD_SETTINGS.CELLS) }, (_, cell) =>
    redis.hget(cellKey(cell), 'format'),
  );
  return [rows[0]!.format, ...(await Promise.all(cells)).map((format) => Number(format ?? 1))];
}

describe('upgrade of the stores of version 1.4.0', () => {
  test('the recorded stores of version 1.4.0 have an outbox, a half-sold raffle and an unconfirmed ticket', () => {
    expect(held.outboxEntries).toBeGreaterThan(40);
    const tickets = held.sent.filter(({ body }) => body.gameId === held.raffleId);
    expect(tickets).toHaveLength(held.poolTickets / 2);
    expect(held.sent.length - tickets.length).toBeGreaterThan(500);
    expect(held.openRounds).toBeGreaterThan(0);
    expect(held.deals.length).toBeGreaterThan(held.openRounds);
  });

  test('after the upgrade, the stores of version 1.4.0 have the schema of a fresh database', async () => {
    expect(await schemaOf(pg)).toEqual(freshSchema);
  });

  test('the upgrade keeps the migration records with which version 1.4.0 can start beside this version', async () => {
    expect(await count('SELECT count(*) AS rows FROM migrations')).toBe(56);
  });

  test('this version answers each request id of version 1.4.0 with the bytes of its first answer', async () => {
    for (const { body, text } of held.sent) {
      const answer = await spin(body);
      expect(answer.headers.get('idempotent-replayed')).toBe('true');
      expect(answer.text).toBe(text);
    }
    const { body } = held.sent[0]!;
    expect(await spin({ ...body, playerId: 'somebody-else' })).toMatchObject({ status: 409 });
  });

  test('the upgrade from version 1.4.0 keeps balances, webhooks, and the sealed pool with its commitment', async () => {
    for (const { path, text } of held.players.filter(({ path }) => !path.endsWith(held.unconfirmed.playerId)))
      expect(await get(path)).toBe(text);
    // The health of the webhooks is not compared, because the number of due deliveries increases with the
    // events of this test.
    const withoutHealth = (text: string): string => text.replace(/,"health":\{[^}]*\}/g, '');
    expect(withoutHealth(await get('/webhooks'))).toBe(withoutHealth(held.webhooks));
    expect(await get(`/games/${held.raffleId}/pool`)).toBe(held.pool);
  });

  test('this version answers each blackjack deal of version 1.4.0 with the bytes of its first answer', async () => {
    for (const { playerId, requestId, text } of held.deals) {
      const answer = await deal(service, held.apiKey, held.tableId, playerId, requestId);
      expect([answer.text, answer.headers.get('idempotent-replayed')]).toEqual([text, 'true']);
    }
  });

  test('this version does not repeat an adjustment of version 1.4.0', async () => {
    for (const { path, body, text } of held.adjustments)
      expect((await service.operator('POST', path, body)).text).toBe(text);
  });

  test('this version commits the outbox of version 1.4.0 with an uncommitted ticket, and a replay returns the ticket', async () => {
    await until(async () => (await outboxEntries()) === 0, 'the outbox is empty');
    const spins = await count(`SELECT count(*) AS rows FROM ledger WHERE kind = ${ENTRY_KINDS.spin.code}`);
    expect(spins).toBe(held.sent.length + 1);
    const answer = await spin(held.unconfirmed);
    expect(answer).toMatchObject({ status: 200 });
    won.push(answer.body.presentation.prizeName);
    expect(await ticketsRemaining()).toBe(held.poolTickets / 2 - 1);
  });

  test('a partner of version 1.4.0 moves to another cell, which answers each of its request ids as before', async () => {
    const { rows } = await pg.query<{ partner_id: number; cell: number }>(
      'SELECT partner_id, cell FROM games JOIN partners USING (partner_id) WHERE game_id = $1',
      [held.gameId],
    );
    const { partner_id: partnerId, cell } = rows[0]!;
    const balances = await Promise.all(held.players.map(({ path: player }) => get(player)));
    await movePartner(service, partnerId, 1 - cell);
    const entries = await ledgerRows();
    for (const { body, text } of held.sent) {
      const answer = await spin(body);
      expect([answer.text, answer.headers.get('idempotent-replayed')]).toEqual([text, 'true']);
    }
    for (const { path: adjusted, body, text } of held.adjustments)
      expect((await service.operator('POST', adjusted, body)).text).toBe(text);
    expect(await Promise.all(held.players.map(({ path: player }) => get(player)))).toEqual(balances);
    expect(await ledgerRows()).toBe(entries);
    expect(await auditStores()).toMatchObject({ status: 0 });
  });

  test('spins after the upgrade continue the history of a player of version 1.4.0', async () => {
    const { gameId, wagerUsd } = held;
    const playerId = 'player-2';
    for (let number = 0; number < SPINS; number++) {
      const body = { gameId, playerId, wagerUsd, requestId: `since-${number}` };
      const answer = await spin(body);
      expect(answer).toMatchObject({ status: 200 });
      spunSince.push({ body, text: answer.text });
    }
    await until(async () => (await outboxEntries()) === 0, 'the outbox is empty');
    const before = held.sent.filter(({ body }) => body.playerId === playerId).length;
    const { rows } = await pg.query(
      'SELECT entry_number FROM ledger WHERE player_id = $1 ORDER BY entry_id',
      [playerId],
    );
    expect(rows.map(({ entry_number }) => entry_number)).toEqual(
      Array.from({ length: 1 + before + SPINS }, (_, index) => index + 1),
    );
  });

  /** Sends a spin with every member of its schema. Returns those that the history shows. */
  async function keptMembers(requestId: string): Promise<string[]> {
    const { gameId, wagerUsd } = held;
    const names = Object.keys(Schema.properties);
    const texts = Object.fromEntries(names.map((name) => [name, `a ${name}`]));
    const { body } = await spin({ ...texts, gameId, wagerUsd, playerId: 'player-2', requestId });
    const shown = JSON.parse(await get(`/spins/${body.spinId}`)) as object;
    return names.filter((name) => name in shown);
  }

  test('the stores keep the format of version 1.4.0 until the upgrade is finished, and then get the newest format', async () => {
    expect(await formats()).toEqual([HELD_FORMAT, HELD_FORMAT, HELD_FORMAT]);
    const earlier: (keyof SpinBody)[] = ['gameId', 'playerId', 'wagerUsd', 'requestId'];
    expect(await keptMembers('before the end')).toEqual(earlier);
    const status = FORMATS.newest > HELD_FORMAT ? 1 : 0;
    expect(await spindle('upgrade', 'status')).toMatchObject({ status });
    expect(await spindle('upgrade', 'finish', '--yes')).toMatchObject({ status: 0 });
    const isNewest = async () => (await formats()).every((format) => format === FORMATS.newest);
    await until(isNewest, 'the cells are claimed in the newest format');
    expect(await keptMembers('after the end')).toEqual(Object.keys(Schema.properties));
  });

  test('a raffle of version 1.4.0 sells out with exactly its advertised prizes', async () => {
    for (let number = won.length; number < held.poolTickets / 2; number++) {
      const answer = await spin({ ...held.unconfirmed, requestId: `ticket-since-${number}` });
      expect(answer).toMatchObject({ status: 200 });
      won.push(answer.body.presentation.prizeName);
    }
    const closed = await spin({ ...held.unconfirmed, requestId: 'one-too-many' });
    expect(closed).toMatchObject({ status: 410, body: { errorCode: 'KS-4218' } });
    for (const { body, text } of held.sent)
      if (body.gameId === held.raffleId) won.push(JSON.parse(text).presentation.prizeName);
    for (const { prizeName, count } of held.prizes)
      expect(won.filter((name) => name === prizeName)).toHaveLength(count);
    const pool = JSON.parse(await get(`/games/${held.raffleId}/pool`)) as RevealedPool;
    expect(poolFaults(pool)).toEqual([]);
    expect(pool.poolCommitment).toBe(JSON.parse(held.pool).poolCommitment);
  });

  test('the audit finds no problem after the upgrade from version 1.4.0', async () => {
    expect(await auditStores()).toMatchObject({ status: 0 });
  });

  test('request ids of version 1.4.0 get the bytes of their first answers after they are released to Postgres', async () => {
    await service.stop();
    service = await startService(stores, { ...HELD_SETTINGS, REQUEST_ID_WINDOW_S: '1' });
    for (const key of await redis.keys('{c*}:outbox'))
      await untilReleased(redis, Number(/\d+/.exec(key)![0]));
    const rows = await ledgerRows();
    for (const { body, text } of [...held.sent, ...spunSince]) {
      const answer = await spin(body);
      expect([answer.text, answer.headers.get('idempotent-replayed')]).toEqual([text, 'true']);
    }
    expect(await ledgerRows()).toBe(rows);
    expect(await auditStores()).toMatchObject({ status: 0 });
  });

  test('after a wipe of Redis, the stores of version 1.4.0 are rebuilt from the ledger and the audit is clean', async () => {
    const balances = await Promise.all(held.players.map(({ path }) => get(path)));
    const rows = await ledgerRows();
    await redis.flushdb();
    const isBack = async (): Promise<boolean> => (await spin(spunSince[0]!.body)).status === 200;
    await until(isBack, 'the cells are rebuilt');
    for (const { body, text } of spunSince) expect((await spin(body)).text).toBe(text);
    // A ticket's request id never expires, however old the recorded stores of version 1.4.0 are.
    for (const { body, text } of held.sent)
      if (body.gameId === held.raffleId) expect((await spin(body)).text).toBe(text);
    expect(await Promise.all(held.players.map(({ path }) => get(path)))).toEqual(balances);
    await until(async () => (await outboxEntries()) === 0, 'the outbox is empty');
    expect(await ledgerRows()).toBe(rows);
    expect(await auditStores()).toMatchObject({ status: 0 });
  });
});

test('refuses a database older than version 1.4.0, names the version to install first, and changes nothing', async () => {
  const older = await freshStores({ hasSchema: false });
  const client = new Pg({ connectionString: older.databaseUrl });
  await client.connect();
  const tables = async () =>
    (
      await client.query(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1",
      )
    ).rows;
  try {
    await client.query(`
      CREATE TABLE migrations (id serial PRIMARY KEY, name varchar(255) NOT NULL, run_on timestamp NOT NULL);
      INSERT INTO migrations (name, run_on) VALUES ('0001_backbone', now())`);
    const before = await tables();
    await expect(startService(older)).rejects.toThrow('Start version 1.4.0 on it');
    expect(await tables()).toEqual(before);
  } finally {
    await client.end();
    await older.drop();
  }
});
