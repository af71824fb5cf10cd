/**
 * Watches whether the replicas of a server keep what they acknowledge: with ACK=replica one that does not sync each write, or that
 * can't be asked, does not count, and spins wait for the ledger (replicatedCalls.ts).
 */
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import { RedisClient } from './redisClient.js';
import { RedisDurability } from './redisDurability.js';

const TURN_MS = 1000;

class WatchedReplica extends PeriodicService {
  readonly name = 'durability watch of a replica';
  readonly #client: RedisClient;
  readonly #durability: RedisDurability;
  /** As they were found over the connection of now; undefined: not yet. */
  #volatile: readonly string[] | undefined;

  constructor(url: string, onError: (error: Error) => void) {
    super({ everyMs: TURN_MS, firstAfterMs: TURN_MS });
    this.#client = new RedisClient(url, onError);
    this.#durability = new RedisDurability(this.#client);
    // A server that was started again may have other settings.
    this.#client.on('close', () => {
      this.#volatile = undefined;
    });
    this.#client.on('identified', () => this.hurry());
  }

  override async start(): Promise<void> {
    // What fails is reported to onError, and tried again.
    this.#client.connect().catch(() => {});
    await super.start();
  }

  /** Does not wait for the look under way: nobody needs what it finds. */
  override async stop(): Promise<void> {
    this.#client.close();
    void super.stop();
  }

  get isDurable(): boolean {
    return this.#volatile?.length === 0;
  }

  get volatile(): readonly string[] {
    return this.#volatile ?? [];
  }

  protected async turn(): Promise<void> {
    const { serverId } = this.#client;
    if (serverId === undefined) return;
    const found = await this.#durability.find();
    if (this.#client.serverId === serverId) this.#volatile = found;
  }

  protected onTurnFailed(): void {
    this.#volatile = undefined;
  }
}

export class ReplicaWatch {
  readonly #url: string;
  readonly #onError: (error: Error) => void;
  /** By address. */
  readonly #replicas = new Map<string, WatchedReplica>();
  #count = 0;

  /** @param url of the server that they replicate: they have its user and password */
  constructor(url: string, onError: (error: Error) => void) {
    this.#url = url;
    this.#onError = onError;
  }

  /** @param addresses `host:port` of the replicas that there are now */
  follow(addresses: readonly string[]): void {
    this.#count = addresses.length;
    for (const [address, replica] of this.#replicas) {
      if (addresses.includes(address)) continue;
      this.#replicas.delete(address);
      void replica.stop();
    }
    for (const address of addresses) {
      if (this.#replicas.has(address)) continue;
      const url = new URL(this.#url);
      url.host = address;
      const replica = new WatchedReplica(url.href, this.#onError);
      this.#replicas.set(address, replica);
      void replica.start();
    }
  }

  get count(): number {
    return this.#count;
  }

  /** Each of them is known to keep what it acknowledges. */
  get areDurable(): boolean {
    for (const { isDurable } of this.#replicas.values()) if (!isDurable) return false;
    return true;
  }

  /** Those that may lose what they acknowledge, with the settings that let them; not those that can't be asked. */
  get volatile(): readonly string[] {
    return [...this.#replicas].flatMap(([address, { volatile }]) =>
      volatile.map((setting) => `${address}: ${setting}`),
    );
  }

  close(): void {
    this.follow([]);
  }
}
