/**
 * One period of load on a running server, and what it cost.
 *
 *   warm up ─> drain ─> first sample ─> load ─> drain ─> last sample
 *
 * The outbox is drained before both samples, so that the CPU time between them is that of the counted spins: all of
 * their ledger's cost, and none of the warm-up's.
 */
import type { FlushLagMeter } from './flushLag.js';
import type { Generator } from './generator.js';
import { HappeningWatch } from './happenings.js';
import {
  CpuMeter,
  type CpuTimes,
  cpuBetween,
  type MachineTimes,
  machineTimes,
  type Processes,
} from './measure.js';
import type { LoadResult, Measurement, Shares, Turn } from './measurement.js';
import type { Service } from './service.js';
import { slowSeconds } from './slowSeconds.js';
import { type Books, drained } from './stores.js';

/** Of a server that is warm already. */
export const WARM_UP_AGAIN_SECONDS = 1;

export interface PeriodSettings {
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly lagMeter?: FlushLagMeter | undefined;
}

interface Measured
  extends Pick<
    Measurement,
    'spinsPerSecond' | 'load' | 'cpuPerSpin' | 'shares' | 'slowSeconds' | 'drainSeconds' | 'flushLag'
  > {
  readonly warmUp: LoadResult;
}

type Loads = readonly (readonly [when: string, load: LoadResult])[];

/** Loads the server as ordered, for `seconds` of that; whoever is called `generator` in the result made the load. */
export async function measurePeriod(
  server: {
    readonly processes: Processes;
    readonly books: Books | undefined;
    readonly service?: Pick<Service, 'stores' | 'metrics'> | undefined;
  },
  generator: Generator,
  order: Omit<Parameters<Generator['load']>[0], 'seconds'>,
  { seconds, warmUpSeconds, lagMeter }: PeriodSettings,
): Promise<Measured> {
  const warmUp = await generator.load({ ...order, seconds: warmUpSeconds });
  await drained(server.books);
  const processes = { ...server.processes, generator: [generator.pid] };
  const meter = new CpuMeter(processes);
  // It costs a little, so not where the most is measured.
  const watch =
    order.rate === undefined || server.service === undefined
      ? undefined
      : // Without the event loops: a scrape, which tells of them, holds up the process for milliseconds.
        new HappeningWatch({ ...server.service, metrics: [], processes });
  await watch?.start();
  const start = meter.sample();
  const machineStart = machineTimes();
  lagMeter?.start();
  const { bySecond, ...load } = await generator.load({ ...order, seconds });
  const happenings = await watch?.stop();
  const flushLag = lagMeter?.stop();
  const drainSeconds = await drained(server.books);
  const cpu = cpuBetween(start, meter.sample());
  return {
    warmUp,
    spinsPerSecond: load.spins / load.seconds,
    load,
    cpuPerSpin: perSpin(cpu, load.spins),
    slowSeconds: happenings && slowSeconds(bySecond ?? [], happenings),
    shares: sharesOf(machineStart, machineTimes(), cpu),
    drainSeconds,
    flushLag,
  };
}

/** Holds the answers of all loads, warm-ups among them, against the ledger. */
export async function closeBooks(
  loads: Loads,
  books: Books | undefined,
): Promise<Pick<Turn, 'books' | 'faults'>> {
  const found = books && {
    spins: loads.reduce((sum, [, { spins }]) => sum + spins, 0),
    ledgerRows: await books.ledgerRows(),
    outboxEntries: await books.outboxEntries(),
  };
  return { books: found, faults: faultsOf(loads, found) };
}

function perSpin({ generator, ...own }: CpuTimes, spins: number): Measurement['cpuPerSpin'] {
  const total = Object.values(own).reduce((sum, micros) => sum + micros, 0);
  const all = { ...own, total, generator: generator! };
  return Object.fromEntries(Object.entries(all).map(([name, micros]) => [name, micros / spins]));
}

function sharesOf(start: MachineTimes, end: MachineTimes, cpu: CpuTimes): Shares {
  const all = end.all - start.all;
  const busy = end.busy - start.busy;
  const stolen = end.stolen - start.stolen;
  const ours = Object.values(cpu).reduce((sum, micros) => sum + micros, 0);
  return { idle: (all - busy - stolen) / all, others: Math.max(0, busy - ours) / all, stolen: stolen / all };
}

function faultsOf(loads: Loads, books: Turn['books']): string[] {
  const faults: string[] = [];
  for (const [when, { spins, non2xx, errors, statuses }] of loads) {
    if (non2xx > 0) faults.push(`${when}: ${non2xx} answers were not 2xx: ${JSON.stringify(statuses)}`);
    if (errors > 0) faults.push(`${when}: ${errors} requests failed`);
    if (spins === 0) faults.push(`${when}: not one spin was dealt`);
  }
  if (books !== undefined && books.ledgerRows !== books.spins)
    faults.push(`the ledger has ${books.ledgerRows} spins, ${books.spins} were answered`);
  if (books !== undefined && books.outboxEntries > 0)
    faults.push(`the outbox still has ${books.outboxEntries} entries`);
  return faults;
}
