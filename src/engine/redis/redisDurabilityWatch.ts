/**
 * Watches whether the nodes may lose or evict acknowledged writes. With ACK=replica it also watches their
 * replicas.
 */
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import { HEALTHY, type Health, type Service, unhealthy } from '../../platform/runtime/service.js';
import type { RedisNode } from './node.js';
import type { RedisNodes } from './nodes.js';

const TURN_MS = 1000;

export interface DurabilityListener {
  /** Called when the settings that allow a server to lose data have changed. */
  readonly onChanged: () => void;
  /** Called when the settings that allow a replica to lose data have changed. */
  readonly onReplicasChanged: () => void;
}

/**
 * Checks a node at startup, so that the result is available before requests are served, and then every
 * second.
 */
class DurabilityWatch extends PeriodicService {
  readonly name = 'durability watch of a node';
  #volatileReplicas = '';

  constructor(
    private readonly node: RedisNode,
    private readonly listener: DurabilityListener,
  ) {
    super({ everyMs: TURN_MS });
  }

  override async start(): Promise<void> {
    await this.takeTurn();
    await super.start();
  }

  protected async turn(): Promise<void> {
    const replicas = this.node.volatileReplicas.join();
    if (replicas !== this.#volatileReplicas) this.listener.onReplicasChanged();
    this.#volatileReplicas = replicas;
    if (await this.node.durability.look()) this.listener.onChanged();
  }
}

/**
 * Watches each node separately, so that a node that does not respond does not delay the checks of other
 * nodes.
 */
export class DurabilityWatches implements Service {
  readonly name = 'durability watch';
  #end: (() => void) | undefined;

  constructor(
    private readonly nodes: RedisNodes,
    private readonly listener: DurabilityListener,
  ) {}

  /** Resolves after the first check of all current nodes. */
  async start(): Promise<void> {
    const started: Promise<void>[] = [];
    this.#end = this.nodes.each((node) => {
      const watch = new DurabilityWatch(node, this.listener);
      started.push(watch.start());
      return () => void watch.stop();
    });
    await Promise.all(started);
  }

  /** Stopping does not wait for checks under way, because their results are no longer needed. */
  async stop(): Promise<void> {
    this.#end?.();
  }

  health(): Health {
    const volatile = this.nodes.all.flatMap((node) => node.durability.volatile);
    return volatile.length === 0 ? HEALTHY : unhealthy(volatile.join('; '));
  }
}
