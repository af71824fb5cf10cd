/**
 * Counts failed authentications by client in the store. Once a client is over the limit, this process refuses
 * its requests without the store until the window ends. The clients of a network that floods share one
 * counter, so that they cannot fill the store with counters.
 */
import { WINDOW_SECONDS, type Window } from './answerHead.js';
import { ClientCounts } from './clientCounts.js';

/**
 * Maximum number of clients over the limit that this process remembers. The store counts the failures of all
 * other clients.
 */
const CLIENTS_MAX = 10_000;
/**
 * Number of failures of a client in a window that are answered without delay. Answers to further wrong keys
 * are delayed.
 */
const PROMPT_FAILURES = 3;
const FIRST_DELAY_MS = 50;
const DELAY_MAX_MS = 2000;
/**
 * Maximum number of answers that are delayed at the same time, for one client and in total. A request beyond
 * these limits is refused at once instead of after a delay.
 */
const DELAYED_OF_CLIENT_MAX = 16;
const DELAYED_MAX = 1024;

/** Counts a failure of a client in the store. Returns the count of the window and the store's time in ms. */
export type CountFailure = (client: string, limit: number) => Promise<{ count: number; timeMs: number }>;

export interface AuthFailure {
  /** The client, or the network whose shared counter includes the client. */
  readonly client: string;
  readonly window: Window;
  /** True if the client is over the limit. The response then does not reveal whether the key is valid. */
  readonly isOver: boolean;
}

export class AuthFailures {
  readonly #countInStore: CountFailure;
  /** Number of failures of each client over the limit, with the time of the client's newest window. */
  readonly #over = new Map<string, { count: number; timeMs: number; seenMs: number }>();
  readonly #clients: ClientCounts;
  readonly #delayedOf = new Map<string, number>();
  #delayed = 0;

  constructor(
    count: CountFailure,
    private readonly limit: number,
    nowMs: () => number = Date.now,
  ) {
    this.#countInStore = count;
    this.#clients = new ClientCounts(WINDOW_SECONDS, nowMs);
  }

  /**
   * @param isSlowed true: delays the answer, longer for each further failure
   * @throws errors of the store
   */
  async count(client: string, isSlowed: boolean): Promise<AuthFailure> {
    const { name } = this.#clients.count(client);
    const { count, timeMs } = this.#countHere(name) ?? (await this.#countThere(name));
    const isRoom = !isSlowed || (await this.#delay(name, count));
    const remaining = Math.max(0, this.limit - count);
    return {
      client: name,
      window: { policy: 'auth', limit: this.limit, remaining, nowMs: timeMs },
      isOver: count > this.limit || !isRoom,
    };
  }

  /**
   * Counts a failure of a client that is still over the limit, without a call to the store. Returns undefined
   * for other clients.
   */
  #countHere(client: string): { count: number; timeMs: number } | undefined {
    const over = this.#over.get(client);
    if (over === undefined) return undefined;
    const timeMs = over.timeMs + performance.now() - over.seenMs;
    if (windowOf(timeMs) !== windowOf(over.timeMs)) {
      this.#over.delete(client);
      return undefined;
    }
    over.count++;
    return { count: over.count, timeMs: Math.floor(timeMs) };
  }

  async #countThere(client: string): Promise<{ count: number; timeMs: number }> {
    const counted = await this.#countInStore(client, this.limit);
    if (counted.count > this.limit) {
      if (this.#over.size >= CLIENTS_MAX) this.#over.clear();
      this.#over.set(client, { ...counted, seenMs: performance.now() });
    }
    return counted;
  }

  /** Returns false without a delay if too many answers are delayed already. */
  async #delay(client: string, count: number): Promise<boolean> {
    if (count <= PROMPT_FAILURES) return true;
    const ofClient = this.#delayedOf.get(client) ?? 0;
    if (ofClient >= DELAYED_OF_CLIENT_MAX || this.#delayed >= DELAYED_MAX) return false;
    this.#delayed++;
    this.#delayedOf.set(client, ofClient + 1);
    const delayMs = Math.min(DELAY_MAX_MS, FIRST_DELAY_MS * 2 ** (count - PROMPT_FAILURES - 1));
    await new Promise((resolve) => setTimeout(resolve, delayMs).unref());
    this.#delayed--;
    const left = this.#delayedOf.get(client)! - 1;
    if (left === 0) this.#delayedOf.delete(client);
    else this.#delayedOf.set(client, left);
    return true;
  }
}

const windowOf = (timeMs: number): number => Math.floor(timeMs / 1000 / WINDOW_SECONDS);
