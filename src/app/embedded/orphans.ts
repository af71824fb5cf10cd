/**
 * Servers of our own data folder that outlived the Spindle that started them (it was killed with SIGKILL).
 *
 * They are known by their command line, program and folder both, and not by a pid file: a pid outlives its process
 * and is given to strangers. The command line is also what root in a container may read of another user's process,
 * where /proc/<pid>/cwd is closed to it.
 */
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

export interface ServerMark {
  /** Names of the program file, e.g. `postgres`. */
  programs: readonly string[];
  /** An argument that only a server of this data folder has: an absolute path in it. */
  argument: string;
}

export interface EndOptions {
  mark: ServerMark;
  /** Sent one after the other, each with a deadline, before SIGKILL. */
  stopSignals: readonly NodeJS.Signals[];
  stopDeadlineMs: number;
  onEvent: (line: string) => void;
}

const POLL_MS = 20;
const KILL_DEADLINE_MS = 5_000;
const run = promisify(execFile);

/** Ends every server with the mark; returns when none is left. Throws if one outlives SIGKILL. */
export async function endOrphans(options: EndOptions): Promise<void> {
  for (const pid of await findServers(options.mark)) {
    options.onEvent(`${options.mark.programs[0]} ${pid} was left running by an earlier start: ending it`);
    await end(pid, options);
  }
}

async function end(pid: number, { mark, stopSignals, stopDeadlineMs }: EndOptions): Promise<void> {
  for (const signal of [...stopSignals, 'SIGKILL'] as const) {
    const deadline = performance.now() + (signal === 'SIGKILL' ? KILL_DEADLINE_MS : stopDeadlineMs);
    if (!(await isServer(pid, mark))) return;
    signalIfAlive(pid, signal);
    while (performance.now() < deadline) {
      if (!(await isServer(pid, mark))) return;
      await delay(POLL_MS);
    }
  }
  throw new Error(`${mark.programs[0]} ${pid} of an earlier start does not end`);
}

function signalIfAlive(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** The pids of the living servers with the mark. */
async function findServers(mark: ServerMark): Promise<number[]> {
  if (process.platform !== 'linux')
    return (await listProcesses()).filter((p) => carries(p, mark)).map((p) => p.pid);
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(pids.map(async (pid) => ((await isServer(pid, mark)) ? [pid] : [])));
  return found.flat();
}

/** Whether the pid is, at this moment, a living server with the mark. */
async function isServer(pid: number, mark: ServerMark): Promise<boolean> {
  if (process.platform !== 'linux') return (await findServers(mark)).includes(pid);
  const [program = '', ...args] = await commandLine(pid);
  return mark.programs.includes(basename(program)) && args.includes(mark.argument);
}

/**
 * Program and arguments of a living process; empty where there is none. Outside Linux, arguments with spaces come in
 * pieces. A zombie has no command line: a server that waits for its parent to notice its end counts as gone.
 */
export async function commandLine(pid: number): Promise<string[]> {
  if (process.platform === 'linux') {
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    return line === '' ? [] : line.replace(/\0$/, '').split('\0');
  }
  const line = (await listProcesses()).find((listed) => listed.pid === pid)?.line ?? '';
  return line.split(' ').filter(Boolean);
}

async function listProcesses(): Promise<{ pid: number; line: string }[]> {
  if (process.platform === 'win32') return [];
  const { stdout } = await run('ps', ['-axww', '-o', 'pid=,args='], { maxBuffer: 64 << 20 });
  return stdout.split('\n').flatMap((row) => {
    const match = /^\s*(\d+)\s+(.*)$/.exec(row);
    return match ? [{ pid: Number(match[1]), line: match[2] as string }] : [];
  });
}

/** ps gives the arguments in one string; paths may hold spaces, so the argument is looked for between separators. */
function carries({ line }: { line: string }, { programs, argument }: ServerMark): boolean {
  const at = line.indexOf(` ${argument}`);
  if (at < 0) return false;
  const end = line[at + 1 + argument.length];
  if (end !== undefined && end !== ' ') return false;
  const before = line.slice(0, at).replace(/ -D$/, '');
  return programs.some((program) => before === program || before.endsWith(`/${program}`));
}
