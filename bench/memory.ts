/** Memory of processes, from /proc (proc(5)). */
import { readdirSync, readFileSync } from 'node:fs';

function kilobytes(path: string, name: string): number {
  const match = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync(path, 'utf8'));
  return match === null ? 0 : Number(match[1]);
}

/** Resident memory of a process, bytes. */
export const residentBytes = (pid: number): number => kilobytes(`/proc/${pid}/status`, 'VmRSS') * 1024;

/** What a process and its children hold, bytes. */
export interface TreeBytes {
  /** Their own. */
  readonly own: number;
  /** What they share, such as the shared buffers of Postgres as far as they were ever used: full, they don't grow. */
  readonly shared: number;
}

/**
 * Memory of a process and its children, of what they share each one its share: the sum of their resident memory would
 * count Postgres's shared buffers once for each of its processes.
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
      // It has ended since the folder was read.
    }
  }
  return { own, shared };
}

export const wholeBytes = ({ own, shared }: TreeBytes): number => own + shared;
