/**
 * The plain design, to compare with: Fastify, one script call a spin, a flusher in the same process. It gives the same
 * guarantees for a spin as the service: acknowledged once it is in Redis's log on disk, one result per requestId, a
 * fixed window, outcomes made beforehand, every spin in Postgres by way of an outbox.
 *
 * Where a choice was open, the cheaper one was taken: outcomes are not sealed or recorded, the ledger has no partitions
 * and no totals, validation knows one partner and one game.
 */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis, type Result } from 'ioredis';
import postgres from 'postgres';
import { createLedger, flushForever } from './fastifyLedger.js';
import {
  type Dealt,
  drawOutcomes,
  GAME_ID,
  LIMIT,
  OPENING_MICROS,
  type SpinBody,
  serve,
  WINDOW_SECONDS,
  wagerMicros,
} from './plainServer.js';

declare module 'ioredis' {
  interface RedisCommander<Context> {
    spin(...keysAndArgs: (string | number)[]): Result<SpinReply, Context>;
  }
}

type SpinReply =
  | [status: 'dealt' | 'replay', used: number, spinId: string, outcome: string, balanceMicros: string]
  | [status: 'limited' | 'conflict' | 'exhausted', used: number];

const BIND_SECONDS = 86_400;
const READY_MIN = 100_000;
const PUSHED_AT_ONCE = 5000;
const REFILL_MS = 200;

const { REDIS_URL, DATABASE_URL, BASELINES_DIR } = process.env as Record<string, string>;

// The calls of one event-loop turn go out in one write.
const redis = new Redis(REDIS_URL!, { protocol: 2, enableAutoPipelining: true });
redis.defineCommand('spin', {
  numberOfKeys: 5,
  lua: readFileSync(join(BASELINES_DIR!, 'fastifySpin.lua'), 'utf8'),
});
const sql = postgres(DATABASE_URL!, { max: 2, onnotice: () => {} });

/** Keeps the list of outcomes long. */
async function refill(): Promise<void> {
  let ready = await redis.llen('outcomes');
  while (ready < READY_MIN) {
    const drawn = drawOutcomes(PUSHED_AT_ONCE);
    ready = await redis.rpush(
      'outcomes',
      ...drawn.map(({ code, payoutMicros }) => `${code} ${payoutMicros}`),
    );
  }
}

async function deal({ playerId, wagerUsd, requestId }: SpinBody): Promise<Dealt> {
  const answer = await redis.spin(
    `window:${Math.floor(Date.now() / 1000 / WINDOW_SECONDS)}`,
    `request:${requestId ?? ''}`,
    'balances',
    'outcomes',
    'outbox',
    LIMIT,
    2 * WINDOW_SECONDS,
    hash('sha256', JSON.stringify([GAME_ID, playerId, wagerUsd]), 'base64url'),
    playerId,
    wagerMicros,
    OPENING_MICROS,
    GAME_ID,
    requestId ?? '',
    BIND_SECONDS,
  );
  if (answer[0] !== 'dealt' && answer[0] !== 'replay') return { status: answer[0], used: answer[1] };
  const [, used, spinId, outcome, balanceMicros] = answer as Extract<SpinReply, { length: 5 }>;
  return { status: 'dealt', used, spinId, code: Number(outcome), balanceMicros: Number(balanceMicros) };
}

await createLedger(sql);
await refill();
setInterval(() => refill().catch(console.error), REFILL_MS);
flushForever(REDIS_URL!, sql).catch((error: unknown) => {
  console.error('The ledger is halted:', error);
  process.exit(1);
});
await serve(deal);
