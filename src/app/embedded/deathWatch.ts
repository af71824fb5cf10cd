/**
 * Ends a server when its parent process ends in any way. A small shell process reads from a pipe to this
 * process, which the kernel closes when this process ends. Then the shell ends the server.
 */
import { type ChildProcess, spawn } from 'node:child_process';

/**
 * Shell script that ends the server. Each line of its standard input is the process id of a started server,
 * or is empty after the server has ended. The arguments are a deadline in seconds and the signals. The script
 * ignores signals, because a service manager may send its stop signal to the shell too.
 */
const SCRIPT = `
trap '' INT TERM HUP QUIT
pid=
while read -r line; do pid=$line; done
[ -n "$pid" ] || exit 0
deadline=$1
shift
for signal in "$@"; do
  kill -s "$signal" "$pid" || exit 0
  waited=0
  while [ "$waited" -lt "$deadline" ]; do
    kill -s 0 "$pid" || exit 0
    sleep 1
    waited=$((waited + 1))
  done
done
kill -s KILL "$pid"
`;

export interface DeathWatchOptions {
  /** Signals sent to the server in turn, each followed by the deadline, before SIGKILL. */
  readonly stopSignals: readonly NodeJS.Signals[];
  readonly stopDeadlineMs: number;
}

export class DeathWatch {
  readonly #shell: ChildProcess | undefined;

  constructor({ stopSignals, stopDeadlineMs }: DeathWatchOptions) {
    // Watching the parent process needs POSIX signals and a POSIX shell, which Windows lacks.
    if (process.platform === 'win32') return;
    const names = stopSignals.map((signal) => signal.slice('SIG'.length));
    this.#shell = spawn('/bin/sh', ['-c', SCRIPT, 'sh', String(Math.ceil(stopDeadlineMs / 1000)), ...names], {
      // The shell runs in the root folder, because the working directory of the start may be removed later.
      cwd: '/',
      env: { PATH: process.env.PATH ?? '' },
      stdio: ['pipe', 'ignore', 'ignore'],
      // The shell gets its own process group, so that it does not receive the signals of a terminal.
      detached: true,
    });
    // If the shell is missing or was killed, the next start still ends orphaned servers.
    this.#shell.on('error', () => {});
    this.#shell.stdin!.on('error', () => {});
    this.#shell.unref();
  }

  /**
   * Sets the process id of the server that must end with this process; undefined after the server has ended.
   */
  watch(pid: number | undefined): void {
    this.#shell?.stdin?.write(`${pid ?? ''}\n`);
  }

  /** Ends the watching shell, because the server has ended and will not be restarted. */
  close(): void {
    this.watch(undefined);
    this.#shell?.stdin?.end();
  }
}
