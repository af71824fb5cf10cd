/**
 * Conventional design for comparison: Fastify, one script call per spin, and a flusher in the same process.
 * It gives the same guarantees for a spin as the service: acknowledged once Redis's log is on disk, one
 * result per requestId, a fixed rate limit window, outcomes drawn in advance, and every spin in Postgres by
 * way of an outbox.
 *
 * Where there was a choice, this design takes the cheaper option: outcomes are neither sealed nor recorded,
 * the ledger has no partitions and no totals, and validation supports one partner and one game.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Fastify, { type FastifyReply } from 'fastify';
import { Redis, type Result } from 'ioredis';
import postgres from 'postgres';
import { microsToUsdText } from '../../src/domain/money.js';
import { unpackOutcomes } from '../../src/domain/outcome.js';
import { checkParSheet } from '../../src/domain/par.js';
import { renderSheet } from '../../src/domain/presentation.js';
import { makeBlock } from '../../workers/makeBlock.js';
import { createLedger, flushForever } from './ledger.js';

declare module 'ioredis' {
  interface RedisCommander<Context> {
    spin(...keysAndArgs: (string | number)[]): Result<SpinReply, Context>;
  }
}

/** Reply of the spin script. `used` is the number of requests in the current window. */
type SpinReply =
  | [status: 'dealt' | 'replay', used: number, spinId: string, outcome: string, balanceMicros: string]
  | [status: 'limited' | 'conflict' | 'exhausted', used: number];

interface SpinBody {
  readonly gameId: number;
  readonly playerId: string;
  readonly wagerUsd: number;
  readonly requestId?: string;
}

const HOST = '127.0.0.1';
const GAME_ID = 1;
const LIMIT = 1_000_000_000;
const WINDOW_SECONDS = 60;
const OPENING_MICROS = 1_000_000_000;
const BIND_SECONDS = 86_400;
const READY_MIN = 100_000;
const PUSHED_AT_ONCE = 5000;
const REFILL_MS = 200;
const REFUSALS = {
  limited: { status: 429, message: 'The spin rate limit is exceeded' },
  conflict: { status: 409, message: 'The requestId was used for a different spin request' },
  exhausted: { status: 503, message: 'The outcome queue of the game is exhausted for the moment' },
};

const { API_KEY, PAR_SHEET, REDIS_URL, DATABASE_URL, BASELINES_DIR } = process.env as Record<string, string>;

const opaque = { type: 'string', minLength: 1, maxLength: 128 } as const;
const text = { type: 'string' } as const;
const boolean = { type: 'boolean' } as const;
const number = { type: 'number' } as const;
const integer = { type: 'integer' } as const;
const object = <T extends object>(properties: T) => ({ type: 'object', properties }) as const;

/** Schemas that validate the body and serialize the answer. */
const SCHEMA = {
  body: {
    ...object({
      gameId: { type: 'integer', minimum: 1 },
      playerId: opaque,
      wagerUsd: number,
      requestId: opaque,
    }),
    required: ['gameId', 'playerId', 'wagerUsd'],
  },
  response: {
    200: object({
      spinId: text,
      outcome: object({ prizeTier: integer, payoutUsd: number, isBonusTrigger: boolean }),
      presentation: object({
        type: text,
        comboString: text,
        reelSymbols: { type: 'array', items: object({ name: text, display: text, isWild: boolean }) },
        reelStops: { type: 'array', items: integer },
        animationHints: object({ celebrationTier: text, isNearMiss: boolean, isBonusTrigger: boolean }),
      }),
      balance: object({ balanceUsd: number }),
      communityBonus: { type: 'null' },
      requestId: text,
    }),
  },
};

const checked = checkParSheet(JSON.parse(readFileSync(PAR_SHEET!, 'utf8')));
if ('faults' in checked) throw new Error(JSON.stringify(checked.faults));
const { sheet } = checked;
const { combinations } = renderSheet(sheet);
const wagerUsd = Number(microsToUsdText(sheet.denominationMicros));
/** Members `outcome` and `presentation` of the answer, by outcome. */
const rendered = combinations.map(({ json }) => JSON.parse(`{${json}}`) as Record<string, unknown>);
const apiKeyHash = hash('sha256', API_KEY!, 'buffer');

