/**
 * Kills front end, worker and Redis while a communal progressive fires. No share may be lost, and none may be
 * paid or notified twice.
 */
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FAILPOINTS, type Failpoint } from '../../../src/platform/failpoints.js';
import { booksHold } from '../../support/books.js';
import type { Client, TestPartner } from '../../support/client.js';
import { auditFindings, type Bonus, micros, RULES, setUp, spin } from '../../support/communal.js';
import { IS_WHOLE } from '../../support/root.js';
import type { ServerProcess } from '../../support/serverProcess.js';
import { environment, spawnService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { type OwnStores, ownStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

const PLAYERS = ['a', 'b', 'c', 'd', 'e'];
/** Every tenth spin fires an event, so each flush contains several events. */
const TIERS = [{ tierLevel: 1, tierName: 'Mini', triggerAtSpins: 10, amountUsd: '1.000003' }];

let stores: OwnStores;
let sql: postgres.Sql<{ bigint: bigint }>;
let redis: Redis;
let front: ServerProcess;
let worker: ServerProcess | undefined;
let partner: TestPartner;
let gameId: number;
let played = 0;
/** Every answered spin, by requestId. */
const answered = new Map<string, { playerId: string; text: string; bonus: Bonus | null }>();

const launch = (roles: string, more: NodeJS.ProcessEnv = {}) =>
  spawnService(environment(stores, { ROLES: roles, ...more }));
const client = (): Client => front.client;

beforeAll(async () => {
  stores = await ownStores();
  sql = postgres(stores.databaseUrl, { max: 2, types: { bigint: postgres.BigInt }, onnotice: () => {} });
  redis = new Redis(stores.redisUrl, { protocol: 2 });
  redis.on('error', () => {});
  front = await launch('http');
  worker = await launch('worker');
  partner = await client().newPartner({ openingBalanceUsd: 1000 });
  gameId = await client().newGame(partner.key, parSheet('classic-3-reel'));
  await setUp(client(), gameId, { ...RULES, tiers: TIERS });
});

afterAll(async () => {
  await worker?.stop();
  await front?.stop();
  redis?.disconnect();
  await sql?.end();
  await stores?.drop();
});

async function one(requestId: string, playerId: string): Promise<void> {
  let text = '';
  let bonus: Bonus | null = null;
  await until(async () => {
    const answer = await spin(client(), partner, gameId, playerId, requestId).catch(() => undefined);
    if (answer?.status !== 200) return false;
    text = answer.text;
    bonus = answer.body.communityBonus;
    return true;
  }, `${requestId} is answered`);
  answered.set(requestId, { playerId, text, bonus });
}

async function play(spins: number): Promise<void> {
  const from = played;
  played += spins;
  await Promise.all(
    Array.from({ length: spins }, (_, i) => one(`r${from + i}`, PLAYERS[(from + i) % PLAYERS.length]!)),
  );
}

const endLeases = () => sql`UPDATE cells SET lease_until = '-infinity'`;
async function stopWorker(): Promise<void> {
  await worker?.stop();
  worker = undefined;
}

/**
 * Starts a worker that kills itself at the given step. Then kills another process, if one is given, and
 * starts a new worker.
 */
async function killWorkerAt(
  step: Failpoint,
  goOn: () => Promise<unknown>,
  killAlso: () => Promise<unknown> = async () => {},
): Promise<void> {
  await stopWorker();
  const doomed = await launch('worker', { FAILPOINT: step }).catch((error: Error) => {
    // The worker may die before it reports that it is ready.
    if (!error.message.includes('SIGKILL')) throw error;
    return undefined;
  });
  await goOn();
  if (doomed !== undefined) expect(await doomed.ended, step).toBe('SIGKILL');
  await killAlso();
  await endLeases();
  worker = await launch('worker');
}

const allBooked = () =>
  until(async () => {
    const rows = await sql`SELECT count(*)::int AS spins FROM ledger WHERE kind = 1`;
    return rows[0]!.spins === answered.size;
  }, 'all that was answered is booked');

const of = (kind: string): Failpoint[] => FAILPOINTS.filter((step) => step.startsWith(`${kind}.`));
const FLUSH: readonly Failpoint[] = IS_WHOLE ? of('flush') : ['flush.communal-booked', 'flush.committed'];
/**
 * Failpoints of a recovery. They include the failpoints of making a block, because a rebuilt cell has no
 * blocks and makes its first block next.
 */
const RECOVERY: readonly Failpoint[] = IS_WHOLE ? [...of('recovery'), ...of('block')] : ['recovery.communal'];

async function killFront(): Promise<void> {
  await front.end('SIGKILL');
  front = await launch('http');
}
/** Waits until Redis is back, because the next worker would exit without it. */
async function killRedis(): Promise<void> {
  await stores.redis.kill();
  await until(async () => (await redis.ping().catch(() => '')) === 'PONG', 'Redis is back');
}
/** Processes to kill in addition to the worker. */
const KILLED_ALSO = IS_WHOLE ? [undefined, killFront, killRedis] : [undefined];

/** Checks that the payouts and notifications in the responses agree with those in the ledger. */
async function isExact(): Promise<void> {
  await allBooked();
  const pot = await client().operator<{ progress: number; budgetUsd: string; paidUsd: string }>(
    'GET',
    `/games/${gameId}/communal`,
  );
  const events = Math.floor(answered.size / 10);
  expect(pot.body.progress).toBe(answered.size);
  expect(micros(pot.body.paidUsd)).toBe(BigInt(events) * 1_000_003n);
  expect(micros(pot.body.budgetUsd)).toBe(100_000_000_000n - BigInt(events) * 1_000_003n);
  const told = [...answered.values()].flatMap(({ playerId, bonus }) =>
    bonus === null ? [] : [`${bonus.eventId} ${playerId}`],
  );
  expect(new Set(told).size).toBe(told.length);
  const [shares] = await sql`
    SELECT count(*)::int AS paid, count(told_by)::int AS told, count(DISTINCT event_id)::int AS events FROM communal_shares`;
  expect(shares).toEqual({ paid: told.length, told: told.length, events });
  await booksHold(sql);
  expect(await auditFindings(stores)).toEqual([]);
}

test(
  'pays each communal share and notifies its player once, whichever process is killed, and replays repeat the notice',
  async () => {
    await play(25);
    for (const killAlso of KILLED_ALSO) {
      for (const step of FLUSH) await killWorkerAt(step, () => play(25), killAlso);
      for (const step of RECOVERY) {
        // At this point some shares are pending. The old worker must have stopped, because it could rebuild
        // the cell before the worker that is to be killed.
        await allBooked();
        await stopWorker();
        await redis.flushdb();
        await killWorkerAt(step, async () => {}, killAlso);
        await play(25);
      }
    }
    const underWay = play(60);
    await until(() => answered.size > played - 50, 'some are answered');
    await killFront();
    await underWay;
    // Kills Redis while spins are in flight. Redis restarts with its append-only file.
    const more = play(60);
    await until(() => answered.size > played - 50, 'some are answered');
    await stores.redis.kill();
    await more;
    await allBooked();
    await redis.flushdb();
    let waiting = 1;
    await until(async () => {
      await play(PLAYERS.length);
      await allBooked();
      const rows = await sql`SELECT count(*)::int AS waiting FROM communal_shares WHERE told_by IS NULL`;
      waiting = rows[0]!.waiting;
      return waiting === 0;
    }, 'all is told');
    await isExact();
    for (const [requestId, { playerId, text }] of answered) {
      expect((await spin(client(), partner, gameId, playerId, requestId)).text).toBe(text);
    }
  },
  IS_WHOLE ? 900_000 : 600_000,
);
