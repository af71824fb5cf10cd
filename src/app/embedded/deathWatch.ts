/**
 * Ends a server whose parent is gone, in whatever way that went. A small shell process waits on a pipe from this process, which
 * the kernel closes when this process ends; then it ends the server.
 */
import { type ChildProcess, spawn } from 'node:child_process';

/**
 * Standard input has a line for each start of the server: its process id, or nothing once that has ended. The arguments are a
 * deadline in seconds and the signals. A service manager sends its signal to this process, too: it has to outlive that.
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
  /** Sent one after the other, each with the deadline, before SIGKILL. */
  readonly stopSignals: readonly NodeJS.Signals[];
  readonly stopDeadlineMs: number;
}

export class DeathWatch {
  readonly #shell: ChildProcess | undefined;

  constructor({ stopSignals, stopDeadlineMs }: DeathWatchOptions) {
    // Windows has neither these signals nor this shell.
    if (process.platform === 'win32') return;
    const names = stopSignals.map((signal) => signal.slice('SIG'.length));
    this.#shell = spawn('/bin/sh', ['-c', SCRIPT, 'sh', String(Math.ceil(stopDeadlineMs / 1000)), ...names], {
      // The folder of the start may go.
      cwd: '/',
      env: { PATH: process.env.PATH ?? '' },
      stdio: ['pipe', 'ignore', 'ignore'],
      // A process group of its own: the signals of a terminal are not for it.
      detached: true,
    });
    // Without a shell, or once somebody has killed it, the next start still ends what was left running.
    this.#shell.on('error', () => {});
    this.#shell.stdin!.on('error', () => {});
    this.#shell.unref();
  }

  /** The server that is to end with this process; undefined once it has ended. */
  watch(pid: number | undefined): void {
    this.#shell?.stdin?.write(`${pid ?? ''}\n`);
  }

  /** The server has ended for good. */
  close(): void {
    this.watch(undefined);
    this.#shell?.stdin?.end();
  }
}
