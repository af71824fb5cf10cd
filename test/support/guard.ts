/**
 * `node guard.js FOLDER`: a process that outlives a killed test run and ends the processes that the run had
 * started.
 *
 * The standard input of this process is a pipe from the run, which ends when the run ends for any reason.
 * After an orderly end of the run no processes are left to end. The guard recognises the servers of the run
 * by their working folder, which is in the run's folder, and the service processes by the folder in their
 * environment.
 */
import { readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { FOLDER_VARIABLE } from './runFolder.js';

const SERVERS = /^(postgres|redis-server|valkey-server)$/;

async function main(folder: string): Promise<void> {
  // The run itself handles Ctrl-C. When it has ended, this process ends as well.
  process.on('SIGINT', () => {}).on('SIGTERM', () => {});
  for await (const _ of process.stdin);
  const ours = await processesOf(folder);
  for (const pid of ours) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // The process has ended already.
    }
  }
}

async function processesOf(folder: string): Promise<number[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => ((await isOurs(pid, folder)) ? [Number(pid)] : [])),
  );
  return found.flat();
}

async function isOurs(pid: string, folder: string): Promise<boolean> {
  const place = join('/proc', pid);
  const read = (name: string): Promise<string> => readFile(join(place, name), 'utf8').catch(() => '');
  if ((await read('environ')).split('\0').includes(`${FOLDER_VARIABLE}=${folder}`)) return true;
  const workingFolder = await readlink(join(place, 'cwd')).catch(() => '');
  return workingFolder.startsWith(`${folder}/`) && SERVERS.test((await read('comm')).trim());
}

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error('The folder is missing');
await main(folder);
