/**
 * Watches whether the replicas of a server keep the writes that they acknowledge. With ACK=replica, a replica
 * does not count if it does not sync each write or can't be queried. Spins then wait for the ledger
 * (replicatedCalls.ts).
 */
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import { RedisClient, readRunId } from './redisClient.js';
import { RedisDurability } from './redisDurability.js';

const TURN_MS = 1000;

class WatchedReplica extends PeriodicService {
  readonly name = 'durability watch of a replica';
  readonly #client: RedisClient;
  readonly #durability: RedisDurability;
  /**
   * Settings with which the replica could lose writes, as read over the current connection; undefined before
   * the first check.
   */
  #volatile: readonly string[] | undefined;

  constructor(url: string, onError: (error: Error) => void) {
    super({ everyMs: TURN_MS });
    this.#client = new RedisClient(url, onError, readRunId);
    this.#durability = new RedisDurability(this.#client);
    // Forget the settings, because a restarted server may have other settings.
    this.#client.on('close', () => {
      this.#volatile = undefined;
    });
    this.#client.on('identified', () => this.hurry());
  }

  override async start(): Promise<void> {
    // Connection errors are reported to onError, and the connection is retried.
    this.#client.connect().catch(() => {});
    await super.start();
  }

  /** Stopping does not wait for the check under way, because its result is no longer needed. */
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

  protected override onTurnFailed(): void {
    this.#volatile = undefined;
  }
}

export class ReplicaWatch {
  readonly #url: string;
  readonly #onError: (error: Error) => void;
  readonly #replicas = new Map<string, WatchedReplica>();
  #count = 0;

  /** @param url URL of the primary, whose user and password the replicas share */
  constructor(url: string, onError: (error: Error) => void) {
    this.#url = url;
    this.#onError = onError;
  }

  /** @param addresses `host:port` of all current replicas */
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

  /** True if every replica is known to keep the writes that it acknowledges. */
  get areDurable(): boolean {
    for (const { isDurable } of this.#replicas.values()) if (!isDurable) return false;
    return true;
  }

  /**
   * Replicas that may lose acknowledged writes, with the settings that allow it. Replicas that can't be
   * queried are not included.
   */
  get volatile(): readonly string[] {
    return [...this.#replicas].flatMap(([address, { volatile }]) =>
      volatile.map((setting) => `${address}: ${setting}`),
    );
  }

  close(): void {
    this.follow([]);
  }
}
