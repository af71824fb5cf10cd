/**
 * One server's turn: start it, warm it up, load it, let its outbox drain, look into its books, stop it.
 *
 *   start ─> warm up ─> drain ─> first sample ─> load ─> drain ─> last sample ─> compare ledger and answers ─> stop
 *
 * The outbox is drained before both samples, so that the CPU time between them is that of the counted spins: all of
 * their ledger's cost, and none of the warm-up's.
 */
import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import type { LoadOrder, LoadResult } from './load.js';
import { CpuMeter, type CpuTimes, cpuBetween, type MachineTimes, machineTimes } from './measure.js';
import { type Cleanup, endProcess, ROOT } from './processes.js';
import {
  type Books,
  pause,
  type RunningServer,
  SERVERS,
  type ServerLetter,
  SPIN_PATH,
  startServer,
} from './servers.js';

export interface LoadSettings {
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly connections: number;
  readonly players: number;
}

export interface Measurement {
  readonly server: (typeof SERVERS)[ServerLetter];
  readonly round: number;
  readonly spinsPerSecond: number;
  readonly load: LoadResult;
  readonly warmUp: LoadResult;
  /** Microseconds; `total` is that of the server and its stores, without the load generator. */
  readonly cpuPerSpin: Readonly<Record<string, number>>;
  /**
   * Shares of the machine's CPU time while the spins were counted: left idle; used by what is no part of the bench;
   * stolen by other machines of the host. Where the last two are not small, the numbers are of a disturbed machine.
   */
  readonly shares: { readonly idle: number; readonly others: number; readonly stolen: number };
  /** From the last answer until the outbox was empty. */
  readonly drainSeconds: number;
  readonly books:
    | { readonly spins: number; readonly ledgerRows: number; readonly outboxEntries: number }
    | undefined;
  readonly versions: { readonly redis: string; readonly postgres: string } | undefined;
  /** What makes the numbers void; empty where nothing does. */
  readonly faults: readonly string[];
}

const DRAIN_DEADLINE_MS = 30_000;
const DRAIN_POLL_MS = 20;
/** A request id is as long as a UUID: this, a hyphen and 12 digits. */
const PREFIX_LENGTH = 23;

export async function takeTurn(
  letter: ServerLetter,
  round: number,
  settings: LoadSettings,
  cleanup: Cleanup,
  profileDir?: string,
): Promise<Measurement> {
  const server = await startServer(letter, cleanup, profileDir);
  const generator = startGenerator(server, settings, cleanup);
  const { books } = server;
  const meter = new CpuMeter({ ...server.processes, generator: generator.pid });

  const warmUp = await generator.load(settings.warmUpSeconds);
  await drained(books);
  const start = meter.sample();
  const machineStart = machineTimes();
  const load = await generator.load(settings.seconds);
  const drainSeconds = await drained(books);
  const cpu = cpuBetween(start, meter.sample());
  const shares = sharesOf(machineStart, machineTimes(), cpu);

  const { generator: generatorMicros, ...own } = cpu;
  const totalMicros = Object.values(own).reduce((sum, micros) => sum + micros, 0);
  const perSpin = Object.entries({ ...own, total: totalMicros, generator: generatorMicros! }).map(
    ([name, micros]) => [name, micros / load.spins] as const,
  );
  const spins = warmUp.spins + load.spins;
  const found = books && {
    spins,
    ledgerRows: await books.ledgerRows(),
    outboxEntries: await books.outboxEntries(),
  };
  return {
    server: SERVERS[letter],
    round,
    spinsPerSecond: load.spins / load.seconds,
    load,
    warmUp,
    cpuPerSpin: Object.fromEntries(perSpin),
    shares,
    drainSeconds,
    books: found,
    versions: await books?.versions(),
    faults: faultsOf(load, warmUp, found),
  };
}

function sharesOf(start: MachineTimes, end: MachineTimes, cpu: CpuTimes): Measurement['shares'] {
  const all = end.all - start.all;
  const busy = end.busy - start.busy;
  const stolen = end.stolen - start.stolen;
  const ours = Object.values(cpu).reduce((sum, micros) => sum + micros, 0);
  return { idle: (all - busy - stolen) / all, others: Math.max(0, busy - ours) / all, stolen: stolen / all };
}

function faultsOf(load: LoadResult, warmUp: LoadResult, books: Measurement['books']): string[] {
  const faults: string[] = [];
  for (const [when, { non2xx, errors, statuses }] of Object.entries({ counted: load, 'warm-up': warmUp })) {
    if (non2xx > 0)
      faults.push(`${non2xx} answers of the ${when} period were not 2xx: ${JSON.stringify(statuses)}`);
    if (errors > 0) faults.push(`${errors} requests of the ${when} period failed`);
  }
  if (load.spins === 0) faults.push('not one spin was dealt');
  if (books !== undefined && books.ledgerRows !== books.spins) {
    faults.push(`the ledger has ${books.ledgerRows} spins, ${books.spins} were answered`);
  }
  if (books !== undefined && books.outboxEntries > 0) {
    faults.push(`the outbox still has ${books.outboxEntries} entries`);
  }
  return faults;
}

/** Waits until the outbox is empty, or the deadline. @returns how long that took, seconds. */
async function drained(books: Books | undefined): Promise<number> {
  const startedMs = performance.now();
  while (books !== undefined && (await books.outboxEntries()) > 0) {
    if (performance.now() - startedMs > DRAIN_DEADLINE_MS) break;
    await pause(DRAIN_POLL_MS);
  }
  return (performance.now() - startedMs) / 1000;
}

interface Generator {
  readonly pid: number;
  load(seconds: number): Promise<LoadResult>;
}

function startGenerator(server: RunningServer, settings: LoadSettings, cleanup: Cleanup): Generator {
  const child = fork(join(ROOT, 'dist', 'bench', 'load.js'));
  cleanup.add(() => endProcess(child));
  const { base, apiKey, gameId, wagerUsd } = server;
  const requestIdPrefix = randomBytes(12).toString('hex').slice(0, PREFIX_LENGTH);
  return {
    pid: child.pid!,
    load: async (seconds) => {
      const order: LoadOrder = {
        base,
        path: SPIN_PATH,
        apiKey,
        gameId,
        wagerUsd,
        connections: settings.connections,
        players: settings.players,
        seconds,
        requestIdPrefix,
      };
      const answered = new AbortController();
      child.send(order);
      try {
        const [result] = await Promise.race([
          once(child, 'message', answered),
          once(child, 'exit', answered).then(() => {
            throw new Error('The load generator has ended');
          }),
        ]);
        return result as LoadResult;
      } finally {
        answered.abort();
      }
    },
  };
}
