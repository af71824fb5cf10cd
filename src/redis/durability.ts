/** Watches whether the server may lose or evict what it acknowledges: its settings can be changed while it runs. */
import { isLogWhole, type RedisClient, volatility } from './client.js';

const TURN_MS = 1000;

export class Durability {
  readonly #client: RedisClient;
  readonly #onChange: (volatile: readonly string[]) => void;
  #volatile: readonly string[] = [];
  /** The run of the server whose log was found off, until it is whole again. */
  #logOffIn: string | undefined;
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
      found = await this.find();
    } catch {
      return;
    }
    const hasChanged = found.join() !== this.#volatile.join();
    this.#volatile = found;
    if (hasChanged) this.#onChange(found);
  }

  /** The settings that let it lose data, as they are now. @throws where the server does not answer. */
  async find(): Promise<readonly string[]> {
    const { serverId } = this.#client;
    const found = await volatility(this.#client);
    if (found.some((setting) => setting.startsWith('appendonly '))) {
      this.#logOffIn = serverId;
    } else if (this.#logOffIn !== undefined && this.#logOffIn === serverId) {
      // A log that is turned on again counts once it is written whole: until then a start loads the one from before.
      if (!(await isLogWhole(this.#client))) return [...found, 'appendonly yes, the log is not whole yet'];
      this.#logOffIn = undefined;
    }
    return found;
  }
}
