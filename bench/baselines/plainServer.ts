/**
 * What the Fastify baselines have in common: the spin route with key, schemas, window headers and answer. How a spin is dealt
 * is each one's own.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import Fastify, { type FastifyReply } from 'fastify';
import { microsToUsdText } from '../../src/domain/money.js';
import { unpackOutcomes } from '../../src/domain/outcome.js';
import { checkParSheet } from '../../src/domain/par.js';
import { renderSheet } from '../../src/domain/presentation.js';
import { makeBlock } from '../../workers/makeBlock.js';
import { spinBodySchema, spinResponseSchema } from './fastifySchemas.js';

export interface SpinBody {
  readonly gameId: number;
  readonly playerId: string;
  readonly wagerUsd: number;
  readonly requestId?: string;
}

/** What became of a spin; `used`: requests of this window. */
export type Dealt = { readonly used: number } & (
  | {
      readonly status: 'dealt';
      readonly spinId: string;
      readonly code: number;
      readonly balanceMicros: number;
    }
  | { readonly status: 'limited' | 'conflict' | 'exhausted' }
);

export const GAME_ID = 1;
export const LIMIT = 1_000_000_000;
export const WINDOW_SECONDS = 60;
export const OPENING_MICROS = 1_000_000_000;

const HOST = '127.0.0.1';

const { API_KEY, PAR_SHEET } = process.env as Record<string, string>;

const checked = checkParSheet(JSON.parse(readFileSync(PAR_SHEET!, 'utf8')));
if ('faults' in checked) throw new Error(JSON.stringify(checked.faults));
const { sheet } = checked;
const { combinations } = renderSheet(sheet);
const wagerUsd = Number(microsToUsdText(sheet.denominationMicros));
/** `outcome` and `presentation` of the answer, by outcome. */
const rendered = combinations.map(({ json }) => JSON.parse(`{${json}}`) as Record<string, unknown>);
const apiKeyHash = Buffer.from(hash('sha256', API_KEY!, 'hex'), 'hex');

export const wagerMicros = sheet.denominationMicros;

/** Outcomes, drawn as the service draws them. */
export function drawOutcomes(count: number): { code: number; payoutMicros: number }[] {
  const block = makeBlock({ sheet, gameId: GAME_ID, fromIndex: 0, count });
  return Array.from(unpackOutcomes(block.outcomes), (code) => ({
    code,
    payoutMicros: combinations[code]!.payoutMicros,
  }));
}

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

/** Listens, and prints where. */
export async function serve(deal: (body: SpinBody) => Promise<Dealt>): Promise<void> {
  const app = Fastify({ logger: false });
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
      const { gameId, wagerUsd: wager, requestId } = request.body;
      if (gameId !== GAME_ID) return reply.code(403).send({ message: 'The game is not found' });
      if (wager !== wagerUsd)
        return reply.code(400).send({ message: "The wager must equal the game's fixed wager" });
      const dealt = await deal(request.body);
      windowHeaders(reply, dealt.used);
      if (dealt.status !== 'dealt') {
        const { status, message } = refusals[dealt.status];
        return reply.code(status).send({ message });
      }
      return {
        spinId: dealt.spinId,
        ...rendered[dealt.code],
        balance: { balanceUsd: Number(microsToUsdText(dealt.balanceMicros)) },
        communityBonus: null,
        ...(requestId === undefined ? {} : { requestId }),
      };
    },
  );
  console.log(`API ${await app.listen({ host: HOST, port: 0 })}`);
  process.once('SIGTERM', () => process.exit(0));
}
