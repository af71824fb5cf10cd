/**
 * Checks whether a server may lose or evict acknowledged writes. Its settings can be changed while it runs,
 * so they are checked repeatedly (redisDurabilityWatch.ts).
 */
import type { RedisClient } from './redisClient.js';

/** Values of the server's settings with which it keeps every write that it acknowledges. */
const DURABLE_SETTINGS = {
  appendonly: 'yes',
  appendfsync: 'always',
  'no-appendfsync-on-rewrite': 'no',
  'maxmemory-policy': 'noeviction',
};

export class RedisDurability {
  #volatile: readonly string[] = [];
  /**
   * Server run in which the append-only file was found to be off. It is cleared once the file is complete
   * again.
   */
  #logOffIn: string | undefined;

  constructor(private readonly client: RedisClient) {}

  /** Settings that allow the server to lose data, as of the last check. Empty if the server is durable. */
  get volatile(): readonly string[] {
    return this.#volatile;
  }

  /**
   * Reads the settings that determine the server's durability. If the server does not respond, the last
   * result is kept.
   * @returns true if the settings have changed
   */
  async look(): Promise<boolean> {
    const found = await this.find().catch(() => this.#volatile);
    const hasChanged = found.join() !== this.#volatile.join();
    this.#volatile = found;
    return hasChanged;
  }

  /**
   * Reads the settings that allow the server to lose data.
   * @throws Error if the server does not respond
   */
  async find(): Promise<readonly string[]> {
    const { serverId } = this.client;
    const found = await this.#volatileSettings();
    if (found.some((setting) => setting.startsWith('appendonly '))) {
      this.#logOffIn = serverId;
    } else if (this.#logOffIn !== undefined && this.#logOffIn === serverId) {
      // After the append-only file was turned on again, it must be rewritten completely before it counts.
      // Until then a restart would load the earlier file.
      if (!(await this.#isLogWhole()))
        return [...found, 'appendonly yes, but the append-only file is not complete yet'];
      this.#logOffIn = undefined;
    }
    return found;
  }

  async #volatileSettings(): Promise<string[]> {
    const answer = (await this.client.config('GET', ...Object.keys(DURABLE_SETTINGS))) as string[];
    const settings = new Map<string, string>();
    for (let i = 0; i + 1 < answer.length; i += 2) settings.set(answer[i]!, answer[i + 1]!);
    return Object.entries(DURABLE_SETTINGS).flatMap(([name, value]) =>
      settings.get(name) === value ? [] : [`${name} ${settings.get(name) ?? 'unknown'}`],
    );
  }

  /** True if no rewrite of the append-only file is under way or scheduled, and the last rewrite succeeded. */
  async #isLogWhole(): Promise<boolean> {
    const info = await this.client.info('persistence');
    return ['aof_rewrite_in_progress:0', 'aof_rewrite_scheduled:0', 'aof_last_bgrewrite_status:ok'].every(
      (line) => info.includes(line),
    );
  }
}
