/**
 * Tests the void of a raffle: no more tickets are sold, each committed ticket is refunded exactly once, and
 * players keep their prizes.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { poolFaults, type RevealedPool } from '../../../src/domain/games/rafflePool.js';
import { notifyGameStatuses } from '../../../src/engine/catalog/dealingSwitches.store.js';
import { readGame } from '../../../src/engine/redis/cellRecords.js';
import { cellKey, gamesKey, outboxKey } from '../../../src/engine/redis/keys.js';
import { FAILPOINTS, type Failpoint } from '../../../src/platform/failpoints.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { examineBlock } from '../../../verifier/verify.mjs';
import { world } from '../../setup/world.js';
import { booksHold } from '../../support/books.js';
import { command } from '../../support/command.js';
import { auditFindings } from '../../support/communal.js';
import { movePartner } from '../../support/moves.js';
import { IS_WHOLE } from '../../support/root.js';
import { constants, environment, spawnService, startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

interface Voided {
  tickets: number;
  refunded: number;
  failed: number;
  refundedUsd: number;
  isDone: boolean;
  isInForce: boolean;
}

const PRICE = 0.5;
const REASON = 'Tickets were shown that a restore has lost';
const {
  stores,
  service: front,
  sql,
  redis,
  partner,
} = world({ ROLES: 'http', CELLS: '2' }, { partner: { openingBalanceUsd: 10 } });
let worker: Awaited<ReturnType<typeof startService>> | undefined;

const startWorker = async (): Promise<void> => {
  // The leases of a killed worker are ended at once, so that no test waits for them.
  await sql`UPDATE cells SET lease_until = '-infinity'`;
  worker = await startService(stores, { ROLES: 'worker', CELLS: '2' });
};
const stopWorker = async (): Promise<void> => {
  await worker?.stop();
  worker = undefined;
};

beforeAll(async () => {
  await startWorker();
});

afterAll(async () => {
  await stopWorker();
});

let made = 0;
async function makeRaffle(poolSize: number): Promise<number> {
  const prizes = [{ prizeName: 'Mug', prizeTier: 1, valueUsd: 0.75, count: poolSize }];
  const body = {
    displayName: 'A raffle',
    configName: `VOIDED_${++made}`,
    ticketPriceUsd: PRICE,
    poolSize,
    prizes,
  };
  const path = `/partners/${partner.partnerId}/raffles`;
  const answer = await front.operator<{ gameConfigId: number }>('POST', path, body);
  expect(answer.status, answer.text).toBe(201);
  return answer.body.gameConfigId;
}

const poolOf = (gameId: number) =>
  front.partner<RevealedPool & { status: string; statusReason?: string; closedAt: string | null }>(
    'GET',
    `/games/${gameId}/pool`,
    partner.key,
  );

async function openRaffle(poolSize: number): Promise<number> {
  const gameId = await makeRaffle(poolSize);
  await until(async () => (await poolOf(gameId)).body.status === 'ACTIVE', 'the raffle is open');
  return gameId;
}

const buy = (gameId: number, requestId: string, playerId = 'alice') =>
  front.spin(partner.key, { gameId, playerId, wagerUsd: PRICE, requestId });

async function buySome(gameId: number, tickets: number, playerId?: string): Promise<void> {
  for (let i = 0; i < tickets; i++) {
    const bought = await buy(gameId, `${gameId}-${playerId ?? ''}-${i}`, playerId);
    expect(bought.status, bought.text).toBe(200);
  }
}

const voidIt = (gameId: number, reason: unknown = REASON) =>
  front.operator<Voided>('POST', `/raffles/${gameId}/void`, { reason });

async function voided(gameId: number): Promise<Voided> {
  let newest: Voided | undefined;
  await until(async () => {
    newest = (await voidIt(gameId, 'another reason')).body;
    expect(newest.refunded + newest.failed).toBeLessThanOrEqual(newest.tickets);
    return newest.isDone;
  }, 'each ticket is refunded');
  return newest!;
}

const balanceOf = async (playerId: string): Promise<number> => {
  const path = `/players/${playerId}`;
  return (await front.partner<{ balanceUsd: number }>('GET', path, partner.key)).body.balanceUsd;
};

const refundsOf = async (gameId: number): Promise<Record<string, number>> => {
  const rows = await sql<{ player_id: string; refunds: bigint }[]>`
    SELECT player_id, count(*) AS refunds FROM ledger
    WHERE kind = 3 AND starts_with(request_id, ${`raffle-void:${gameId}:`}) AND credit_micros = 500000 GROUP BY 1`;
  return Object.fromEntries(rows.map((row) => [row.player_id, Number(row.refunds)]));
};

const failed = (status: number, errorCode: string) => ({ status, body: { status: 'error', errorCode } });
const isWell = async (): Promise<void> => {
  await booksHold(sql);
  expect(await auditFindings(stores)).toEqual([]);
};

describe('voiding a raffle', () => {
  test('a voided raffle is closed, refunds each ticket once, does not take prizes back and reveals its pool', async () => {
    const gameId = await openRaffle(10);
    await buySome(gameId, 3);
    await buySome(gameId, 2, 'bob');
    const first = await buy(gameId, `${gameId}--0`);
    expect(await balanceOf('alice')).toBe(10.75);

    const answer = await voidIt(gameId);
    expect(answer).toMatchObject({
      status: 200,
      body: { gameConfigId: gameId, status: 'CLOSED', statusReason: 'VOIDED', tickets: 5, failed: 0 },
    });
    expect(await buy(gameId, 'too-late')).toMatchObject(failed(410, 'KS-4218'));
    expect(await voided(gameId)).toMatchObject({ tickets: 5, refunded: 5, failed: 0, refundedUsd: 2.5 });
    expect(await refundsOf(gameId)).toEqual({ alice: 3, bob: 2 });
    expect(await balanceOf('alice')).toBe(12.25);
    expect(await balanceOf('bob')).toBe(11.5);

    const shown = { status: 'CLOSED', statusReason: 'VOIDED' };
    const { body: list } = await front.partner<{ games: object[] }>('GET', '/games', partner.key);
    expect(list.games).toContainEqual(expect.objectContaining({ gameConfigId: gameId, ...shown }));
    const { body: pool } = await poolOf(gameId);
    expect(pool).toMatchObject(shown);
    expect(poolFaults(pool)).toEqual([]);
    const { seed, nonce } = pool.reveal;
    const logged = await front.partner('GET', `/games/${gameId}/blocks/0?outcomes=true`, partner.key);
    expect(logged.body).toMatchObject({ status: 'EXHAUSTED', reveal: { seed, nonce } });
    const { ticketPriceUsd, poolSize, prizes } = pool;
    const [ofLog] = await sql<{ vkeys: string[] }[]>`SELECT vkeys FROM logs`;
    const options = { logKeys: ofLog!.vkeys, table: { ticketPriceUsd, poolSize, prizes } };
    expect(await examineBlock(logged.body as object, options)).toEqual([]);
    expect((await front.operator('GET', `/games/${gameId}`)).body).toMatchObject({
      ...shown,
      ticketsRemaining: 5,
    });
    // The response to a bound requestId is its ticket at any later time.
    expect((await buy(gameId, `${gameId}--0`)).text).toBe(first.text);
    for (const status of ['ACTIVE', 'SUSPENDED'])
      expect(await front.operator('PATCH', `/games/${gameId}`, { status })).toMatchObject(
        failed(410, 'KS-4218'),
      );
    const { body: log } = await front.operator<{ entries: { action: string; after: object }[] }>(
      'GET',
      `/audit-log?limit=100&subject=game:${gameId}`,
    );
    const entries = log.entries.map(({ action, after }) => ({ action, after })).reverse();
    expect(entries.slice(-3)).toEqual([
      { action: 'raffle.void', after: { reason: REASON } },
      { action: 'raffle.close', after: { tickets: 5 } },
      { action: 'raffle.refund', after: { tickets: 5, refunded: 5, failed: 0, refundedMicros: '2500000' } },
    ]);
    const kept =
      await sql`SELECT DISTINCT reason FROM adjustments WHERE starts_with(request_id, 'raffle-void:')`;
    expect([...kept]).toEqual([{ reason: REASON }]);
    await isWell();
  });

  test('concurrent calls void a raffle only once', async () => {
    const gameId = await openRaffle(5);
    await buySome(gameId, 2);
    const answers = await Promise.all([voidIt(gameId), voidIt(gameId), voidIt(gameId)]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(await voided(gameId)).toMatchObject({ tickets: 2, refunded: 2 });
    const entries =
      await sql`SELECT 1 FROM audit_log WHERE action = 'raffle.void' AND subject = ${`game:${gameId}`}`;
    expect(entries).toHaveLength(1);
  });

  test('the command raffle void also voids a raffle that was suspended by a restore', async () => {
    const gameId = await openRaffle(5);
    await buySome(gameId, 1);
    await sql`UPDATE games SET status = 'SUSPENDED', status_reason = 'RESTORED' WHERE game_id = ${gameId}`;
    expect((await poolOf(gameId)).body).toMatchObject({ status: 'SUSPENDED', statusReason: 'RESTORED' });
    const args = ['raffle', 'void', String(gameId), '--reason', REASON, '--json'];
    expect((await command(front, ...args)).status).not.toBe(0);
    const { status, out, error } = await command(front, ...args, '--wait', '--yes');
    expect(status, error).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ tickets: 1, refunded: 1, refundedUsd: PRICE, isDone: true });
    expect((await poolOf(gameId)).body).toMatchObject({ status: 'CLOSED', statusReason: 'VOIDED' });
  });

  test("a void records tickets that can't be refunded as failed, and the audit finds tickets without a refund", async () => {
    const gameId = await openRaffle(5);
    await buySome(gameId, 1, 'rich');
    await buySome(gameId, 1, 'poor');
    const path = `/partners/${partner.partnerId}/players/rich/adjustments`;
    const amountUsd = 9_000_000_000 - (await balanceOf('rich'));
    const rich = await front.operator('POST', path, { amountUsd, reason: 'rich', requestId: 'rich' });
    expect(rich.status, rich.text).toBe(200);
    await voidIt(gameId);
    expect(await voided(gameId)).toMatchObject({ tickets: 2, refunded: 1, failed: 1, refundedUsd: PRICE });
    const failures = await sql`SELECT refusal FROM refund_failures WHERE game_id = ${gameId}`;
    expect([...failures]).toEqual([{ refusal: 'overflow' }]);
    expect(await balanceOf('rich')).toBe(9_000_000_000);
    await isWell();

    // The audit must find a ticket without a refund, and a refunded ticket that is recorded as failed.
    const problems = async () =>
      (await auditFindings(stores)).map((found) => (found as { problem: string }).problem).sort();
    await sql`UPDATE refund_failures f SET entry_id = l.entry_id FROM ledger l
      WHERE f.game_id = ${gameId} AND l.game_id = f.game_id AND l.player_id = 'poor'`;
    expect(await problems()).toEqual([
      'a failed refund names no ticket, or a ticket that has a refund',
      'a voided raffle is on record as refunded, but tickets lack a refund; the first one is listed',
      'the refunded ticket is on record as not refunded',
    ]);
    await sql`UPDATE refund_failures f SET entry_id = l.entry_id FROM ledger l
      WHERE f.game_id = ${gameId} AND l.game_id = f.game_id AND l.player_id = 'rich'`;
    // The refunds stay, but the raffle is changed as if it had never been voided. It is then closed before
    // its last ticket.
    await sql`UPDATE raffles SET voided_at = NULL WHERE game_id = ${gameId}`;
    expect(await problems()).toEqual([
      'a raffle must be closed if, and only if, all its tickets are in the ledger or it is voided',
      'the counter in Redis is ahead of the ledger and the outbox',
      'the refund names no ticket of a voided raffle, or a ticket that already has a refund',
    ]);
    await sql`UPDATE raffles SET voided_at = now() WHERE game_id = ${gameId}`;
    await isWell();
  });

  test('a raffle whose last ticket is committed after its void has only one closing event', async () => {
    const gameId = await openRaffle(2);
    await buySome(gameId, 1);
    const { cell } = (await sql`SELECT cell FROM partners WHERE partner_id = ${partner.partnerId}`)[0]!;
    // No flush can commit while the ledger table is renamed.
    await sql`ALTER TABLE ledger RENAME TO away`;
    const last = buy(gameId, 'the-last');
    await until(async () => (await redis.xlen(outboxKey(Number(cell)))) > 0, 'the last ticket is dealt');
    expect((await voidIt(gameId)).body).toMatchObject({ status: 'CLOSED', statusReason: 'VOIDED' });
    await sql`ALTER TABLE away RENAME TO ledger`;
    await last;
    expect(await voided(gameId)).toMatchObject({ tickets: 2, refunded: 2 });
    const events = await sql`
      SELECT body::json->'data'->>'status' AS status, body::json->'data'->>'reason' AS reason FROM events
      WHERE event = 'game.status_changed' AND (body::json->'data'->>'gameId')::int = ${gameId}`;
    expect([...events]).toEqual([{ status: 'CLOSED', reason: 'VOIDED' }]);
    const closes =
      await sql`SELECT 1 FROM audit_log WHERE action = 'raffle.close' AND subject = ${`game:${gameId}`}`;
    expect(closes).toHaveLength(1);
    expect((await poolOf(gameId)).body).toMatchObject({ status: 'CLOSED', statusReason: 'VOIDED' });
    await isWell();
  });

  test('a voided raffle gets no event for a dealing switch that was turned on before the void', async () => {
    const gameId = await openRaffle(2);
    await voidIt(gameId);
    await voided(gameId);
    await sql`
      INSERT INTO game_status_notices (at, status, reason, game_ids) VALUES (now(), 'ACTIVE', 'SWITCH', ${[gameId]})`;
    const own = connectPostgres(stores.databaseUrl, { max: 1, name: 'test', onError: () => {} });
    await notifyGameStatuses(own);
    await own.end();
    const events = await sql`
      SELECT body::json->'data'->>'status' AS status FROM events
      WHERE event = 'game.status_changed' AND (body::json->'data'->>'gameId')::int = ${gameId}`;
    expect([...events]).toEqual([{ status: 'CLOSED' }]);
  });

  test('the void of a raffle continues while its partner moves to another cell, and no ticket is sold there', async () => {
    const gameId = await openRaffle(40);
    await buySome(gameId, 20);
    const { cell } = (await sql`SELECT cell FROM partners WHERE partner_id = ${partner.partnerId}`)[0]!;
    const moving = movePartner(front, partner.partnerId, 1 - Number(cell));
    await voidIt(gameId);
    await moving;
    expect(await voided(gameId)).toMatchObject({ tickets: 20, refunded: 20 });
    expect(await refundsOf(gameId)).toEqual({ alice: 20 });
    expect(await buy(gameId, 'after-the-move')).toMatchObject(failed(410, 'KS-4218'));
    await isWell();
  });

  test('refuses to void a sold-out raffle or a slot game, and an adjustment in the name of a void', async () => {
    const gameId = await openRaffle(1);
    await buySome(gameId, 1);
    expect(await voidIt(gameId)).toMatchObject(failed(410, 'KS-4218'));
    const slot = await front.newGame(partner.key, parSheet('classic-3-reel'));
    expect(await voidIt(slot)).toMatchObject(failed(400, 'KS-4216'));
    const refund = { amountUsd: 1, reason: 'own', requestId: `raffle-void:${gameId}:x` };
    const path = `/partners/${partner.partnerId}/players/alice/adjustments`;
    expect(await front.operator('POST', path, refund)).toMatchObject(failed(400, 'KS-4101'));
    expect(await refundsOf(gameId)).toEqual({});
  });

  test('a void refunds every ticket that was being sold, and Redis sells no more, also after a rebuild', async () => {
    const gameId = await openRaffle(200);
    const { cell } = (await sql`SELECT cell FROM partners WHERE partner_id = ${partner.partnerId}`)[0]!;
    const name = Number(cell);
    const counter = async () => readGame((await redis.hgetBuffer(gamesKey(name), String(gameId)))!).nextIndex;
    // The lock stops commits of tickets, and nothing else that a void needs.
    const lock = await sql.reserve();
    const [{ since }] = await lock<[{ since: Date }]>`SELECT clock_timestamp() AS since`;
    await lock`BEGIN`;
    await lock`LOCK TABLE game_days IN SHARE MODE`;
    const bought = Array.from({ length: 40 }, (_, i) => buy(gameId, `under-way-${i}`, `p${i % 4}`));
    await until(async () => (await redis.xlen(outboxKey(name))) > 0, 'tickets are dealt');
    expect((await voidIt(gameId)).body).toMatchObject({ tickets: 0, isDone: false });
    await until(async () => (await counter()) === 200, 'Redis sells no more');
    const pool = async () => (await poolOf(gameId)).body;
    const looks = () => sql`
      SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND query_start > ${since}
        AND query LIKE 'SELECT cursor_id FROM cells WHERE cell = $1%'`;
    await until(
      async () => (await looks()).length > 0 || (await pool()).closedAt !== null,
      'the worker looks whether the tickets are committed',
    );
    expect((await voidIt(gameId)).body).toMatchObject({ tickets: 0, isDone: false });
    expect(await pool()).toMatchObject({ status: 'CLOSED', reveal: null, closedAt: null });
    await lock`COMMIT`;
    lock.release();
    const answers = await Promise.all(bought);
    const sold = answers.filter(({ status }) => status === 200).length;
    expect(sold).toBeGreaterThan(0);
    expect(await voided(gameId)).toMatchObject({ tickets: sold, refunded: sold, failed: 0 });
    await isWell();

    const rebuilds = async (): Promise<number> =>
      (await sql`SELECT 1 FROM recoveries WHERE cell = ${name} AND finished_at IS NOT NULL`).length;
    const before = await rebuilds();
    await redis.del(cellKey(name));
    await until(async () => (await rebuilds()) > before, 'the cell is rebuilt');
    await until(async () => (await redis.hexists(gamesKey(name), String(gameId))) === 1, 'games are there');
    expect(await counter()).toBe(200);
    expect(await redis.keys(`*:block:${gameId}:*`)).toEqual([]);
    await isWell();
  });
});

describe('the void of a raffle while its worker is down', () => {
  /** Starts a worker that kills itself at the given step and waits for its death. */
  async function killedAt(step: Failpoint): Promise<void> {
    await sql`UPDATE cells SET lease_until = '-infinity'`;
    const settings = { ROLES: 'worker', CELLS: '2', FAILPOINT: step };
    const child = await spawnService(environment(stores, settings)).catch((error: Error) => {
      // The worker may die before it reports that it is ready.
      if (!error.message.includes('SIGKILL')) throw error;
    });
    try {
      const { exitCode, signalCode } = child?.child ?? { exitCode: null, signalCode: 'SIGKILL' };
      const isDead = () => (child?.child.signalCode ?? signalCode) !== null || exitCode !== null;
      await until(isDead, `the worker is dead at ${step}`);
    } finally {
      child?.child.kill('SIGKILL');
    }
  }

  const SOME = new Set<Failpoint>(['void.adjusted', 'void.noted']);
  const steps = FAILPOINTS.filter((step) => step.startsWith('void.') && (IS_WHOLE || SOME.has(step)));

  test('a void is answered after Redis has ended the sale, so a paused front end sells no ticket later', async () => {
    const gameId = await openRaffle(50);
    await buySome(gameId, 2);
    const settings = { ROLES: 'http', CELLS: '2', ...constants({ restrictionReadMs: 600 }) };
    const paused = await spawnService(environment(stores, settings));
    try {
      await stopWorker();
      paused.child.kill('SIGSTOP');
      const answer = await voidIt(gameId);
      expect(answer).toMatchObject({ status: 200, body: { isInForce: true } });
      const { cell } = (await sql`SELECT cell FROM partners WHERE partner_id = ${partner.partnerId}`)[0]!;
      const record = (await redis.hgetBuffer(gamesKey(Number(cell)), String(gameId)))!;
      expect(readGame(record).nextIndex).toBe(50);
      const late = Array.from({ length: 10 }, (_, i) =>
        paused.client.spin(partner.key, {
          gameId,
          playerId: 'late',
          wagerUsd: PRICE,
          requestId: `late-${i}`,
        }),
      );
      paused.child.kill('SIGCONT');
      for (const { status, text } of await Promise.all(late)) expect(status, text).not.toBe(200);
    } finally {
      await paused.end('SIGKILL');
    }
    await startWorker();
    expect(await voided(gameId)).toMatchObject({ tickets: 2, refunded: 2 });
    await isWell();
  });

  test('a void whose end of the sale Redis does not confirm is answered 202, and a worker ends the sale', async () => {
    const gameId = await openRaffle(50);
    const { cell } = (await sql`SELECT cell FROM partners WHERE partner_id = ${partner.partnerId}`)[0]!;
    await stopWorker();
    const hasty = await startService(stores, { ROLES: 'http', CELLS: '2', SPIN_DEADLINE_MS: '1500' });
    const key = cellKey(Number(cell));
    const epoch = (await redis.hget(key, 'epoch'))!;
    try {
      await redis.hset(key, 'epoch', 'elsewhere');
      const answer = await hasty.operator('POST', `/raffles/${gameId}/void`, { reason: REASON });
      expect(answer).toMatchObject({ status: 202, body: { isInForce: false, isDone: false } });
    } finally {
      await redis.hset(key, 'epoch', epoch);
      await hasty.stop();
    }
    await startWorker();
    expect(await voided(gameId)).toMatchObject({ tickets: 0, isInForce: true });
    await isWell();
  });

  test('voids an unsealed raffle without a worker, and refunds each ticket once at whatever step workers are killed', async () => {
    const gameId = await openRaffle(30);
    await buySome(gameId, 12);
    await buySome(gameId, 12, 'bob');
    await stopWorker();
    const unsealed = await makeRaffle(3);
    expect((await voidIt(unsealed)).body).toMatchObject({ tickets: 0, isDone: false });
    await voidIt(gameId);
    for (const step of steps) await killedAt(step);
    await startWorker();
    expect(await voided(gameId)).toMatchObject({ tickets: 24, refunded: 24, failed: 0, refundedUsd: 12 });
    expect(await refundsOf(gameId)).toEqual({ alice: 12, bob: 12 });
    expect(await voided(unsealed)).toMatchObject({ tickets: 0, refunded: 0, refundedUsd: 0 });
    expect((await poolOf(unsealed)).body).toMatchObject({
      status: 'CLOSED',
      statusReason: 'VOIDED',
      poolCommitment: null,
      sealedAt: null,
      reveal: null,
    });
    await isWell();
  });
});
