/**
 * The floor: the minimum work of any design that acknowledges a spin once it is on disk, stores balance and
 * request id, and commits each spin to Postgres. It uses the service's own components: uWebSockets.js;
 * parsing of the JSON; one script call at a time for all waiting spins, which writes a balance, an id and a
 * stream entry for each (floor.lua); the log of Redis synced before the answer; rows copied to Postgres in
 * batches together with the cursor, then trimmed.
 *
 * The floor makes no decisions. It has no key, no game, no limit, no outcome, no replay and no metrics, and
 * the bytes of the answer are fixed. It exists for comparison only.
 */
import { App, type HttpResponse, us_socket_local_port } from 'uWebSockets.js';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { createLedger, flushForever } from './ledger.js';
import { answerTypically } from './typicalAnswer.js';

const HOST = '127.0.0.1';
/** Maximum number of spins in one call, as in the service. */
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

/** Schedules a script call for the end of the turn, when all requests of the turn have been read. */
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

/** Returns a line for COPY without the entry id. The data of the load generator needs no escaping. */
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
      if (!isLast) throw new Error('The benchmark server received a body in several pieces');
      one = { response, spin: JSON.parse(Buffer.from(chunk).toString('utf8')) as Spin, isGone: false };
      waiting.push(one);
      schedule();
    });
  })
  .listen(HOST, 0, (socket) => {
    if (!socket) throw new Error('The benchmark server found no port to listen on');
    console.log(`API http://${HOST}:${us_socket_local_port(socket)}`);
  });

process.once('SIGTERM', () => process.exit(0));
