/**
 * Simulates the partner whose spins are measured during attacks, and measures the resources of the service.
 */
import { readFileSync } from 'node:fs';
import { Wire } from '../support/load.js';
import { pause } from '../support/wait.js';

const SPINS_PER_SECOND = 100;
/** Maximum number of spins in flight. Each connection waits for its answer. */
const VICTIM_CONNECTIONS = 16;
const CLOCK_TICKS_PER_SECOND = 100;

export const residentMb = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

/** Returns the user and system time of a process in seconds (proc(5), stat). */
function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_SECOND;
}

export const percentile = (times: readonly number[], share: number): number =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length * share)] ?? Number.NaN;

export interface Phase {
  readonly times: readonly number[];
  readonly lost: number;
  /** CPU usage of the service, as a fraction of one core. */
  readonly busy: number;
}

/** Returns a percentile of the spin times of one phase, divided by the same percentile of another phase. */
export const ratioOf = (phase: Phase, to: Phase, share = 0.99): number =>
  percentile(phase.times, share) / percentile(to.times, share);

/** Spins at a steady rate. The time of a spin, in ms, is measured from the moment when the spin was due. */
export async function spinFor(
  pid: number,
  port: number,
  request: () => Buffer,
  forSeconds: number,
): Promise<Phase> {
  const times: number[] = [];
  let lost = 0;
  const startMs = performance.now();
  const cpuBefore = cpuSeconds(pid);
  const total = forSeconds * SPINS_PER_SECOND;
  let next = 0;
  await Promise.all(
    Array.from({ length: VICTIM_CONNECTIONS }, async () => {
      const wire = await Wire.open(port);
      while (next < total) {
        const dueMs = startMs + (next++ * 1000) / SPINS_PER_SECOND;
        const waitMs = dueMs - performance.now();
        if (waitMs > 0) await pause(waitMs);
        const answer = await wire.ask(request()).catch(() => undefined);
        if (answer?.status === 200) times.push(performance.now() - dueMs);
        else lost++;
      }
      wire.close();
    }),
  );
  return { times, lost, busy: ((cpuSeconds(pid) - cpuBefore) * 1000) / (performance.now() - startMs) };
}
