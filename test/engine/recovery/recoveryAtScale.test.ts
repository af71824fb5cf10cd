/**
 * Measures the recovery from a total loss of Redis with many ledger rows and games. `npm run test:scale` uses
 * a million rows; other runs use a tenth of that.
 */
import { Redis } from 'ioredis';
import { beforeAll, expect, test } from 'vitest';
import { firstIdAt } from '../../../src/domain/entryId.js';
import { ensurePartition } from '../../../src/engine/ledger/ledger.store.js';
import { slotOfCell } from '../../../src/engine/redis/slots.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { appendWaiting } from '../../../src/publicLog/log/logAppend.store.js';
import { world } from '../../setup/world.js';
import { booksHold } from '../../support/books.js';
import type { TestPartner } from '../../support/client.js';
import { ownCluster } from '../../support/cluster.js';
import { expectWithin } from '../../support/expectWithin.js';
import { IS_WHOLE } from '../../support/root.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const ROWS = IS_WHOLE ? 1_000_000 : 100_000;
const GAMES = IS_WHOLE ? 100 : 20;
const PLAYERS = 10_000;
const READY_WITHIN_MS = 30_000;
const DAY_MS = 86_400_000;

const { stores, sql } = world();
let partner: TestPartner;
let games: number[];
let firstMs: number;

beforeAll(async () => {
  const service = await startService(stores);
  partner = await service.newPartner();
  const upload = await service.partner('POST', '/par-sheets', partner.key, parSheet('classic-3-reel'));
  games = await Promise.all(
    Array.from({ length: GAMES }, async (_, i) => {
      const game = await service.partner<{ gameConfigId: number }>('POST', '/games', partner.key, {
        parSheetId: upload.body.parSheetId,
        displayName: `Game ${i}`,
        configName: `GAME_${i}`,
      });
      return game.body.gameConfigId;
    }),
  );
  games.sort((a, b) => a - b);
  await until(
    async () => (await sql`SELECT DISTINCT game_id FROM blocks`).length === GAMES,
    'every game has a block',
  );
  await service.stop();
  await fillLedger();
});

/**
 * Fills the ledger. Row i belongs to player i mod PLAYERS and to game i mod GAMES, comes a millisecond after
 * the previous row, and pays nothing.
 */
async function fillLedger(): Promise<void> {
  // All rows lie within the binding time of request ids.
  firstMs = Date.now() - 3_600_000;
  const service = connectPostgres(stores.databaseUrl, { max: 1, name: 'test', onError: () => {} });
  for (const ms of [firstMs, firstMs + ROWS]) {
    const beginMs = ms - (ms % DAY_MS);
    await ensurePartition(service, new Date(beginMs).toISOString().slice(0, 10), {
      from: firstIdAt(beginMs),
      to: firstIdAt(beginMs + DAY_MS),
    });
  }
  // Records of the public log are made from the blocks. The blocks are removed below, so the pending records
  // are appended first.
  await appendWaiting(service);
  await service.end();
  const id = (i: string) => `((${firstMs}::bigint + ${i}) << 22)`;
  await sql.unsafe(`
    INSERT INTO ledger
    SELECT ${id('i')}, CASE WHEN i < ${PLAYERS} THEN 0 ELSE ${id(`(i - ${PLAYERS})`)} END,
      CASE WHEN i < ${PLAYERS} THEN 0 ELSE 250000 END, CASE WHEN i < ${PLAYERS} THEN 1000000000 ELSE 0 END,
      1000000000 - (i / ${PLAYERS}) * 250000, CASE WHEN i < ${PLAYERS} THEN 0 ELSE (i - ${PLAYERS}) / ${GAMES} END,
      ${partner.partnerId}, CASE WHEN i < ${PLAYERS} THEN 0 ELSE ${games[0]} + i % ${GAMES} END,
      i / ${PLAYERS} + 1, 0, CASE WHEN i < ${PLAYERS} THEN 2 ELSE 1 END, 'player-' || i % ${PLAYERS},
      CASE WHEN i < ${PLAYERS} THEN NULL ELSE 'request-' || i END
    FROM generate_series(0, ${ROWS - 1}) AS i`);
  const spinsOfGame = (ROWS - PLAYERS) / GAMES;
  await sql`DELETE FROM blocks`;
  await sql`
    INSERT INTO blocks (game_id, from_index, to_index, outcomes, seed, nonce, commitment, epoch)
    SELECT game_id, 0, ${spinsOfGame + 500}, '', '', '', '', 1 FROM games`;
  await sql`INSERT INTO game_progress SELECT game_id, ${spinsOfGame} FROM games`;
  await sql.unsafe(
    `UPDATE cells SET cursor_id = ${id(String(ROWS - 1))}, unchecked_from = ${id('0')} WHERE cell = 0`,
  );
}

