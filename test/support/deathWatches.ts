/** Finds and kills the watchdog shells that end a service's embedded servers when the service dies. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/**
 * Kills the watchdog shells of a process.
 * @returns the number of killed shells
 */
export async function killDeathWatches(pid: number): Promise<number> {
  const { stdout } = await promisify(execFile)('ps', ['-eo', 'pid=,ppid=,comm=']);
  const shells = stdout
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, parent, name]) => Number(parent) === pid && name === 'sh')
    .map(([shell]) => Number(shell));
  for (const shell of shells) process.kill(shell, 'SIGKILL');
  return shells.length;
}
