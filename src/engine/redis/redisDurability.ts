/** Whether a server may lose or evict what it acknowledged: its settings can be changed while it runs (redisDurabilityWatch.ts). */
import type { RedisClient } from './redisClient.js';

/** With these the server keeps everything that it acknowledges. */
const DURABLE_SETTINGS = {
  appendonly: 'yes',
  appendfsync: 'always',
  'no-appendfsync-on-rewrite': 'no',
  'maxmemory-policy': 'noeviction',
};

export class RedisDurability {
  readonly #client: RedisClient;
  #volatile: readonly string[] = [];
  /** The run of the server whose log was found off, until it is whole again. */
  #logOffIn: string | undefined;

  constructor(client: RedisClient) {
    this.#client = client;
  }

  /** The settings that let the server lose data, as the watch found them last; none: it keeps everything. */
  get volatile(): readonly string[] {
    return this.#volatile;
  }

  /** Reads the settings; while the server does not answer, what was found last holds. @returns whether they changed. */
  async look(): Promise<boolean> {
    const found = await this.find().catch(() => this.#volatile);
    const hasChanged = found.join() !== this.#volatile.join();
    this.#volatile = found;
    return hasChanged;
  }

  /** The settings that let the server lose data, as they are now. @throws where it does not answer. */
  async find(): Promise<readonly string[]> {
    const { serverId } = this.#client;
    const found = await this.#volatileSettings();
    if (found.some((setting) => setting.startsWith('appendonly '))) {
      this.#logOffIn = serverId;
    } else if (this.#logOffIn !== undefined && this.#logOffIn === serverId) {
      // A log that is turned on again counts once it is written whole: until then a start loads the one from before.
      if (!(await this.#isLogWhole())) return [...found, 'appendonly yes, the log is not whole yet'];
      this.#logOffIn = undefined;
    }
    return found;
  }

  async #volatileSettings(): Promise<string[]> {
    const answer = (await this.#client.config('GET', ...Object.keys(DURABLE_SETTINGS))) as string[];
    const settings = new Map<string, string>();
    for (let i = 0; i + 1 < answer.length; i += 2) settings.set(answer[i]!, answer[i + 1]!);
    return Object.entries(DURABLE_SETTINGS).flatMap(([name, value]) =>
      settings.get(name) === value ? [] : [`${name} ${settings.get(name) ?? 'unknown'}`],
    );
  }

  /** A rewrite of the append-only file is neither under way nor due nor has the last one failed. */
  async #isLogWhole(): Promise<boolean> {
    const info = await this.#client.info('persistence');
    return ['aof_rewrite_in_progress:0', 'aof_rewrite_scheduled:0', 'aof_last_bgrewrite_status:ok'].every(
      (line) => info.includes(line),
    );
  }
}
