/**
 * `npm run bench -- --quick`: what to expect of this machine, in under two minutes. One start of the service on a disk; a
 * closed loop of 64 and of 256 connections, each from both generators. Prints one table, beside the last one that was saved
 * in .cache/bench-quick.json, and saves it.
 */
import { mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Cleanup } from '../test/support/cleanup.js';
import { ROOT } from '../test/support/root.js';
import { newDiskFolder } from './diskFolder.js';
import { GENERATORS, type GeneratorName, startGenerator } from './generator.js';
import { describeMachine } from './machine.js';
import type { LoadResult } from './measurement.js';
import { residentBytes, treeBytes, wholeBytes } from './memory.js';
import { closeBooks, measurePeriod } from './period.js';
import { type Service, startService } from './service.js';
import { median } from './summary.js';
import { table } from './table.js';

const CONNECTIONS = [64, 256];
const SECONDS = 8;
const WARM_UP_SECONDS = 3;
const PLAYERS = 1000;
const SAVED = join(ROOT, '.cache', 'bench-quick.json');
const SYNCS = 200;
const SYNC_BYTES = 4096;
const MB = 1_048_576;

interface Row {
  readonly generator: GeneratorName;
  readonly connections: number;
  readonly spinsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Microseconds a spin, without the generator. */
  readonly cpuMicros: number;
  readonly generatorMicros: number;
}

interface Quick {
  readonly at: string;
  readonly node: string;
  /** A write of 4 KB and its fdatasync, median, milliseconds. */
  readonly syncMs: number;
  readonly memoryMb: Readonly<Record<string, number>>;
  /** What Postgres wrote to its log for a spin. */
  readonly walBytes: number;
  readonly rows: readonly Row[];
}

/** @returns whether every number counts */
export async function quick(cleanup: Cleanup): Promise<boolean> {
  const syncMs = await measureSync();
  const service = await startService(
    { ack: 'redis', frontEnds: 0, partners: 1, games: 1, gameType: 'slot' },
    cleanup,
  );
  const loads: [when: string, load: LoadResult][] = [];
  const rows: Row[] = [];
  const walBefore = await walPosition(service);
  for (const name of GENERATORS) {
    const generator = await startGenerator(cleanup, name);
    if (rows.some((row) => row.generator === generator.name)) continue;
    for (const connections of CONNECTIONS) rows.push(await measure(service, generator, connections, loads));
  }
  const walBytes = (await walPosition(service)) - walBefore;
  const spins = loads.reduce((sum, [, load]) => sum + load.spins, 0);
  const { faults } = await closeBooks(loads, service.books);
  const result: Quick = {
    at: new Date().toISOString(),
    node: process.version,
    syncMs,
    memoryMb: memoryOf(service),
    walBytes: walBytes / spins,
    rows,
  };
  console.log(render(result, await lastSaved()));
  for (const fault of faults) console.log(`VOID: ${fault}`);
  if (faults.length > 0) return false;
  await mkdir(dirname(SAVED), { recursive: true });
  await writeFile(SAVED, `${JSON.stringify(result)}\n`);
  return true;
}

async function measure(
  service: Service,
  generator: Awaited<ReturnType<typeof startGenerator>>,
  connections: number,
  loads: [when: string, load: LoadResult][],
): Promise<Row> {
  const { base, targets } = service;
  const order = { base, targets, connections, players: PLAYERS, hasRequestId: true, rate: undefined };
  const { warmUp, load, spinsPerSecond, cpuPerSpin } = await measurePeriod(service, generator, order, {
    seconds: SECONDS,
    warmUpSeconds: WARM_UP_SECONDS,
  });
  const when = `${generator.name}, ${connections} connections`;
  loads.push([`warm-up of ${when}`, warmUp], [when, load]);
  return {
    generator: generator.name,
    connections,
    spinsPerSecond,
    p50Ms: load.p50Ms,
    p99Ms: load.p99Ms,
    cpuMicros: cpuPerSpin.total!,
    generatorMicros: cpuPerSpin.generator!,
  };
}

/** The time that a durable answer can't be faster than on this disk. */
async function measureSync(): Promise<number> {
  const folder = await newDiskFolder();
  try {
    const file = await open(join(folder, 'sync'), 'w');
    const bytes = Buffer.alloc(SYNC_BYTES, 1);
    const times: number[] = [];
    for (let i = 0; i < SYNCS; i++) {
      const started = performance.now();
      await file.write(bytes);
      await file.datasync();
      times.push(performance.now() - started);
    }
    await file.close();
    return median(times);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function walPosition({ stores }: Service): Promise<number> {
  const [row] = await stores.ask<{ bytes: number }>("SELECT (pg_current_wal_lsn() - '0/0')::float8 AS bytes");
  return row!.bytes;
}

const memoryOf = ({ processes }: Service): Record<string, number> =>
  Object.fromEntries(
    Object.entries(processes).map(([name, pids]) => [
      name,
      pids.reduce(
        (sum, pid) => sum + (name === 'postgres' ? wholeBytes(treeBytes(pid)) : residentBytes(pid)),
        0,
      ) / MB,
    ]),
  );

async function lastSaved(): Promise<Quick | undefined> {
  try {
    return JSON.parse(await readFile(SAVED, 'utf8')) as Quick;
  } catch {
    return undefined;
  }
}

/** A figure, and behind it the last one's. */
const beside = (now: number, before: number | undefined, digits: number): string =>
  before === undefined ? now.toFixed(digits) : `${now.toFixed(digits)} (${before.toFixed(digits)})`;

function render(result: Quick, last: Quick | undefined): string {
  const { cores, cpu, node, loadBefore } = describeMachine();
  const head = ['', 'conn.', 'spins/s', 'p50 ms', 'p99 ms', 'CPU µs', 'generator µs'];
  const rows = result.rows.map((row) => {
    const old = last?.rows.find(
      ({ generator, connections }) => generator === row.generator && connections === row.connections,
    );
    return [
      row.generator,
      String(row.connections),
      beside(row.spinsPerSecond, old?.spinsPerSecond, 0),
      beside(row.p50Ms, old?.p50Ms, 1),
      beside(row.p99Ms, old?.p99Ms, 1),
      beside(row.cpuMicros, old?.cpuMicros, 1),
      beside(row.generatorMicros, old?.generatorMicros, 1),
    ];
  });
  const memory = Object.entries(result.memoryMb).map(
    ([name, mb]) => `${name} ${beside(mb, last?.memoryMb[name], 0)}`,
  );
  return [
    '',
    `${cores} cores of ${cpu}, Node ${node}, load average ${loadBefore.toFixed(2)}; generators and service share the machine`,
    ...table([head, ...rows]),
    '',
    `  sync of 4 KB on this disk: ${beside(result.syncMs, last?.syncMs, 2)} ms`,
    `  memory, MB: ${memory.join(', ')}`,
    `  log of Postgres: ${beside(result.walBytes, last?.walBytes, 0)} bytes a spin`,
    last === undefined ? '  No run was saved before.' : `  In parentheses: the run of ${last.at}.`,
  ].join('\n');
}
