import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStore } from '../../../src/api/api.store.js';
import { audit } from '../../../src/books/audit/audit.js';
import { REQUEST_KEY_BYTES, writeRequestKey } from '../../../src/domain/requestKey.js';
import { RequestIds } from '../../../src/engine/requestIds/requestIds.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { world } from '../../setup/world.js';
import { blocksFor } from '../../support/api.js';
import type { Client, TestPartner } from '../../support/client.js';
import { each, load, portOf, spinRequest } from '../../support/load.js';
import { openNodes } from '../../support/redis.js';
import { untilReleased } from '../../support/requestSegments.js';
import type { ServerProcess } from '../../support/serverProcess.js';
import { environment, spawnService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const IDS = 10_000;
const COPIES = 3;
const CONNECTIONS = 64;

const { stores, sql, redis } = world();
let service: ServerProcess;
let client: Client;
let partner: TestPartner;
let gameId: number;
let otherGameId: number;

beforeAll(async () => {
  service = await spawnService(environment(stores, { CELLS: '1' }));
  client = service.client;
  partner = await client.newPartner({ minReadyBlocks: blocksFor(IDS) });
  gameId = await client.newGame(partner.key, parSheet('classic-3-reel'), IDS);
  otherGameId = await client.newGame(partner.key, parSheet('classic-3-reel'));
});

afterAll(async () => {
  await service.end();
});

interface SpinAnswer extends Record<string, unknown> {
  spinId: string;
  errorCode?: string;
}

const bodyOf = (id: number) => ({
  gameId,
  playerId: `p${id % 300}`,
  wagerUsd: 0.25,
  requestId: `request-${id}`,
});
const spin = (body: object, key = partner.key) => client.spin<SpinAnswer>(key, body);

function requestHash(partnerId: number, requestId: string): Buffer {
  const key = Buffer.alloc(REQUEST_KEY_BYTES);
  writeRequestKey(key, 0, partnerId, requestId);
  return key;
}

async function dealt(game = gameId): Promise<number> {
  const record = await redis.hgetBuffer('{c0}:games', String(game));
  return record!.readUIntLE(0, 6);
}

/** Returns the items in an order that looks random but is the same in every run. */
function shuffled<T>(items: readonly T[]): T[] {
  const result = [...items];
  let state = 1;
  for (let i = result.length - 1; i > 0; i--) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const j = state % (i + 1);
    [result[i], result[j]] = [result[j]!, result[i]!];
  }
  return result;
}

