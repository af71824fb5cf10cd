/**
 * Measures one period of load on a running server, and its cost.
 *
 *  warm up ─> drain ─> first sample ─> load ─> drain ─> last sample
 *
 * The outbox is drained before both samples, so that the CPU time between them belongs to the counted spins.
 * It includes the full cost of their ledger entries, and nothing of the warm-up.
 */
import type { Generator, LoadResult } from './load.js';
import {
  CpuMeter,
  type CpuTimes,
  cpuBetween,
  type MachineTimes,
  machineTimes,
  type Processes,
} from './measure.js';
import { type Books, drained } from './stores.js';

/** Shares of the machine's CPU time. Numbers are unreliable if `others` or `stolen` is not small. */
export interface Shares {
  readonly idle: number;
  /** Share of the CPU time that processes outside the bench took. */
  readonly others: number;
  /** Share of the CPU time that other virtual machines of the host took. */
  readonly stolen: number;
}

export interface Period {
  readonly load: LoadResult;
  /** CPU time per spin in µs. `total` covers the server and its stores. */
  readonly cpuPerSpin: Readonly<Record<string, number>>;
  readonly shares: Shares;
}

/** All loads of a run including warm-ups, each with its label. */
export type Loads = [when: string, load: LoadResult][];

/** Share of CPU time lost to other processes and machines from which a period counts as disturbed. */
const DISTURBED_FROM = 0.1;

export const lostOf = ({ others, stolen }: Shares): number => others + stolen;
/** Returns whether other processes took so much of the machine that the numbers are unreliable. */
export const isDisturbed = (shares: Shares): boolean => lostOf(shares) >= DISTURBED_FROM;

/** @param loads receives the results of all loads */
export async function measurePeriod(
  server: { readonly processes: Processes; readonly books: Books | undefined },
  generator: Generator,
  order: Parameters<Generator['load']>[0],
  warmUpSeconds: number,
  loads: Loads,
): Promise<Period> {
  const when = `${order.connections} connections`;
  loads.push([`warm-up of ${when}`, await generator.load({ ...order, seconds: warmUpSeconds })]);
  await drained(server.books);
  const meter = new CpuMeter({ ...server.processes, generator: [generator.pid] });
  const start = meter.sample();
  const machineStart = machineTimes();
  const load = await generator.load(order);
  loads.push([when, load]);
  await drained(server.books);
  const cpu = cpuBetween(start, meter.sample());
  return { load, cpuPerSpin: perSpin(cpu, load.spins), shares: sharesOf(machineStart, machineTimes(), cpu) };
}

function perSpin({ generator, ...own }: CpuTimes, spins: number): Period['cpuPerSpin'] {
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

/**
 * Compares the answers of all loads with the ledger. Returns the faults that invalidate the numbers.
 * @param expected statuses other than 2xx that are no faults, such as 404 for a player without spins
 */
export async function closeBooks(
  loads: Loads,
  books: Books | undefined,
  expected: readonly number[] = [],
): Promise<string[]> {
  const faults: string[] = [];
  for (const [when, { spins, non2xx, errors, statuses }] of loads) {
    if (non2xx > expected.reduce((sum, status) => sum + (statuses[status] ?? 0), 0))
      faults.push(`${when}: ${non2xx} responses had a status other than 2xx: ${JSON.stringify(statuses)}`);
    if (errors > 0) faults.push(`${when}: ${errors} requests failed`);
    if (spins === 0) faults.push(`${when}: no spin was dealt`);
  }
  if (books === undefined) return faults;
  const answered = loads.reduce((sum, [, { spins }]) => sum + spins, 0);
  const [rows, waiting] = [await books.ledgerRows(), await books.outboxEntries()];
  if (rows !== answered) faults.push(`the ledger has ${rows} spins, but ${answered} were answered`);
  if (waiting > 0) faults.push(`the outbox still has ${waiting} entries`);
  return faults;
}
