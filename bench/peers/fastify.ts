/**
 * The plain design, to compare with: Fastify, one script call a spin, a flusher in the same process. It gives the same
 * guarantees for a spin as the service: acknowledged once it is in Redis's log on disk, one result per requestId, a
 * fixed window, outcomes made beforehand, every spin in Postgres by way of an outbox.
 *
 * Where a choice was open, the cheaper one was taken: outcomes are not sealed or recorded, the ledger has no partitions
 * and no totals, validation knows one partner and one game.
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
import { createLedger, flushForever } from './fastifyLedger.js';
import { spinBodySchema, spinResponseSchema } from './fastifySchemas.js';

declare module 'ioredis' {
  interface RedisCommander<Context> {
    spin(...keysAndArgs: (string | number)[]): Result<SpinReply, Context>;
  }
}

type SpinReply =
  | [status: 'dealt' | 'replay', used: number, spinId: string, outcome: string, balanceMicros: string]
  | [status: 'limited' | 'conflict' | 'exhausted', used: number];

interface SpinBody {
  gameId: number;
  playerId: string;
  wagerUsd: number;
  requestId?: string;
}

const HOST = '127.0.0.1';
const GAME_ID = 1;
const LIMIT = 1_000_000_000;
const WINDOW_SECONDS = 60;
const BIND_SECONDS = 86_400;
const OPENING_MICROS = 1_000_000_000;
const READY_MIN = 100_000;
const PUSHED_AT_ONCE = 5000;
const REFILL_MS = 200;

const { REDIS_URL, DATABASE_URL, API_KEY, PAR_SHEET, LUA_DIR } = process.env as Record<string, string>;

const checked = checkParSheet(JSON.parse(readFileSync(PAR_SHEET!, 'utf8')));
if ('faults' in checked) throw new Error(JSON.stringify(checked.faults));
const { sheet } = checked;
const { combinations } = renderSheet(sheet);
const wagerUsd = Number(microsToUsdText(sheet.denominationMicros));
/** `outcome` and `presentation` of the answer, by outcome. */
const rendered = combinations.map(({ json }) => JSON.parse(`{${json}}`) as Record<string, unknown>);
const apiKeyHash = Buffer.from(hash('sha256', API_KEY!, 'hex'), 'hex');

// The calls of one event-loop turn go out in one write.
const redis = new Redis(REDIS_URL!, { protocol: 2, enableAutoPipelining: true });
redis.defineCommand('spin', {
  numberOfKeys: 5,
  lua: readFileSync(join(LUA_DIR!, 'fastifySpin.lua'), 'utf8'),
});
const sql = postgres(DATABASE_URL!, { max: 2, onnotice: () => {} });

/** Keeps the list of outcomes long. */
async function refill(): Promise<void> {
  let ready = await redis.llen('outcomes');
  while (ready < READY_MIN) {
    const block = makeBlock({ sheet, gameId: GAME_ID, fromIndex: 0, count: PUSHED_AT_ONCE });
    const codes = Array.from(unpackOutcomes(block.outcomes));
    ready = await redis.rpush(
      'outcomes',
      ...codes.map((code) => `${code} ${combinations[code]!.payoutMicros}`),
    );
  }
}

const app = Fastify({ logger: false });

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

const refusals = {
  limited: { status: 429, message: 'The spin rate limit is exceeded' },
  conflict: { status: 409, message: 'The requestId was used for a different spin request' },
  exhausted: { status: 503, message: 'The outcome queue of the game is exhausted for the moment' },
};

app.post<{ Body: SpinBody }>(
  '/api/partner/v1/spin',
  {
    schema: { body: spinBodySchema, response: { 200: spinResponseSchema } },
    onRequest: async (request, reply) => {
      const key = request.headers['x-api-key'];
      if (typeof key !== 'string' || !timingSafeEqual(hash('sha256', key, 'buffer'), apiKeyHash)) {
        return reply.code(401).send({ message: 'The API key is not valid' });
      }
    },
  },
  async (request, reply) => {
    const { gameId, playerId, wagerUsd: wager, requestId } = request.body;
    if (gameId !== GAME_ID) return reply.code(403).send({ message: 'The game is not found' });
    if (wager !== wagerUsd)
      return reply.code(400).send({ message: "The wager must equal the game's fixed wager" });
    const answer = await redis.spin(
      `window:${Math.floor(Date.now() / 1000 / WINDOW_SECONDS)}`,
      `request:${requestId ?? ''}`,
      'balances',
      'outcomes',
      'outbox',
      LIMIT,
      2 * WINDOW_SECONDS,
      hash('sha256', JSON.stringify([gameId, playerId, wager]), 'base64url'),
      playerId,
      sheet.denominationMicros,
      OPENING_MICROS,
      gameId,
      requestId ?? '',
      BIND_SECONDS,
    );
    windowHeaders(reply, answer[1]);
    if (answer[0] !== 'dealt' && answer[0] !== 'replay') {
      const { status, message } = refusals[answer[0]];
      return reply.code(status).send({ message });
    }
    const [, , spinId, outcome, balanceMicros] = answer as Extract<SpinReply, { length: 5 }>;
    return {
      spinId,
      ...rendered[Number(outcome)],
      balance: { balanceUsd: Number(microsToUsdText(Number(balanceMicros))) },
      communityBonus: null,
      ...(requestId === undefined ? {} : { requestId }),
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