describe('10,000 request ids, each sent three times at once', () => {
  const texts = Array.from({ length: IDS }, (): string[] => []);
  const first = new Array<number>(IDS).fill(0);
  const others: string[] = [];

  beforeAll(async () => {
    // Copies of an id are sent close together, so that they arrive in the same batch or in neighbouring
    // batches.
    const near = Array.from({ length: IDS / 100 }, (_, group) =>
      shuffled(Array.from({ length: 100 * COPIES }, (_, place) => group * 100 + (place % 100))),
    ).flat();
    const idOf = new Map<Buffer, number>();
    const cut = await load({
      port: portOf(client.base),
      connections: CONNECTIONS,
      next: each(near, (id) => {
        const request = spinRequest(partner.key, JSON.stringify(bodyOf(id)));
        idOf.set(request, id);
        return request;
      }),
      onAnswer: ({ status, text, headers }, sent) => {
        const id = idOf.get(sent)!;
        if (status !== 200) {
          others.push(`${status} ${(JSON.parse(text) as SpinAnswer).errorCode}`);
          return;
        }
        texts[id]!.push(text);
        if (!headers.has('idempotent-replayed')) first[id]!++;
      },
    });
    expect(cut).toBe(0);
  });

  test('10,000 request ids that are sent three times at once deal exactly 10,000 outcomes', async () => {
    expect(await dealt()).toBe(IDS);
    await until(async () => {
      const [row] = await sql<{ count: number }[]>`SELECT count(*)::int AS count FROM ledger WHERE kind = 1`;
      return row!.count >= IDS;
    }, 'the ledger has every spin');
    const [row] = await sql`
      SELECT count(*)::int AS spins, count(DISTINCT request_id)::int AS ids, count(DISTINCT outcome_index)::int AS indices
      FROM ledger WHERE game_id = ${gameId}`;
    expect(row).toEqual({ spins: IDS, ids: IDS, indices: IDS });
  });

  test('copies of a request get the same bytes or KS-4110, and only the first response lacks the replay header', () => {
    expect(others.filter((answer) => answer !== '409 KS-4110')).toEqual([]);
    expect(texts.flat().length + others.length).toBe(IDS * COPIES);
    expect(texts.filter((each) => new Set(each).size !== 1)).toEqual([]);
    expect(first.filter((count) => count > 1)).toEqual([]);
    if (others.length === 0) expect(first.every((count) => count === 1)).toBe(true);
    expect(new Set(texts.flat().map((text) => (JSON.parse(text) as SpinAnswer).spinId)).size).toBe(IDS);
  });

  test('refuses a different request under a bound requestId with KS-4111', async () => {
    for (let id = 0; id < IDS; id += 197) {
      const body = bodyOf(id);
      for (const other of [
        { playerId: 'somebody' },
        { playerId: `${body.playerId} ` },
        { playerId: body.playerId.toUpperCase() },
        { wagerUsd: 0.5 },
        { gameId: otherGameId },
        { gameId: 2_000_000_000 },
        { gameId: gameId + 4_294_967_296 },
      ]) {
        const answer = await spin({ ...body, ...other });
        expect([other, answer.status, answer.body.errorCode]).toEqual([other, 409, 'KS-4111']);
      }
      const again = await spin(body);
      expect([again.text, again.headers.get('idempotent-replayed')]).toEqual([texts[id]![0], 'true']);
    }
    expect([await dealt(), await dealt(otherGameId)]).toEqual([IDS, 0]);
  });

  test('answers bound request ids with the same bytes after a restart of the service', async () => {
    await service.end();
    service = await spawnService(environment(stores, { CELLS: '1' }));
    client = service.client;
    for (let id = 0; id < IDS; id += 499) expect((await spin(bodyOf(id))).text).toBe(texts[id]![0]);
    expect(await dealt()).toBe(IDS);
  });
});

test('two partners can use the same requestId for different spins', async () => {
  const other = await client.newPartner();
  const otherGame = await client.newGame(other.key, parSheet('classic-3-reel'));
  const body = { playerId: 'same', wagerUsd: 0.25, requestId: 'same' };
  const mine = await spin({ ...body, gameId });
  const theirs = await spin({ ...body, gameId: otherGame }, other.key);
  expect([mine.status, theirs.status]).toEqual([200, 200]);
  expect(theirs.body.spinId).not.toBe(mine.body.spinId);
  expect(theirs.headers.get('idempotent-replayed')).toBeNull();
  expect(await dealt(otherGame)).toBe(1);
  expect((await spin({ ...body, gameId })).text).toBe(mine.text);
  expect((await spin({ ...body, gameId: otherGame }, other.key)).text).toBe(theirs.text);
});

test('a repeated spin without a requestId is dealt as a new spin each time', async () => {
  const before = await dealt();
  const body = { gameId, playerId: 'anonymous', wagerUsd: 0.25 };
  const ids = new Set<string>();
  for (let i = 0; i < 20; i++) ids.add((await spin(body)).body.spinId);
  expect([ids.size, await dealt()]).toEqual([20, before + 20]);
});

