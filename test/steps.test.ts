/** The worker is ended by SIGKILL at each named step; the next one goes on, and nothing is lost or done twice. */
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { STEPS, type Step } from '../src/steps.js';
import { booksHold } from './support/books.js';
import {
  environment,
  freshStores,
  parSheet,
  spawnService,
  startService,
  type TestPartner,
  type TestStores,
  until,
} from './support/service.js';

const WAGER = 0.25;
const PLAYERS = 3;

let stores: TestStores;
let sql: postgres.Sql<{ bigint: bigint }>;
let redis: Redis;
let front: Awaited<ReturnType<typeof startService>>;
let partner: TestPartner;
let gameId: number;
/** By requestId: every spin that was answered, with its player. */
const answered = new Map<string, { playerId: string; text: string }>();

/** What a worker that was killed held is free once its leases have ended; no test waits for that here. */
const endLeases = () => sql`UPDATE cells SET lease_until = '-infinity'`;

const worker = () => startService(stores, { ROLES: 'worker' });

beforeAll(async () => {
  stores = await freshStores();
  sql = postgres(stores.databaseUrl, { max: 2, types: { bigint: postgres.BigInt } });
  redis = new Redis(stores.redisUrl, { protocol: 2 });
  front = await startService(stores, { ROLES: 'http' });
  const first = await worker();
  partner = await front.newPartner({ openingBalanceUsd: 50 });
  gameId = await front.newGame(partner.key, parSheet('classic-3-reel'));
  await spins('first', 10);
  await until(async () => (await booked()) === answered.size, 'the first spins are booked');
  await first.stop();
});

afterAll(async () => {
  await front?.stop();
  redis?.disconnect();
  await sql?.end();
  await stores?.drop();
});

const booked = async (): Promise<number> =>
  Number((await sql`SELECT count(*) AS count FROM ledger WHERE kind = 1`)[0]!.count);

const spin = (requestId: string, playerId: string) =>
  front.spin(partner.key, { gameId, playerId, wagerUsd: WAGER, requestId });

async function spins(name: string, count: number): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const requestId = `${name}-${i}`;
      const playerId = `p${i % PLAYERS}`;
      const { status, text } = await spin(requestId, playerId);
      expect(status, text).toBe(200);
      answered.set(requestId, { playerId, text });
    }),
  );
}

/** Starts a worker that kills itself at the step, lets something go on, and waits until it is dead. */
async function killedAt(step: Step, goOn: () => Promise<unknown>): Promise<void> {
  const child = await spawnService(environment(stores, { ROLES: 'worker', KILL_AT: step })).catch(
    // It may be dead before it says that it is ready.
    (error: Error) => {
      if (!error.message.includes('SIGKILL')) throw error;
    },
  );
  try {
    await goOn();
    if (child !== undefined) {
      await until(
        () => child.child.exitCode !== null || child.child.signalCode !== null,
        `the worker is dead at ${step}`,
      );
    }
  } finally {
    // Where it never came to the step.
    child?.child.kill('SIGKILL');
  }
  await endLeases();
}

/** Another worker takes over: all that was answered is booked, once, and is answered again the same. */
async function allIsWell(step: Step): Promise<void> {
  const next = await worker();
  try {
    await until(async () => (await front.request('GET', '/readyz')).status === 200, 'the service is ready');
    await until(async () => (await spin(`after-${step}`, 'p0')).status === 200, 'spins are dealt again');
    const { text } = await spin(`after-${step}`, 'p0');
    answered.set(`after-${step}`, { playerId: 'p0', text });
    await until(async () => (await booked()) === answered.size, 'all is booked');
    await booksHold(sql);
    for (const [requestId, { playerId, text: before }] of answered) {
      expect((await spin(requestId, playerId)).text).toBe(before);
    }
    expect(await booked()).toBe(answered.size);
    await until(async () => (await redis.xlen('{c0}:outbox')) === 0, 'the outbox is trimmed');
    expect([...(await sql`SELECT cell, halted FROM cells WHERE halted IS NOT NULL`)]).toEqual([]);
    expect([
      ...(await sql`SELECT cell FROM recoveries JOIN cells USING (cell, epoch) WHERE finished_at IS NULL`),
    ]).toEqual([]);
  } finally {
    await next.stop();
  }
}

const of = (kind: string): Step[] => STEPS.filter((step) => step.startsWith(`${kind}.`));

test('every step is of a kind that is tried here', () => {
  expect([...of('flush'), ...of('block'), ...of('recovery')]).toEqual([...STEPS]);
});

describe('a worker that is killed', () => {
  test.each(of('flush'))('at %s', async (step) => {
    await killedAt(step, () => spins(step, 20));
    await allIsWell(step);
  });

  test.each(of('block'))('at %s', async (step) => {
    await killedAt(step, async () => {
      const asked = await front.operator('POST', `/games/${gameId}/blocks`, { count: 1 });
      expect(asked.status).toBe(202);
    });
    await allIsWell(step);
  });

  test.each(of('recovery'))('at %s', async (step) => {
    await redis.flushdb();
    await killedAt(step, async () => {});
    await allIsWell(step);
  });

  test('at several steps of a recovery, one after the other', async () => {
    await redis.flushdb();
    for (const step of [
      'recovery.voided',
      'recovery.cleared',
      'recovery.players',
      'recovery.games',
    ] as const) {
      await killedAt(step, async () => {});
    }
    await allIsWell('recovery.games');
  });
});
