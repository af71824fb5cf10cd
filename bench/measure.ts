/**
 * Measures CPU time and memory of processes by /proc (proc(5)). A process is counted with its children, live
 * or ended, unless a child is measured under its own name.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg } from 'node:os';

/** Process ids by the name in the results. Processes with the same name are summed. */
export type Processes = Readonly<Record<string, readonly number[]>>;
/** CPU time in microseconds, under the same names as the processes. */
export type CpuTimes = Readonly<Record<string, number>>;

/** Positions of fields in the stat line, counted from the field after the program name. */
const PARENT = 1;
const USER_TICKS = 11;
const SYSTEM_TICKS = 12;
const ENDED_CHILDREN_USER_TICKS = 13;
const ENDED_CHILDREN_SYSTEM_TICKS = 14;

/** @throws Error with a single line, if the system has no /proc */
export function requireProc(): void {
  if (process.platform !== 'linux') {
    throw new Error('The benchmark measures CPU time with /proc, which exists only on Linux');
  }
}

const MICROS_PER_TICK =
  process.platform === 'linux'
    ? 1_000_000 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))
    : Number.NaN;

export class CpuMeter {
  readonly #named: ReadonlySet<number>;

  constructor(private readonly processes: Processes) {
    this.#named = new Set(Object.values(processes).flat());
  }

  /** Returns the CPU time that each process has used since its start. */
  sample(): CpuTimes {
    const everything = allStats();
    return Object.fromEntries(
      Object.entries(this.processes).map(([name, pids]) => [
        name,
        pids.reduce((sum, pid) => sum + this.#ticksWithChildren(everything, pid), 0) * MICROS_PER_TICK,
      ]),
    );
  }

  /** Children that are measured under their own name do not count. */
  #ticksWithChildren(stats: ReadonlyMap<number, Stat>, pid: number): number {
    const stat = stats.get(pid);
    if (stat === undefined) throw new Error(`Process ${pid} ended during the measurement`);
    let ticks = stat.ownTicks + stat.endedChildrenTicks;
    for (const [child, { parent }] of stats) {
      if (parent === pid && !this.#named.has(child)) ticks += this.#ticksWithChildren(stats, child);
    }
    return ticks;
  }
}

/** Returns the CPU time in microseconds that was used between two samples, by process name. */
export const cpuBetween = (start: CpuTimes, end: CpuTimes): CpuTimes =>
  Object.fromEntries(Object.entries(end).map(([name, micros]) => [name, micros - start[name]!]));

/** CPU time of the whole machine, in microseconds. */
export interface MachineTimes {
  readonly busy: number;
  /** CPU time that the host gave to its other virtual machines. */
  readonly stolen: number;
  /** Sum of busy, idle and stolen time. */
  readonly all: number;
}

/** Reads /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal, … (proc(5)). */
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
      continue; // The process has ended since /proc was listed.
    }
    // The program name in parentheses may contain any characters, including parentheses and spaces.
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

/** Returns the process ids of a process and of all its descendants. */
export function treeOf(pid: number): number[] {
  const stats = [...allStats()];
  const within = (root: number): number[] => [
    root,
    ...stats.filter(([, { parent }]) => parent === root).flatMap(([child]) => within(child)),
  ];
  return within(pid);
}

function kilobytes(path: string, name: string): number {
  const match = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync(path, 'utf8'));
  return match === null ? 0 : Number(match[1]);
}

/** Returns the resident memory of a process, in bytes. */
export const residentBytes = (pid: number): number => kilobytes(`/proc/${pid}/status`, 'VmRSS') * 1024;

/** Memory of a process and its children, in bytes. */
export interface TreeBytes {
  /** Memory in bytes that only one of the processes uses. */
  readonly own: number;
  /** Memory that the processes share, such as the shared buffers of Postgres used so far. */
  readonly shared: number;
}

/**
 * Returns the memory of a process and its children, with each process's proportional share of shared memory.
 * The sum of the resident memory would count Postgres's shared buffers once for each of its processes.
 */
export function treeBytes(pid: number): TreeBytes {
  let own = 0;
  let shared = 0;
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
      if (Number(name) !== pid && parent !== pid) continue;
      const rollup = `/proc/${name}/smaps_rollup`;
      const ofProcess = kilobytes(rollup, 'Pss') * 1024;
      const ofShared = kilobytes(rollup, 'Pss_Shmem') * 1024;
      own += ofProcess - ofShared;
      shared += ofShared;
    } catch {
      // The process has ended since /proc was listed.
    }
  }
  return { own, shared };
}

export const wholeBytes = ({ own, shared }: TreeBytes): number => own + shared;

export function describeMachine(): string {
  const model =
    /^model name\s*:\s*(.+)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1] ?? cpus()[0]?.model;
  return `${availableParallelism()} cores of ${model ?? 'an unknown kind'}, Node ${process.version}, load average before ${loadavg()[0]!.toFixed(2)}`;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Formats rows as lines: the first column is aligned to the left, all other columns to the right. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]! + 2)))
      .join('')
      .replace(/^/, '  ')
      .trimEnd(),
  );
}
