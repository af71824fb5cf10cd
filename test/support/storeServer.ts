/** One store of a run's own, a Redis or a Postgres, to which faults can be done. */
import { readFile } from 'node:fs/promises';
import type { EmbeddedStore } from '../../src/app/embedded/index.js';
import { until } from './wait.js';

const KILLED_WITHIN_MS = 10_000;

export class StoreServer {
  readonly #begin: () => Promise<EmbeddedStore>;
  #store: EmbeddedStore;
  #frozen: number[] = [];
  #turn: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  private constructor(begin: () => Promise<EmbeddedStore>, store: EmbeddedStore) {
    this.#begin = begin;
    this.#store = store;
  }

  static async begin(begin: () => Promise<EmbeddedStore>): Promise<StoreServer> {
    return new StoreServer(begin, await begin());
  }

  /** With the password, past every proxy; the same for the whole run. */
  get url(): string {
    return this.#store.url;
  }

  /** The server's process; undefined while it is down. */
  pid(): number | undefined {
    return this.#store.pid();
  }

  /** SIGKILL; resolves when the server is dead. Its supervisor starts it again. */
  async kill(): Promise<void> {
    const pid = this.#store.pid();
    if (pid === undefined) return;
    send(pid, 'SIGKILL');
    await until(() => this.#store.pid() !== pid, `process ${pid} is dead`, KILLED_WITHIN_MS, 1);
  }

  /** SIGKILL; it stays away until {@link start}. */
  killForGood(): Promise<void> {
    return this.#next(() => {
      const pid = this.#store.pid();
      if (pid !== undefined) send(pid, 'SIGKILL');
      return this.#store.stop();
    });
  }

  /** Stops all its processes where they are: connections stay open and nothing is answered. */
  async freeze(): Promise<void> {
    const pid = this.#store.pid();
    if (pid === undefined) return;
    // The parent first: it makes no further children then.
    send(pid, 'SIGSTOP');
    this.#frozen = [pid, ...(await childrenOf(pid))];
    for (const each of this.#frozen) send(each, 'SIGSTOP');
  }

  /** Lets all that {@link freeze} stopped go on. */
  thaw(): void {
    for (const pid of this.#frozen.splice(0)) send(pid, 'SIGCONT');
  }

  /** Ends the server in an orderly way; it stays away until {@link start}. */
  stop(): Promise<void> {
    return this.#next(() => this.#store.stop());
  }

  /** Starts it again on the same data and port. */
  start(): Promise<void> {
    return this.#next(async () => {
      if (!this.#isClosed) this.#store = await this.#begin();
    });
  }

  /** Ends it for good, whatever state a fault left it in. */
  close(): Promise<void> {
    this.#isClosed = true;
    this.thaw();
    return this.#next(() => this.#store.stop());
  }

  /** One after the other: a start that is under way when the run is interrupted must not outlive it. */
  #next(step: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(step);
    this.#turn = done.catch(() => {});
    return done;
  }
}

/** Postgres gives each connection a process. */
async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  return text.split(' ').filter(Boolean).map(Number);
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // It may have ended by itself meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
