/**
 * Tests that a look-up with many daily partitions costs as little as with few, because it plans and locks
 * only a few of them.
 */
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { entriesDown, SpinHistory, type SpinsFound } from '../../../src/api/spins/spinHistory.store.js';
import { firstIdAt } from '../../../src/domain/entryId.js';
import { ensurePartition } from '../../../src/engine/ledger/ledger.store.js';
import { LedgerEntries } from '../../../src/engine/ledger/ledgerEntries.store.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import type { Sql } from '../../../src/postgres/connection.js';
import { freshStores } from '../../setup/freshStores.js';
import type { TestPartner } from '../../support/client.js';
import { IS_WHOLE } from '../../support/root.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

/** Number of daily partitions. `npm run test:scale` has 1,000. */
const DAYS = IS_WHOLE ? 1000 : 100;
const DAY_MS = 86_400_000;
const AT_ONCE = 64;
/** Number of connections that a front end has for requests (src/app/openStores.ts). */
const REQUEST_CONNECTIONS = 6;
const SPINS = 150;
/**
 * Maximum number of locks that a statement takes: nine days, each with a table and two indexes, and the
 * unpartitioned tables.
 */
const LOCKS_MAX = 40;

let stores: TestStores;
let observer: postgres.Sql<{ bigint: bigint }>;
let sql: Sql;
let service: Awaited<ReturnType<typeof startService>>;
let partner: TestPartner;
let gameId: number;
let raffleId: number;
let newest: { id: bigint; entryNumber: number };
const spinIds: string[] = [];

const PLAYER = 'p';
const entriesOf = async (found: Promise<SpinsFound>) => (await found).entries;
const adjust = () =>
  service.operator('POST', `/partners/${partner.partnerId}/players/${PLAYER}/adjustments`, {
    amountUsd: 1,
    reason: 'test',
    requestId: 'adjustment',
  });
const spin = (game: number, requestId?: string) =>
  service.spin(partner.key, { gameId: game, playerId: PLAYER, wagerUsd: 0.25, requestId });

beforeAll(async () => {
  stores = await freshStores();
  observer = postgres(stores.databaseUrl, { types: { bigint: postgres.BigInt }, onnotice: () => {} });
  service = await startService(stores);
  partner = await service.newPartner();
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  raffleId = await service.api.newRaffle(partner.partnerId, 'raffle', {
    ticketPriceUsd: 0.25,
    poolSize: 10,
    prizes: [{ prizeName: 'One', prizeTier: 1, valueUsd: 1, count: 1 }],
  });
  for (let i = 0; i < SPINS; i++) {
    const { status, body } = await spin(gameId);
    expect(status).toBe(200);
    spinIds.push((body as unknown as { spinId: string }).spinId);
  }
  expect((await adjust()).status).toBe(200);
  expect((await spin(raffleId, 'ticket')).status).toBe(200);
  const count = async () => (await observer`SELECT count(*) AS count FROM ledger`)[0]!.count as bigint;
  await until(async () => (await count()) === BigInt(SPINS + 3), 'all is booked');
  sql = connectPostgres(stores.databaseUrl, {
    max: REQUEST_CONNECTIONS,
    name: 'look-ups',
    onError: () => {},
  });
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  for (let back = 1; back <= DAYS; back++) {
    const from = today - back * DAY_MS;
    const day = new Date(from).toISOString().slice(0, 10);
    await ensurePartition(sql, day, { from: firstIdAt(from), to: firstIdAt(from + DAY_MS) });
  }
  const [row] = await observer<{ entry_id: bigint; entry_number: number }[]>`
    SELECT entry_id, entry_number FROM ledger WHERE kind = 1 ORDER BY entry_id DESC LIMIT 1`;
  newest = { id: row!.entry_id, entryNumber: row!.entry_number };
}, 300_000);
afterAll(async () => {
  await service?.stop();
  await sql?.end();
  await observer?.end();
  await stores?.drop();
});

