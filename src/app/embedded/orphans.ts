/**
 * Finds and ends servers of this data folder that outlived the Spindle process that started them, for example
 * after SIGKILL.
 *
 * A server is identified by its command line (program and folder), not by a pid file, because the pid of an
 * ended process may be reused by an unrelated one. Root in a container can also read the command line of
 * another user's process, whereas /proc/<pid>/cwd is not accessible there.
 */
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

export interface ServerMark {
  /** Names of the program file, for example `postgres`. */
  programs: readonly string[];
  /** Argument that identifies a server of this data folder: an absolute path inside the folder. */
  argument: string;
}

export interface EndOptions {
  mark: ServerMark;
  /** Signals sent in turn, each with a deadline, before SIGKILL. */
  stopSignals: readonly NodeJS.Signals[];
  stopDeadlineMs: number;
  onEvent: (line: string) => void;
}

const POLL_MS = 20;
const KILL_DEADLINE_MS = 5_000;
const run = promisify(execFile);

/**
 * Ends all servers that have the given program name and argument, and returns when none is left. Throws an
 * error if one survives SIGKILL.
 */
export async function endOrphans(options: EndOptions): Promise<void> {
  for (const pid of await findServers(options.mark)) {
    options.onEvent(`Ending ${options.mark.programs[0]} ${pid}, which an earlier start left running`);
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
  throw new Error(`${mark.programs[0]} ${pid} of an earlier start did not end`);
}

function signalIfAlive(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

async function findServers(mark: ServerMark): Promise<number[]> {
  if (process.platform !== 'linux')
    return (await listProcesses()).filter((p) => carries(p, mark)).map((p) => p.pid);
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(pids.map(async (pid) => ((await isServer(pid, mark)) ? [pid] : [])));
  return found.flat();
}

/** Returns whether a process id currently belongs to a server with the given program name and argument. */
async function isServer(pid: number, mark: ServerMark): Promise<boolean> {
  if (process.platform !== 'linux') return (await findServers(mark)).includes(pid);
  const [program = '', ...args] = await commandLine(pid);
  return mark.programs.includes(basename(program)) && args.includes(mark.argument);
}

/**
 * Returns program and arguments of a running process, or an empty list if there is none. On systems other
 * than Linux, arguments with spaces are split. A zombie has no command line, so it counts as ended.
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

/**
 * The output of ps has all arguments in one string, and paths may contain spaces. So the argument is searched
 * between separators.
 */
function carries({ line }: { line: string }, { programs, argument }: ServerMark): boolean {
  const at = line.indexOf(` ${argument}`);
  if (at < 0) return false;
  const end = line[at + 1 + argument.length];
  if (end !== undefined && end !== ' ') return false;
  const before = line.slice(0, at).replace(/ -D$/, '');
  return programs.some((program) => before === program || before.endsWith(`/${program}`));
}