test('a released requestId stays bound: a retry gets the same bytes, a different spin gets KS-4111, and nothing is dealt', async () => {
  // After the restart, request ids that were bound before it are written to a run as well.
  await service.end();
  service = await spawnService(environment(stores, { CELLS: '1', REQUEST_ID_WINDOW_S: '1' }));
  client = service.client;
  const bodies = Array.from({ length: 40 }, (_, i) => ({
    gameId: i % 2 === 0 ? gameId : otherGameId,
    playerId: `old-${i % 3}`,
    wagerUsd: 0.25,
    requestId: `old-${i}`,
  }));
  const texts: string[] = [];
  // The spins last for several releases of request ids, so that there are several runs of request ids.
  for (const [i, body] of bodies.entries()) {
    texts.push((await spin(body)).text);
    if (i % 8 === 7) await untilReleased(redis, 0);
  }
  await untilReleased(redis, 0);
  const before = (await dealt()) + (await dealt(otherGameId));
  const replays = await Promise.all([...bodies, ...bodies].map((body) => spin(body)));
  expect(replays.map(({ text }) => text)).toEqual([...texts, ...texts]);
  expect(new Set(replays.map(({ headers }) => headers.get('idempotent-replayed')))).toEqual(
    new Set(['true']),
  );
  for (const other of [{ playerId: 'other' }, { wagerUsd: 1 }, { gameId: otherGameId }])
    expect((await spin({ ...bodies[0], ...other })).body.errorCode).toBe('KS-4111');
  // The same text as a requestId of another partner is a different id.
  const stranger = await client.newPartner();
  const theirs = await client.newGame(stranger.key, parSheet('classic-3-reel'));
  const fresh = await spin({ ...bodies[0], gameId: theirs }, stranger.key);
  expect([fresh.status, fresh.headers.get('idempotent-replayed')]).toEqual([200, null]);
  expect((await dealt()) + (await dealt(otherGameId))).toBe(before);

  // A front end whose filters have no memory looks up every id in the ledger, and must send the same
  // responses.
  const own = connectPostgres(stores.databaseUrl, { max: 2, name: 'filters', onError: () => {} });
  const store = openStore(own);
  const small = new RequestIds({
    runs: store,
    store,
    filterBytesMax: 1,
    newestVersion: () => '',
    everyMs: 1000,
    onError: () => {},
  });
  const fullSized = new RequestIds({
    runs: store,
    store,
    filterBytesMax: 1e9,
    newestVersion: () => '',
    everyMs: 1000,
    onError: () => {},
  });
  try {
    await small.refresh();
    await fullSized.refresh();
    // Each run keeps 16 bytes, and the slower the machine, the more runs there are.
    expect(small.bytes).toBeLessThan(fullSized.bytes / 10);
    const holder = { cell: 0, partnerId: partner.partnerId };
    for (let id = 0; id < IDS; id += 997) {
      const key = requestHash(partner.partnerId, `request-${id}`);
      expect([small.mayHave(holder, key, 0), fullSized.mayHave(holder, key, 0)]).toEqual([true, true]);
      const { entry } = await small.find(holder, `request-${id}`);
      expect(entry?.requestId).toBe(`request-${id}`);
      const strange = `strange-${id}`;
      expect(small.mayHave(holder, requestHash(partner.partnerId, strange), 0)).toBe(true);
      expect((await small.find(holder, strange)).entry).toBe(undefined);
    }
    expect(small.lookUps).toEqual({ bound: 11, fresh: 11, refused: 0 });
  } finally {
    await own.end();
  }
});