describe(`the ledger with ${DAYS} daily partitions`, () => {
  const firstId = firstIdAt(Date.now() - DAY_MS);
  // Look-ups by concurrent readers of one ledger share statements.
  const ledgers = new Map<Sql, LedgerEntries>();
  const ledgerOf = (on: Sql): LedgerEntries => {
    const ledger = ledgers.get(on) ?? new LedgerEntries(on);
    ledgers.set(on, ledger);
    return ledger;
  };
  const lookUps: [name: string, run: (on: Sql) => Promise<unknown>][] = [
    ['a spin', (on) => ledgerOf(on).find(newest.id)],
    ['a ticket', (on) => ledgerOf(on).findTicket(raffleId, 'ticket')],
    ['a repeated adjustment', (on) => ledgerOf(on).findAdjustment(partner.partnerId, 'adjustment')],
    [
      'the newest page of a history',
      (on) =>
        entriesDown(
          on,
          { partnerId: partner.partnerId, playerId: PLAYER, newest, firstId },
          newest.entryNumber,
          100,
        ),
    ],
    [
      'a page further down',
      (on) => entriesDown(on, { partnerId: partner.partnerId, playerId: PLAYER, newest, firstId }, 30, 20),
    ],
  ];

  const all = { fromId: 0n, toId: 2n ** 63n - 1n, gameId: undefined };
  lookUps.push(
    ['a page by time', (on) => entriesOf(new SpinHistory(on).spinsByTime({ ...all, ...partner }, 100))],
    [
      'a game by time',
      (on) => entriesOf(new SpinHistory(on).spinsByTime({ ...all, ...partner, gameId }, 100)),
    ],
    [
      'a player by time',
      (on) => {
        const player = { partnerId: partner.partnerId, playerId: PLAYER, newest, firstId };
        return entriesOf(new SpinHistory(on).playerSpinsByTime(player, { ...all, ...partner }, 100));
      },
    ],
  );

  test.each(lookUps)(
    'with many daily partitions, the look-up %s locks the partitions of only a few days',
    async (_, run) => {
      const locks = await sql.begin(async (tx) => {
        const found = await run(tx as unknown as Sql);
        expect(Array.isArray(found) ? found.length : found).toBeTruthy();
        const [row] = await tx<{ locks: bigint }[]>`
          SELECT count(*) AS locks FROM pg_locks JOIN pg_inherits ON inhrelid = relation WHERE pid = pg_backend_pid()`;
        return Number(row!.locks);
      });
      expect(locks).toBeLessThan(LOCKS_MAX);
    },
  );

  test('64 concurrent look-ups of each kind are answered correctly with many daily partitions', async () => {
    for (const [name, run] of lookUps) {
      const started = performance.now();
      const found = await Promise.all(Array.from({ length: AT_ONCE }, () => run(sql)));
      expect(found.every(Boolean), name).toBe(true);
      console.log(`64 × ${name}: ${(performance.now() - started).toFixed(0)} ms`);
    }
    const asked = async (spinId: string): Promise<number> => {
      const started = performance.now();
      const answer = await service.partner<{ spinId: string }>('GET', `/spins/${spinId}`, partner.key);
      expect(answer.body.spinId).toBe(spinId);
      return performance.now() - started;
    };
    // The first request for a spin also reads the catalog, so its time is not measured.
    await asked(spinIds[0]!);
    const times = (await Promise.all(spinIds.slice(0, AT_ONCE).map(asked))).sort((a, b) => a - b);
    console.log(
      `64 × GET /spins/{spinId}: ${times[32]!.toFixed(0)} ms, at most ${times.at(-1)!.toFixed(0)} ms`,
    );
    const page = await entriesDown(
      sql,
      { partnerId: partner.partnerId, playerId: PLAYER, newest, firstId },
      newest.entryNumber,
      200,
    );
    expect(page.map(({ entryNumber }) => entryNumber)).toEqual(
      Array.from({ length: newest.entryNumber }, (_, i) => newest.entryNumber - i),
    );
    const again = await adjust();
    expect(again.status).toBe(200);
    expect(again.body).toEqual((await adjust()).body);
  });
});
