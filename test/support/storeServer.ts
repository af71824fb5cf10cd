/** One store of a test run, a Redis or a Postgres, in which the test can cause faults. */
import { readFile } from 'node:fs/promises';
import type { EmbeddedStore } from '../../src/app/embedded/index.js';
import { until } from './wait.js';

const KILLED_WITHIN_MS = 10_000;

export class StoreServer {
  readonly #begin: () => Promise<EmbeddedStore>;
  #frozen: number[] = [];
  #turn: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  private constructor(
    begin: () => Promise<EmbeddedStore>,
    private store: EmbeddedStore,
  ) {
    this.#begin = begin;
  }

  static async begin(begin: () => Promise<EmbeddedStore>): Promise<StoreServer> {
    return new StoreServer(begin, await begin());
  }

  /** The URL with the password. It bypasses every proxy and stays the same until the end of the test run. */
  get url(): string {
    return this.store.url;
  }

  /** The process id of the server, or undefined while it is down. */
  pid(): number | undefined {
    return this.store.pid();
  }

  /** Kills the server with SIGKILL and resolves when it is dead. Its supervisor restarts it. */
  async kill(): Promise<void> {
    const pid = this.store.pid();
    if (pid === undefined) return;
    send(pid, 'SIGKILL');
    await until(() => this.store.pid() !== pid, `process ${pid} is dead`, KILLED_WITHIN_MS, 1);
  }

  /** Kills the server with SIGKILL and keeps it down until {@link start}. */
  killForGood(): Promise<void> {
    return this.#next(() => {
      const pid = this.store.pid();
      if (pid !== undefined) send(pid, 'SIGKILL');
      return this.store.stop();
    });
  }

  /** Pauses all processes of the server. Connections stay open, but the server answers nothing. */
  async freeze(): Promise<void> {
    const pid = this.store.pid();
    if (pid === undefined) return;
    // The parent is paused first, so that it creates no further children.
    send(pid, 'SIGSTOP');
    this.#frozen = [pid, ...(await childrenOf(pid))];
    for (const each of this.#frozen) send(each, 'SIGSTOP');
  }

  /** Resumes all processes that {@link freeze} paused. */
  thaw(): void {
    for (const pid of this.#frozen.splice(0)) send(pid, 'SIGCONT');
  }

  /** Stops the server by an orderly shutdown and keeps it down until {@link start}. */
  stop(): Promise<void> {
    return this.#next(() => this.store.stop());
  }

  /** Starts the server again with the same data and port. */
  start(): Promise<void> {
    return this.#next(async () => {
      if (!this.#isClosed) this.store = await this.#begin();
    });
  }

  /** Ends the server permanently, whatever state a fault left it in. */
  close(): Promise<void> {
    this.#isClosed = true;
    this.thaw();
    return this.#next(() => this.store.stop());
  }

  /**
   * Runs the steps one after another, so that no server is started after an interrupted test run has ended
   * it.
   */
  #next(step: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(step);
    this.#turn = done.catch(() => {});
    return done;
  }
}

/** Returns the child processes of a process. Postgres has a process for each connection. */
async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  return text.split(' ').filter(Boolean).map(Number);
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // The process may have ended in the meantime.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
