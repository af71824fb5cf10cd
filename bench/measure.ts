/**
 * CPU time of processes, from /proc/<pid>/stat (proc(5)). Each is counted with its children: those that live are
 * looked up by their parent, those that have ended are in the parent's own `cutime` and `cstime`. So a Postgres is all
 * of its processes, and a Redis has the rewrites of its log with it. A child that is named itself is counted there alone.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** Process ids by what they are called in the results; several of one name are summed. */
export type Processes = Readonly<Record<string, readonly number[]>>;
/** CPU time in microseconds, under the same names. */
export type CpuTimes = Readonly<Record<string, number>>;

/** Places in the stat line, counted from the field after the program's name. */
const PARENT = 1;
const USER_TICKS = 11;
const SYSTEM_TICKS = 12;
const ENDED_CHILDREN_USER_TICKS = 13;
const ENDED_CHILDREN_SYSTEM_TICKS = 14;

/** @throws Error, in one line, where the system has no /proc to measure by. */
export function requireProc(): void {
  if (process.platform !== 'linux') {
    throw new Error('The bench measures CPU time by /proc, which only Linux has');
  }
}

const MICROS_PER_TICK =
  process.platform === 'linux'
    ? 1_000_000 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))
    : Number.NaN;

export class CpuMeter {
  readonly #processes: Processes;
  readonly #named: ReadonlySet<number>;

  constructor(processes: Processes) {
    this.#processes = processes;
    this.#named = new Set(Object.values(processes).flat());
  }

  /** CPU time that each has used since it began. */
  sample(): CpuTimes {
    const everything = allStats();
    return Object.fromEntries(
      Object.entries(this.#processes).map(([name, pids]) => [
        name,
        pids.reduce((sum, pid) => sum + this.#ticksWithChildren(everything, pid), 0) * MICROS_PER_TICK,
      ]),
    );
  }

  /** Children that have a name of their own are counted under that. */
  #ticksWithChildren(stats: ReadonlyMap<number, Stat>, pid: number): number {
    const stat = stats.get(pid);
    if (stat === undefined) throw new Error(`Process ${pid} has ended while it was measured`);
    let ticks = stat.ownTicks + stat.endedChildrenTicks;
    for (const [child, { parent }] of stats) {
      if (parent === pid && !this.#named.has(child)) ticks += this.#ticksWithChildren(stats, child);
    }
    return ticks;
  }
}

/** What was used between two samples. */
export const cpuBetween = (start: CpuTimes, end: CpuTimes): CpuTimes =>
  Object.fromEntries(Object.entries(end).map(([name, micros]) => [name, micros - start[name]!]));

/** CPU time of the whole machine, microseconds. */
export interface MachineTimes {
  readonly busy: number;
  /** Taken by other machines of the same host. */
  readonly stolen: number;
  /** Busy, idle and stolen. */
  readonly all: number;
}

/** The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal, … (proc(5)). */
export function machineTimes(): MachineTimes {
  const line = readFileSync('/proc/stat', 'utf8').split('\n')[0]!;
  const [user, nice, system, idle, ioWait, irq, softIrq, stolen] = line
    .split(/\s+/)
    .slice(1, 9)
    .map((ticks) => Number(ticks) * MICROS_PER_TICK) as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const busy = user + nice + system + irq + softIrq;
  return { busy, stolen, all: busy + idle + ioWait + stolen };
}

interface Stat {
  readonly parent: number;
  readonly ownTicks: number;
  readonly endedChildrenTicks: number;
}

function allStats(): Map<number, Stat> {
  const stats = new Map<number, Stat>();
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    let line: string;
    try {
      line = readFileSync(`/proc/${pid}/stat`, 'utf8');
    } catch {
      continue; // It has ended since the folder was read.
    }
    // The name, in parentheses, may hold anything, parentheses and spaces too.
    const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
    const ticks = (place: number): number => Number(fields[place]);
    stats.set(pid, {
      parent: ticks(PARENT),
      ownTicks: ticks(USER_TICKS) + ticks(SYSTEM_TICKS),
      endedChildrenTicks: ticks(ENDED_CHILDREN_USER_TICKS) + ticks(ENDED_CHILDREN_SYSTEM_TICKS),
    });
  }
  return stats;
}
