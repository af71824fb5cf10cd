/**
 * The floor: the least that any design must do that acknowledges a spin once it is on disk, remembers balance and request id,
 * and books each spin in Postgres, made of the service's own parts. uWebSockets.js; the JSON parsed; one script call at a
 * time for all spins that wait, which writes a balance, an id and an entry of a stream for each (floor.lua); the log of Redis
 * synced before the answer; rows copied to Postgres in batches with the cursor, then trimmed.
 *
 * It decides nothing: no key, no game, no limit, no outcome, no replay, no metrics, and the answer's bytes are fixed. It
 * exists for comparison only.
 */
import { App, type HttpResponse, us_socket_local_port } from 'uWebSockets.js';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { createLedger, flushForever } from './ledger.js';
import { answerTypically } from './typicalAnswer.js';

const HOST = '127.0.0.1';
/** Spins of one call: as many as the service takes at once. */
const BATCH_MAX = 256;
const KEYS = ['balances', 'ids', 'outbox'];

const { REDIS_URL, DATABASE_URL, BASELINES_DIR } = process.env as Record<string, string>;

interface Spin {
  readonly gameId: number;
  readonly playerId: string;
  readonly requestId: string;
}

interface Waiting {
  readonly response: HttpResponse;
  readonly spin: Spin;
  isGone: boolean;
}

const redis = new Redis(REDIS_URL!, { protocol: 2 });
const sha = (await redis.script('LOAD', readFileSync(join(BASELINES_DIR!, 'floor.lua'), 'utf8'))) as string;
const sql = postgres(DATABASE_URL!, { max: 2, onnotice: () => {} });
const waiting: Waiting[] = [];
let isUnderWay = false;
let isScheduled = false;

/** Once a turn of the event loop has taken all requests that came in it. */
function schedule(): void {
  if (isScheduled || isUnderWay || waiting.length === 0) return;
  isScheduled = true;
  setImmediate(() => {
    isScheduled = false;
    send().catch(fail);
  });
}

async function send(): Promise<void> {
  isUnderWay = true;
  const batch = waiting.splice(0, BATCH_MAX);
  const args: string[] = [];
  for (const { spin } of batch) args.push(spin.playerId, spin.requestId, rowOf(spin));
  await redis.evalsha(sha, KEYS.length, ...KEYS, ...args);
  isUnderWay = false;
  for (const { response, spin, isGone } of batch) if (!isGone) answerTypically(response, spin.requestId);
  schedule();
}

/** A line of COPY without the entry's id; what the load sends needs no escape. */
const rowOf = ({ gameId, playerId, requestId }: Spin): string =>
  `${gameId}\t${playerId}\t0\t250000\t0\t1000250000\t${requestId}\n`;

function fail(error: unknown): never {
  console.error(error);
  process.exit(1);
}

await createLedger(sql);
flushForever(REDIS_URL!, sql, ([id, [, row]]) => `${id.replace('-', '\t')}\t${row}`).catch(fail);

App()
  .post('/api/partner/v1/spin', (response) => {
    let one: Waiting | undefined;
    response.onAborted(() => {
      if (one !== undefined) one.isGone = true;
    });
    response.onData((chunk, isLast) => {
      if (!isLast) throw new Error('The bench sends a body in one piece');
      one = { response, spin: JSON.parse(Buffer.from(chunk).toString('utf8')) as Spin, isGone: false };
      waiting.push(one);
      schedule();
    });
  })
  .listen(HOST, 0, (socket) => {
    if (!socket) throw new Error('No port to listen on');
    console.log(`API http://${HOST}:${us_socket_local_port(socket)}`);
  });

process.once('SIGTERM', () => process.exit(0));