test(`a lost Redis with ${ROWS.toLocaleString('en')} ledger rows and ${GAMES} games is ready again in under 30 s`, async () => {
  const redis = new Redis(stores.redisUrl, { protocol: 2 });
  await redis.flushdb();
  redis.disconnect();
  expect(games.at(-1)! - games[0]!).toBe(GAMES - 1);
  const started = performance.now();
  const service = await startService(stores);
  try {
    await until(async () => (await service.request('GET', '/statusz')).status === 200, 'ready', 120_000);
    const readyMs = performance.now() - started;
    const spin = (gameId: number, player: number, requestId: string) =>
      service.spin(partner.key, { gameId, playerId: `player-${player}`, wagerUsd: 0.25, requestId });
    await Promise.all(
      games.map((gameId, i) =>
        until(async () => (await spin(gameId, i, `new-${i}`)).status === 200, 'the game deals'),
      ),
    );
    const playableMs = performance.now() - started;
    // If a recovery is interrupted on a busy machine, another recovery follows, so only the last row in the
    // table of recoveries is checked.
    const recoveries = await sql`
      SELECT players, requests, sum(voided) OVER ()::bigint AS voided FROM recoveries WHERE cell = 0 ORDER BY epoch`;
    expect(recoveries.at(-1)).toEqual({
      players: BigInt(PLAYERS),
      requests: BigInt(ROWS - PLAYERS),
      voided: BigInt(GAMES * 500),
    });
    console.log(
      `ready after ${(readyMs / 1000).toFixed(1)} s, all ${GAMES} games deal after ${(playableMs / 1000).toFixed(1)} s`,
    );
    expectWithin(readyMs, READY_WITHIN_MS);

    for (const player of [0, 1, PLAYERS - 1].filter((p) => p >= GAMES)) {
      const found = await service.partner('GET', `/players/player-${player}`, partner.key);
      expect(found.body.balanceUsd).toBe(1000 - (ROWS / PLAYERS - 1) * 0.25);
      expect(found.body.createdAt).toBe(new Date(firstMs + player).toISOString());
    }
    for (const row of [PLAYERS, 23_456, ROWS - 1]) {
      const answer = await spin(games[row % GAMES]!, row % PLAYERS, `request-${row}`);
      expect([answer.status, answer.headers.get('idempotent-replayed')]).toEqual([200, 'true']);
      const other = await spin(games[row % GAMES]!, (row + 1) % PLAYERS, `request-${row}`);
      expect(other.body.errorCode).toBe('KS-4111');
    }
    const all = ROWS + GAMES;
    await until(
      async () => (await sql`SELECT count(*)::int AS count FROM ledger`)[0]!.count === all,
      'all is booked',
    );
    await booksHold(sql);
  } finally {
    await service.stop();
  }
});

/** Writing so many ids to a cluster takes long, so the test runs only under `npm run test:scale`. */
test.runIf(IS_WHOLE)(
  'a promoted replica that binds almost a million request ids deals within 3 s',
  async () => {
    const cluster = await ownCluster();
    const slot = slotOfCell(0);
    // The window of request ids is so long that all ids stay in Redis.
    const settings = { REQUEST_ID_WINDOW_S: '86400', SPIN_DEADLINE_MS: '1000' };
    const service = await startService({ ...stores, redisUrl: cluster.url }, settings);
    try {
      let tries = 0;
      const deals = async (): Promise<boolean> => {
        const gameId = games[0]!;
        const spun = { gameId, playerId: 'player-0', wagerUsd: 0.25, requestId: `promoted-${tries++}` };
        return (await service.spin(partner.key, spun)).status === 200;
      };
      await until(deals, 'the cell is rebuilt on the cluster', 300_000);
      const primary = (await cluster.primaryOf(slot))!;
      const replica = await cluster.replicaOf(primary);
      const isCaughtUp = async (): Promise<boolean> => {
        const offset = async (server: typeof replica, name: string) =>
          new RegExp(`^${name}:(\\d+)`, 'm').exec(await cluster.ask(server, 'INFO', 'replication'))?.[1];
        return (await offset(primary, 'master_repl_offset')) === (await offset(replica, 'slave_repl_offset'));
      };
      await until(isCaughtUp, 'the replica has all of it', 300_000);
      await cluster.ask(replica, 'CLUSTER', 'FAILOVER');
      await until(
        async () => (await cluster.primaryOf(slot)) === replica,
        'the replica has taken over',
        90_000,
        10,
      );
      const promotedAt = performance.now();
      const wasRepaired = async (): Promise<boolean> =>
        (
          await sql`SELECT 1 FROM recoveries WHERE cell = 0 AND reason LIKE 'A replica has taken over%'
          AND finished_at IS NOT NULL`
        ).length > 0;
      await until(async () => (await deals()) && (await wasRepaired()), 'it deals', 90_000, 10);
      const seconds = (performance.now() - promotedAt) / 1000;
      console.log(
        `a promoted replica with ${ROWS - PLAYERS} request ids dealt after ${seconds.toFixed(2)} s`,
      );
      expectWithin(1000 * seconds, 3000);
    } finally {
      await service.stop();
      await cluster.drop();
    }
  },
);
