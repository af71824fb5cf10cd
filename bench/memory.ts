/** Memory of processes, from /proc (proc(5)). */
import { readdirSync, readFileSync } from 'node:fs';

function kilobytes(path: string, name: string): number {
  const match = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync(path, 'utf8'));
  return match === null ? 0 : Number(match[1]);
}

/** Resident memory of a process, bytes. */
export const residentBytes = (pid: number): number => kilobytes(`/proc/${pid}/status`, 'VmRSS') * 1024;

/**
 * Memory of a process and its children, bytes, of what they share each one its share: the sum of their resident memory
 * would count Postgres's shared buffers once for each of its processes.
 */
export function treeBytes(pid: number): number {
  let bytes = 0;
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
      if (Number(name) === pid || parent === pid)
        bytes += kilobytes(`/proc/${name}/smaps_rollup`, 'Pss') * 1024;
    } catch {
      // It has ended since the folder was read.
    }
  }
  return bytes;
}
