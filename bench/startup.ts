/**
 * `npm run bench -- start 0 10000000 100000000` (numbers of released request ids in ascending order)
 *
 * Measures how long a process takes from its start until it is ready, and its memory at that time, on warm
 * stores that another process works on, with 100 partners and 1,000 games. The request ids are written
 * directly into runs, in the format of a worker, as evenly distributed hashes, because a hundred million
 * spins would take hours. Needs Linux, and 25 bytes of disk for each id.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { PAIR_WORDS } from '../src/domain/requestPairs.js';
import { PAIRS_A_BLOCK } from '../src/domain/requestRun.js';
import { beginRun, type RunsWatermark, runsWatermarks } from '../src/engine/requestIds/requestRuns.store.js';
import { connectPostgres } from '../src/postgres/connect.js';
import type { Sql, Transaction } from '../src/postgres/connection.js';
import { Cleanup } from '../test/support/cleanup.js';
import { requireProc, residentBytes } from './measure.js';
import { type Service, startServerProcess, startService } from './service.js';

const STARTS = 5;
const SETTLED_AFTER_MS = 5000;
const SHAPE = { ack: 'redis', frontEnds: 0, partners: 100, games: 1000, gameType: 'slot' } as const;
/** Largest number of ids in a run, which is the size up to which runs of a cell are merged. */
const RUN_IDS = 10_000_000;
const ADDED_AT_ONCE = 100 * PAIRS_A_BLOCK;
const WORDS = 2 ** 32;

requireProc();
const numbers = process.argv.slice(2).map(Number);
const cleanup = new Cleanup();
try {
  const service = await startService(SHAPE, cleanup);
  const sql = connectPostgres(service.stores.databaseUrl, { max: 1, name: 'bench', onError: () => {} });
  cleanup.add(() => sql.end());
  let written = 0;
  for (const ids of numbers) {
    await handOver(service, sql, ids - written);
    written = ids;
    await measure(service, ids);
  }
} finally {
  await cleanup.run();
}

async function measure({ stores, processes }: Service, ids: number): Promise<void> {
  const seconds: number[] = [];
  const atReady: number[] = [];
  const settled: number[] = [];
  for (let start = 0; start < STARTS; start++) {
    const own = new Cleanup();
    const began = performance.now();
    const env = {
      REDIS_URL: stores.redisUrl,
      DATABASE_URL: stores.databaseUrl,
      DATA_DIR: stores.folder,
      PORT: '0',
      METRICS_PORT: '0',
      LOG_LEVEL: 'warn',
      OPERATOR_API_KEY: 'of-the-bench-alone',
    };
    const { pid } = await startServerProcess({ env }, own);
    seconds.push((performance.now() - began) / 1000);
    atReady.push(residentBytes(pid) / 1e6);
    await pause(SETTLED_AFTER_MS);
    settled.push(residentBytes(pid) / 1e6);
    await own.run();
  }
  const whole = (each: number): string => each.toFixed(0);
  process.stdout.write(
    `${ids} ids: ready after ${sorted(seconds, (each) => each.toFixed(2))} s; memory in MB when ready ${sorted(atReady, whole)}, ` +
      `${SETTLED_AFTER_MS / 1000} s later ${sorted(settled, whole)}; of the process that created the games ${whole(residentBytes(processes.server![0]!) / 1e6)}\n`,
  );
}

function sorted(values: readonly number[], text: (value: number) => string): string {
  return [...values]
    .sort((a, b) => a - b)
    .map(text)
    .join(', ');
}

/**
 * Moves the end of each cell's ledger forward, and writes the given number of ids into runs up to this new
 * end.
 */
async function handOver(service: Service, sql: Sql, ids: number): Promise<void> {
  if (ids === 0) return;
  const before = await runsWatermarks(sql);
  for (const [at, { apiKey, gameId, wagerUsd }] of service.targets.entries()) {
    const body = { gameId, playerId: 'bench', wagerUsd, requestId: `start-${Date.now()}-${at}` };
    const { response, error } = await service.api.partner(apiKey).POST('/spin', { body });
    if (response.status !== 200) throw new Error(`A spin got ${response.status} ${JSON.stringify(error)}`);
  }
  let reach = await runsWatermarks(sql);
  const isBehind = ({ cell, runsReachId, cursorId }: RunsWatermark): boolean =>
    cursorId <= runsReachId || cursorId === before.find((each) => each.cell === cell)!.cursorId;
  for (; reach.some(isBehind); reach = await runsWatermarks(sql)) await pause(100);
  // The loop above ends with the first commit of each cell. The pause gives the remaining spins time to be
  // committed, too.
  await pause(2000);
  reach = await runsWatermarks(sql);
  const ofCell = Math.ceil(ids / reach.length);
  for (const { cell, runsReachId, cursorId } of reach) {
    const runs = Math.ceil(ofCell / RUN_IDS);
    const endOf = (run: number): bigint =>
      runsReachId + ((cursorId - runsReachId) * BigInt(run)) / BigInt(runs);
    await sql.begin(async (tx) => {
      await tx.patiently();
      for (let run = 0; run < runs; run++)
        await writeRun(tx, cell, [endOf(run), endOf(run + 1)], Math.ceil(ofCell / runs));
      await tx`UPDATE cells SET handed_over_id = ${cursorId} WHERE cell = ${cell}`;
    });
  }
}

/**
 * Writes a run of a cell for the entries after the first id up to the second id, in the format of
 * requestRuns.store.ts.
 */
async function writeRun(
  tx: Transaction,
  cell: number,
  [from, to]: readonly [bigint, bigint],
  ids: number,
): Promise<void> {
  const run = await beginRun(tx, { cell, fromId: from, toId: to, ids });
  const write = run.pause(async () => {});
  const [toHigh, toLow] = [Number(to >> 32n), Number(to & 0xffff_ffffn)];
  // The high words are strictly ascending, so the low words may have any value.
  const words = new Uint32Array(ADDED_AT_ONCE * PAIR_WORDS);
  for (let id = 0; id < ids; id += ADDED_AT_ONCE) {
    const pairs = Math.min(ADDED_AT_ONCE, ids - id);
    for (let pair = 0; pair < pairs; pair++)
      words.set(
        [Math.floor(((id + pair) / ids) * WORDS), Math.floor(Math.random() * WORDS), toHigh, toLow],
        pair * PAIR_WORDS,
      );
    run.writer.add(words.subarray(0, pairs * PAIR_WORDS));
    await write();
  }
  await run.finish();
}