// Auto-pipelining sends all calls of one event-loop turn in one write.
const redis = new Redis(REDIS_URL!, { protocol: 2, enableAutoPipelining: true });
redis.defineCommand('spin', {
  numberOfKeys: 5,
  lua: readFileSync(join(BASELINES_DIR!, 'fastifySpin.lua'), 'utf8'),
});
const sql = postgres(DATABASE_URL!, { max: 2, onnotice: () => {} });

/** Refills the list of outcomes. They are drawn in the same way as in the service. */
async function refill(): Promise<void> {
  let ready = await redis.llen('outcomes');
  while (ready < READY_MIN) {
    const { outcomes } = makeBlock({ sheet, gameId: GAME_ID, fromIndex: 0, count: PUSHED_AT_ONCE });
    const drawn = Array.from(
      unpackOutcomes(outcomes),
      (code) => `${code} ${combinations[code]!.payoutMicros}`,
    );
    ready = await redis.rpush('outcomes', ...drawn);
  }
}

const deal = ({ playerId, wagerUsd: wager, requestId }: SpinBody): Promise<SpinReply> =>
  redis.spin(
    `window:${Math.floor(Date.now() / 1000 / WINDOW_SECONDS)}`,
    `request:${requestId ?? ''}`,
    'balances',
    'outcomes',
    'outbox',
    LIMIT,
    2 * WINDOW_SECONDS,
    hash('sha256', JSON.stringify([GAME_ID, playerId, wager]), 'base64url'),
    playerId,
    sheet.denominationMicros,
    OPENING_MICROS,
    GAME_ID,
    requestId ?? '',
    BIND_SECONDS,
  );

function windowHeaders(reply: FastifyReply, used: number): void {
  const second = Math.floor(Date.now() / 1000);
  const left = WINDOW_SECONDS - (second % WINDOW_SECONDS);
  const remaining = Math.max(0, LIMIT - used);
  reply.headers({
    'X-Request-Id': reply.request.id,
    'X-RateLimit-Limit': LIMIT,
    'X-RateLimit-Remaining': remaining,
    'X-RateLimit-Reset': second + left,
    'RateLimit-Policy': `"spin";q=${LIMIT};w=${WINDOW_SECONDS}`,
    RateLimit: `"spin";r=${remaining};t=${left}`,
  });
}

const app = Fastify({ logger: false });
app.post<{ Body: SpinBody }>(
  '/api/partner/v1/spin',
  {
    schema: SCHEMA,
    onRequest: async (request, reply) => {
      const key = request.headers['x-api-key'];
      if (typeof key !== 'string' || !timingSafeEqual(hash('sha256', key, 'buffer'), apiKeyHash)) {
        return reply.code(401).send({ message: 'The API key is not valid' });
      }
    },
  },
  async (request, reply) => {
    const { gameId, wagerUsd: wager, requestId } = request.body;
    if (gameId !== GAME_ID) return reply.code(403).send({ message: 'The game is not found' });
    if (wager !== wagerUsd)
      return reply.code(400).send({ message: "The wager must equal the game's fixed wager" });
    const [outcome, used, spinId, code, balanceMicros] = await deal(request.body);
    windowHeaders(reply, used);
    if (outcome !== 'dealt' && outcome !== 'replay') {
      const { status, message } = REFUSALS[outcome];
      return reply.code(status).send({ message });
    }
    return {
      spinId,
      ...rendered[Number(code)],
      balance: { balanceUsd: Number(microsToUsdText(Number(balanceMicros))) },
      communityBonus: null,
      requestId,
    };
  },
);

await createLedger(sql);
await refill();
setInterval(() => refill().catch(console.error), REFILL_MS);
flushForever(REDIS_URL!, sql).catch((error: unknown) => {
  console.error('The ledger is halted:', error);
  process.exit(1);
});
console.log(`API ${await app.listen({ host: HOST, port: 0 })}`);
process.once('SIGTERM', () => process.exit(0));