test('request ids stay bound, each once, if writing their run or flushing their entries fails', async () => {
  const bodies = Array.from({ length: 30 }, (_, i) => ({ ...bodyOf(i), requestId: `refused-${i}` }));
  const texts: string[] = [];
  const spins = async (from: number, to: number): Promise<void> => {
    for (const body of bodies.slice(from, to)) texts.push((await spin(body)).text);
  };
  await untilReleased(redis, 0);
  // A sequence in Postgres keeps the values that a failed transaction took, so its value proves that the
  // trigger ran.
  await sql.unsafe(`
    CREATE SEQUENCE refusals;
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM nextval('refusals'); RAISE EXCEPTION 'refused'; END $$;
    CREATE TRIGGER refuse BEFORE INSERT ON request_blocks EXECUTE FUNCTION refuse()`);
  await spins(0, 10);
  await until(async () => (await sql`SELECT is_called FROM refusals`)[0]!.is_called, 'a run was refused');
  await spins(10, 20);
  await sql.unsafe('DROP TRIGGER refuse ON request_blocks; DROP FUNCTION refuse; DROP SEQUENCE refusals');
  await untilReleased(redis, 0);
  // The worker's sessions are terminated while a flush waits for the cell's row, so the flush is retried.
  await sql.begin(async (tx) => {
    await tx`SELECT FROM cells FOR UPDATE`;
    await spins(20, 30);
    await until(async () => {
      // Without this call, a transaction sees pg_stat_activity as it was at the transaction's first read.
      await tx`SELECT pg_stat_clear_snapshot()`;
      const waiting = await tx`
        SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
          AND query LIKE '%SET cursor_id%'`;
      return waiting.length > 0;
    }, 'a flush waits');
    await tx`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()`;
  });
  await untilReleased(redis, 0);
  const before = await dealt();
  const replays = await Promise.all(bodies.map((body) => spin(body)));
  expect(replays.map(({ text }) => text)).toEqual(texts);
  expect(await dealt()).toBe(before);
});

test('the audit finds request ids in runs that are missing, duplicated, misplaced or without a ledger entry', async () => {
  await service.end();
  const own = connectPostgres(stores.databaseUrl, { max: 2, name: 'audit', onError: () => {} });
  const nodes = await openNodes(stores.redisUrl);
  const problems = async (): Promise<string[]> => {
    const report = await audit(own, nodes.nodes, { limit: 100, onProgress: () => {} });
    expect(report.checks.filter(({ name, violations }) => name !== 'requests' && violations > 0)).toEqual([]);
    const { listed } = report.checks.find(({ name }) => name === 'requests')!;
    return listed.map(({ problem }) => problem).sort();
  };
  const lacking = "a released requestId is missing in the runs, or can't be found there";
  const strange = 'a run has a requestId that is not in the ledger';
  // The damage replaces the (hash, entry) pairs of a block in a run. Other blocks follow this block.
  const damage: readonly [pairs: string, found: string[]][] = [
    ['substr(pairs, 17)', [lacking]],
    ['pairs || substr(pairs, 1, 16)', [lacking]],
    ["pairs || decode('ffffffffffffffff0000000000000001', 'hex')", [strange]],
    ['set_byte(pairs, 15, get_byte(pairs, 15) # 1)', [lacking, strange]],
  ];
  try {
    expect(await problems()).toEqual([]);
    for (const [pairs, found] of damage) {
      await sql`CREATE TABLE sound AS SELECT * FROM request_blocks`;
      await sql.unsafe(`
        UPDATE request_blocks SET pairs = ${pairs}
        WHERE (run_id, first_hash) = (SELECT run_id, first_hash FROM request_blocks ORDER BY octet_length(pairs) DESC, first_hash LIMIT 1)`);
      expect([pairs, await problems()]).toEqual([pairs, found]);
      await sql`DELETE FROM request_blocks`;
      await sql`INSERT INTO request_blocks SELECT * FROM sound`;
      await sql`DROP TABLE sound`;
    }
    // The block's row states a first hash that is higher than the hashes of its first pairs, so no look-up of
    // these pairs would read the block.
    await sql`
      UPDATE request_blocks b SET first_hash = substr(pairs, 33, 8)
      WHERE (run_id, first_hash) = (SELECT run_id, first_hash FROM request_blocks ORDER BY octet_length(pairs) DESC, first_hash LIMIT 1)`;
    expect(await problems()).toEqual([lacking, lacking]);
  } finally {
    nodes.close();
    await own.end();
  }
});
