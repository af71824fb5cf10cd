/** Watches whether the server may lose or evict what it acknowledges: its settings can be changed while it runs. */
import { type RedisClient, volatility } from './client.js';

const TURN_MS = 1000;

export class Durability {
  readonly #client: RedisClient;
  readonly #onChange: (volatile: readonly string[]) => void;
  #volatile: readonly string[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** @param onChange told whenever the settings that let it lose data become others; none: it keeps everything. */
  constructor(client: RedisClient, onChange: (volatile: readonly string[]) => void) {
    this.#client = client;
    this.#onChange = onChange;
  }

  /** The settings that let it lose data, as they were found last. */
  get volatile(): readonly string[] {
    return this.#volatile;
  }

  start(): void {
    const turn = async (): Promise<void> => {
      await this.look();
      if (this.#timer !== undefined) this.#timer = setTimeout(turn, TURN_MS);
    };
    this.#timer = setTimeout(turn, TURN_MS);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Reads the settings; while the server does not answer, what was found last holds. */
  async look(): Promise<void> {
    let found: readonly string[];
    try {
      found = await volatility(this.#client);
    } catch {
      return;
    }
    const hasChanged = found.join() !== this.#volatile.join();
    this.#volatile = found;
    if (hasChanged) this.#onChange(found);
  }
}
