/** Watches whether the nodes may lose or evict what they acknowledged. */
import { PeriodicService } from '../runtime/periodicService.js';
import { HEALTHY, type Health, type Service, unhealthy } from '../runtime/service.js';
import type { Durability } from './durability.js';
import type { RedisNodes } from './nodes.js';

const TURN_MS = 1000;

/** Looks at once, so that what may be lost is known before anything is served, and then every second. */
class DurabilityWatch extends PeriodicService {
  readonly name = 'durability watch of a node';
  readonly #durability: Durability;
  readonly #onChange: () => void;

  constructor(durability: Durability, onChange: () => void) {
    super({ everyMs: TURN_MS, firstAfterMs: TURN_MS });
    this.#durability = durability;
    this.#onChange = onChange;
  }

  override async start(): Promise<void> {
    await this.takeTurn();
    await super.start();
  }

  protected async turn(): Promise<void> {
    if (await this.#durability.look()) this.#onChange();
  }

  /** A look tells nothing of a server that does not answer. */
  protected onTurnFailed(): void {}
}

/** Watches each node by itself: one that does not answer holds up no other's watch. */
export class DurabilityWatches implements Service {
  readonly name = 'durability watch';
  readonly #nodes: RedisNodes;
  readonly #onChange: () => void;
  #end: (() => void) | undefined;

  /** @param onChange told whenever the settings that let a server lose data become others. */
  constructor(nodes: RedisNodes, onChange: () => void) {
    this.#nodes = nodes;
    this.#onChange = onChange;
  }

  /** Resolves once the nodes that there are have been looked at. */
  async start(): Promise<void> {
    const started: Promise<void>[] = [];
    this.#end = this.#nodes.each(({ durability }) => {
      const watch = new DurabilityWatch(durability, this.#onChange);
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
