/**
 * What a request id costs once Redis holds it no more: the writing of a ledger's ids into runs, their merging, filters and
 * look-ups. On an embedded Postgres of its own. CPU is user and system time by /proc, of this process and of Postgres. Prints one
 * line of JSON. `node dist/bench/requestIds.js [ids] [cells]`. Needs Linux.
 */
import { randomBytes } from 'node:crypto';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turnOfLoop } from 'node:timers/promises';
import postgres from 'postgres';
import { readConfig } from '../src/config.js';
import { firstIdAt, makeEntryId } from '../src/domain/entryId.js';
import { REQUEST_KEY_BYTES, writeRequestKey } from '../src/domain/requestKey.js';
import { RequestPairs } from '../src/domain/requestPairs.js';
import { DAY_MS, dayOf } from '../src/domain/settlement.js';
import { lockDataDir, startEmbeddedPostgres } from '../src/embedded/index.js';
import { connectPostgres } from '../src/postgres/client.js';
import { install } from '../src/postgres/installation.js';
import { ensurePartition } from '../src/postgres/ledger.js';
import { migrate } from '../src/postgres/migrate.js';
import { mergeRuns, requestRuns, writeRun } from '../src/postgres/requestRuns.js';
import { openStore } from '../src/postgres/store.js';
import { RequestIds } from '../src/requestIds/requestIds.js';
import { runsToMerge } from '../src/requestIds/runMerging.js';
import { CpuMeter, cpuBetween } from './measure.js';

const ids = Number(process.argv[2] ?? 1_000_000);
const cells = Number(process.argv[3] ?? 1);
/** Of so many milliseconds, like those of a window. */
const SPAN_MS = 1_800_000;
const WINDOWS = 16;
const WARM_UP_WINDOWS = 4;
/** Written of the ledger, as after a start; the others as whoever booked them has them. */
const LEDGER_WINDOWS = 4;
const LOOKS = 500;
const PROBES = 1_000_000;

const dayMs = Math.floor(Date.now() / DAY_MS) * DAY_MS - DAY_MS;
const keys = keysOfIds();
const config = readConfig({});
const dataDir = await realpath(await mkdtemp(join(tmpdir(), 'spindle-bench-')));
const lock = await lockDataDir(dataDir);
const embedded = await startEmbeddedPostgres({
  dataDir: lock.dataDir,
  cacheDir: config.cacheDir,
  progress: () => {},
  onEvent: () => {},
});
try {
  await migrate(embedded.url, config.migrationsDir, () => {});
  const sql = connectPostgres(embedded.url, { max: 4, name: 'bench', onError: () => {} });
  const direct = postgres(embedded.url, { max: 1, onnotice: () => {} });
  const meter = new CpuMeter({ node: [process.pid], postgres: [embedded.pid()!] });
  await install(sql, { cells, idempotencyTtlSeconds: 86_400 });
  await ensurePartition(sql, dayOf(dayMs), { from: firstIdAt(dayMs), to: firstIdAt(dayMs + DAY_MS) });
  await fill(direct);
  process.stderr.write(`${ids} ids of ${cells} cells are in the ledger\n`);

  /** Microseconds of CPU an id, and ids a second. */
  const measured = async (of: number, work: () => Promise<unknown>) => {
    const before = meter.sample();
    const started = performance.now();
    await work();
    const seconds = (performance.now() - started) / 1000;
    const cpu = cpuBetween(before, meter.sample());
    const each = (micros: number): number => Math.round((micros / of) * 1000) / 1000;
    return { node: each(cpu.node!), postgres: each(cpu.postgres!), perSecond: Math.round(of / seconds) };
  };
  const windowMs = SPAN_MS / WINDOWS;
  const writeWindows = async (from: number, to: number, isBooked: boolean): Promise<void> => {
    for (let window = from; window < to; window++) {
      for (let isMore = true; isMore; ) {
        const marks = await direct<
          { cell: number; id: string }[]
        >`SELECT cell, handed_over_id AS id FROM cells`;
        const due = marks.map(({ cell, id }) => ({
          cell,
          fence: 0n,
          from: BigInt(id),
          to: makeEntryId({ timeMs: dayMs + (window + 1) * windowMs - 1, cell, sequence: 16_383 }),
          pairs: isBooked ? gathered(cell, window) : undefined,
        }));
        ({ isMore } = await writeRun(
          sql,
          due,
          () => turnOfLoop(),
          () => {},
        ));
      }
    }
  };
  let merged = 0;
  const mergeAll = async (): Promise<void> => {
    for (;;) {
      const all = await requestRuns(sql);
      const found = Array.from({ length: cells }, (_, cell) =>
        runsToMerge(
          all.filter((run) => run.cell === cell),
          Number.POSITIVE_INFINITY,
        ),
      );
      const work = found.find((runs) => runs !== undefined);
      if (work === undefined) return;
      merged += work.reduce((sum, run) => sum + run.ids, 0);
      await mergeRuns(sql, { cell: work[0]!.cell, fence: 0n }, work, () => turnOfLoop());
    }
  };
  // A worker runs for days: what it costs to compile its code is no part of the figures.
  await writeWindows(0, WARM_UP_WINDOWS / 2, false);
  await writeWindows(WARM_UP_WINDOWS / 2, WARM_UP_WINDOWS, true);
  await mergeAll();
  const warmUpIds = (ids * WARM_UP_WINDOWS) / WINDOWS;
  const windowIds = ids / WINDOWS;
  const ofLedger = await measured(LEDGER_WINDOWS * windowIds, () =>
    writeWindows(WARM_UP_WINDOWS, WARM_UP_WINDOWS + LEDGER_WINDOWS, false),
  );
  const booked = await measured(ids - warmUpIds - LEDGER_WINDOWS * windowIds, () =>
    writeWindows(WARM_UP_WINDOWS + LEDGER_WINDOWS, WINDOWS, true),
  );
  merged = 0;
  const merge = await measured(ids - warmUpIds, mergeAll);
  const requestIds = new RequestIds({
    runs: openStore(sql),
    store: openStore(sql),
    filterBytesMax: 1e9,
    everyMs: 1000,
    newestVersion: () => '',
    onError: () => {},
  });
  const readSeconds = await timed(() => requestIds.refresh());
  const looked = async (
    name: (i: number) => string,
  ): Promise<{ bound: number; micros: number; cpu: object }> => {
    let bound = 0;
    const started = performance.now();
    const cpu = await measured(LOOKS, async () => {
      for (let i = 0; i < LOOKS; i++)
        if (
          (await requestIds.find({ cell: i % cells, partnerId: 1 + (i % cells) }, name(i))).entry !==
          undefined
        )
          bound++;
    });
    return { bound, micros: Math.round(((performance.now() - started) / LOOKS) * 1000), cpu };
  };
  // Row i is of cell i % cells.
  const old = await looked(
    (i) => `request-${(i % cells) + cells * Math.floor((Math.random() * ids) / cells - 1)}`,
  );
  const hashes = randomBytes(PROBES * 16);
  let positives = 0;
  const probe = await measured(PROBES, async () => {
    for (let i = 0; i < PROBES; i++)
      if (requestIds.mayHave({ cell: i % cells, partnerId: 1 }, hashes, i * 16)) positives++;
  });
  const [size] = await direct<{ bytes: string }[]>`
    SELECT pg_total_relation_size('request_blocks') + pg_total_relation_size('request_filters') AS bytes`;
  const runs = await requestRuns(sql);
  console.log(
    JSON.stringify({
      ids,
      cells,
      ofLedger,
      booked,
      merge: { ...merge, copiesOfAnId: merged / (ids - warmUpIds) },
      runs: runs.length,
      readSeconds,
      filterBytesAnId: requestIds.bytes / ids,
      postgresBytesAnId: Math.round((Number(size!.bytes) / ids) * 10) / 10,
      old,
      probe,
      falsePositives: positives / PROBES,
    }),
  );
  await direct.end();
  await sql.end();
} finally {
  await embedded.stop();
  await lock.release();
  await rm(dataDir, { recursive: true, force: true });
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return Math.round(performance.now() - started) / 1000;
}

