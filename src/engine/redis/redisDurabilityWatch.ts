/** Watches whether the nodes, and with ACK=replica their replicas, may lose or evict what they acknowledged. */
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import { HEALTHY, type Health, type Service, unhealthy } from '../../platform/runtime/service.js';
import type { RedisNode } from './node.js';
import type { RedisNodes } from './nodes.js';

const TURN_MS = 1000;

export interface DurabilityListener {
  /** The settings that let a server lose data have become others. */
  readonly onChanged: () => void;
  /** Those of a replica have. */
  readonly onReplicasChanged: () => void;
}

/** Looks at once, so that what may be lost is known before anything is served, and then every second. */
class DurabilityWatch extends PeriodicService {
  readonly name = 'durability watch of a node';
  readonly #node: RedisNode;
  readonly #listener: DurabilityListener;
  #volatileReplicas = '';

  constructor(node: RedisNode, listener: DurabilityListener) {
    super({ everyMs: TURN_MS, firstAfterMs: TURN_MS });
    this.#node = node;
    this.#listener = listener;
  }

  override async start(): Promise<void> {
    await this.takeTurn();
    await super.start();
  }

  protected async turn(): Promise<void> {
    const replicas = this.#node.volatileReplicas.join();
    if (replicas !== this.#volatileReplicas) this.#listener.onReplicasChanged();
    this.#volatileReplicas = replicas;
    if (await this.#node.durability.look()) this.#listener.onChanged();
  }

  /** A look tells nothing of a server that does not answer. */
  protected onTurnFailed(): void {}
}

/** Watches each node by itself: one that does not answer holds up no other's watch. */
export class DurabilityWatches implements Service {
  readonly name = 'durability watch';
  readonly #nodes: RedisNodes;
  readonly #listener: DurabilityListener;
  #end: (() => void) | undefined;

  constructor(nodes: RedisNodes, listener: DurabilityListener) {
    this.#nodes = nodes;
    this.#listener = listener;
  }

  /** Resolves once the nodes that there are have been looked at. */
  async start(): Promise<void> {
    const started: Promise<void>[] = [];
    this.#end = this.#nodes.each((node) => {
      const watch = new DurabilityWatch(node, this.#listener);
      started.push(watch.start());
      return () => void watch.stop();
    });
    await Promise.all(started);
  }

  /** Does not wait for the looks under way: nobody needs what they find. */
  async stop(): Promise<void> {
    this.#end?.();
  }

  health(): Health {
    const volatile = this.#nodes.all.flatMap((node) => node.durability.volatile);
    return volatile.length === 0 ? HEALTHY : unhealthy(volatile.join('; '));
  }
}
