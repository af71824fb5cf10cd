/**
 * Tells whether the catalog is behind: a key was revoked, or a partner or game was changed or suspended, and this process can't
 * read it from Postgres. A revoked key must not be accepted then, so nothing is. What is only added holds nobody up.
 *
 *   Postgres ──poll──> catalog of any process ──tells the change's number──> Redis ──poll──> catalogs of all others
 *
 * A process that has lost Postgres goes on while nothing of that kind has changed.
 */
import type { EventEmitter } from '../events.js';
import type { RedisNode } from '../redis/node.js';
import type { RedisNodes } from '../redis/nodes.js';
import { PeriodicService } from '../runtime/periodicService.js';
import { withTimeout } from '../runtime/withTimeout.js';
import type { Catalog } from './catalog.js';

/** With both limits below, and 600 ms to read a change, it is known within 1 s of a change that it can't be read. */
const LOOK_EVERY_MS = 100;
const TOLD_WITHIN_MS = 200;

export class Staleness extends PeriodicService {
  readonly name = 'catalog staleness';
  readonly #catalog: Pick<Catalog, 'newestChange' | 'newestRestriction' | 'refresh'>;
  readonly #nodes: RedisNodes;
  readonly #datasetId: string;
  readonly #readWithinMs: number;
  /** All changes up to this one were told before a read that succeeded. */
  #caughtUpTo = 0n;
  #isBehind = false;

  /** @param readWithinMs how long a change may take to be read, in milliseconds */
  constructor(
    catalog: Pick<Catalog, 'newestChange' | 'newestRestriction' | 'refresh'>,
    nodes: RedisNodes,
    datasetId: string,
    readWithinMs: number,
    events: EventEmitter,
  ) {
    super({ everyMs: LOOK_EVERY_MS, firstAfterMs: 0 });
    this.#catalog = catalog;
    this.#nodes = nodes;
    this.#datasetId = datasetId;
    this.#readWithinMs = readWithinMs;
    // Told at once, not at the next look.
    events.on('RestrictionRead', () => this.hurry());
  }

  /** What is known of partners, keys and games is known to be old. */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  protected async turn(): Promise<void> {
    const told = await Promise.all(this.#nodes.all.map((node) => this.#exchange(node)));
    const newest = told.reduce((most, change) => (change > most ? change : most), 0n);
    if (newest > this.#catalog.newestChange && newest > this.#caughtUpTo) {
      // Not by the number alone: a Postgres that was put back to an earlier state has lower ones.
      const isRead = await withTimeout(this.#catalog.refresh(), this.#readWithinMs).then(
        () => true,
        () => false,
      );
      if (isRead) this.#caughtUpTo = newest;
      // The poll may have read it meanwhile.
      this.#isBehind = !isRead && newest > this.#catalog.newestChange;
    } else {
      this.#isBehind = false;
    }
  }

  protected onTurnFailed(): void {}

  /** Learns what a node was told, and tells it what it was not. 0 where it does not answer: nothing is dealt from it then. */
  async #exchange(node: RedisNode): Promise<bigint> {
    const { newestRestriction } = this.#catalog;
    try {
      const told = await withTimeout(this.#nodes.toldChange(node, this.#datasetId), TOLD_WITHIN_MS);
      if (told < newestRestriction)
        await withTimeout(this.#nodes.tellChange(node, this.#datasetId, newestRestriction), TOLD_WITHIN_MS);
      return told;
    } catch {
      return 0n;
    }
  }
}