/** The keys of all ids, in their order, as front ends have made them: no part of what is measured. */
function keysOfIds(): Buffer {
  const keys = Buffer.allocUnsafe(ids * REQUEST_KEY_BYTES);
  for (let i = 0; i < ids; i++) writeRequestKey(keys, i * REQUEST_KEY_BYTES, 1 + (i % cells), `request-${i}`);
  return keys;
}

/** The ids of a cell and window as a flush gathers them, of the keys that came with the records. */
function gathered(cell: number, window: number): RequestPairs {
  const pairs = new RequestPairs();
  const first = Math.ceil((window * ids) / WINDOWS);
  const step = SPAN_MS / ids;
  for (let i = first; i < ((window + 1) * ids) / WINDOWS; i++) {
    if (i % cells !== cell) continue;
    const keyAt = i * REQUEST_KEY_BYTES;
    const ms = dayMs + Math.floor(i * step);
    const low = ((ms % 1024) * 4_194_304 + cell * 16_384 + (i % 16_384)) >>> 0;
    pairs.add(keys.readUInt32BE(keyAt), keys.readUInt32BE(keyAt + 4), Math.floor(ms / 1024), low);
  }
  return pairs;
}

/** Rows of a window's time, of all cells by turns; request ids of the length of a UUID would be as long. */
async function fill(direct: postgres.Sql): Promise<void> {
  const step = SPAN_MS / ids;
  await direct.unsafe(`
    INSERT INTO ledger_${dayOf(dayMs).replaceAll('-', '')}
    SELECT ((${dayMs} + floor(i * ${step}))::bigint << 22) + ((i % ${cells})::bigint << 14) + (i % 16384), 0, 250000, 0, 0, i,
      1 + i % ${cells}, 1 + i % ${cells}, 1, 0, 1, 'player-' || i % 10000, 'request-' || i
    FROM generate_series(0, ${ids - 1}) i`);
  await direct`UPDATE cells SET cursor_id = ${String(firstIdAt(dayMs + DAY_MS))}::bigint`;
  await direct`VACUUM ANALYZE`;
}
