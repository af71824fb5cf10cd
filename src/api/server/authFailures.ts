/**
 * Failed authentications: counted by client in the store, and from the limit on refused here, for the rest of the window. The
 * clients of a network that floods share a count, so that it can't fill the store with counts.
 */
import { WINDOW_SECONDS, type Window } from './answerHead.js';
import { ClientCounts } from './clientCounts.js';

/** Clients over the limit that are remembered; the store counts the others' failures. */
const CLIENTS_MAX = 10_000;
/** Failures of a client in a window whose answers come at once, where wrong keys are slowed. */
const PROMPT_FAILURES = 3;
const FIRST_DELAY_MS = 50;
const DELAY_MAX_MS = 2000;
/** Answers that wait at once, of one client and in all; a further one is not slowed, but refused. */
const DELAYED_OF_CLIENT_MAX = 16;
const DELAYED_MAX = 1024;

/** Counts a failure of a client. */
export type CountFailure = (client: string, limit: number) => Promise<{ count: number; timeMs: number }>;

export interface AuthFailure {
  /** The client, or the network that it is counted with. */
  readonly client: string;
  readonly window: Window;
  /** Over the limit: nothing more is said of the key. */
  readonly isOver: boolean;
}

export class AuthFailures {
  readonly #countInStore: CountFailure;
  readonly #limit: number;
  /** Failures of clients over the limit, by the window that they were counted in last. */
  readonly #over = new Map<string, { count: number; timeMs: number; seenMs: number }>();
  readonly #clients: ClientCounts;
  readonly #delayedOf = new Map<string, number>();
  #delayed = 0;

  constructor(count: CountFailure, limit: number, nowMs: () => number = Date.now) {
    this.#countInStore = count;
    this.#limit = limit;
    this.#clients = new ClientCounts(WINDOW_SECONDS, nowMs);
  }

  /**
   * Counts a failure.
   * @param isSlowed its answer waits: the longer, the more there were
   * @throws what the store throws
   */
  async count(client: string, isSlowed: boolean): Promise<AuthFailure> {
    const { name } = this.#clients.count(client);
    const { count, timeMs } = this.#countHere(name) ?? (await this.#countThere(name));
    const isRoom = !isSlowed || (await this.#delay(name, count));
    const remaining = Math.max(0, this.#limit - count);
    return {
      client: name,
      window: { policy: 'auth', limit: this.#limit, remaining, nowMs: timeMs },
      isOver: count > this.#limit || !isRoom,
    };
  }

  /** Of a client that is known to be over the limit still. */
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
    const counted = await this.#countInStore(client, this.#limit);
    if (counted.count > this.#limit) {
      if (this.#over.size >= CLIENTS_MAX) this.#over.clear();
      this.#over.set(client, { ...counted, seenMs: performance.now() });
    }
    return counted;
  }

  /** @returns false: too many answers wait already */
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
