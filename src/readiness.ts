/** What is missing before this process can serve: the answer of GET /readyz. */
import type { Catalog } from './catalog/catalog.js';
import type { Store } from './postgres/store.js';
import type { RedisNodes } from './redis/nodes.js';
import { withTimeout } from './runtime/withTimeout.js';

/**
 * @param volatile settings of Redis that let it lose data, where it may not be served from for that.
 * @returns a line for each thing; none where all is there.
 */
export async function missing(
  nodes: RedisNodes,
  store: Store,
  catalog: Catalog,
  volatile: readonly string[],
): Promise<string[]> {
  const lines: string[] = [];
  const [recoveries, halted, closed] = await Promise.allSettled([
    withTimeout(store.openRecoveries(), READY_WITHIN_MS),
    withTimeout(store.haltedCells(), READY_WITHIN_MS),
    withTimeout(nodes.closed(catalog.epochs), READY_WITHIN_MS),
  ]);
  /** Cells of which it is said why they are closed. */
  const explained = new Set<number>();
  if (recoveries.status === 'rejected' || halted.status === 'rejected') {
    lines.push('Postgres does not answer');
  } else {
    for (const { cell, reason } of halted.value) {
      explained.add(cell);
      lines.push(`The ledger of cell ${cell} is halted: ${reason}`);
    }
    for (const { cell, step, players, requests, startedAt } of recoveries.value) {
      explained.add(cell);
      lines.push(
        `Cell ${cell} is being rebuilt from the ledger since ${startedAt.toISOString()}: ` +
          `${step} (${players} players, ${requests} requests so far)`,
      );
    }
  }
  if (closed.status === 'rejected') {
    lines.push('Redis does not answer');
  } else {
    const others = closed.value.filter((cell) => !explained.has(cell));
    if (others.length > 0) {
      lines.push(`Redis is not yet, or not any more, what the ledger knows in cells ${others.join(', ')}`);
    }
  }
  if (volatile.length > 0) lines.push(`Redis may lose what it acknowledges: ${volatile.join('; ')}`);
  return lines;
}

const READY_WITHIN_MS = 2000;

const SHARED_FOR_MS = 250;

/** Everybody who asks within 250 ms, or while a look is under way, gets the result of one look. */
export function sharedLook<T>(look: () => Promise<T>): () => Promise<T> {
  let shared: Promise<T> | undefined;
  let endedAt = Number.POSITIVE_INFINITY;
  return () => {
    if (shared === undefined || performance.now() - endedAt > SHARED_FOR_MS) {
      endedAt = Number.POSITIVE_INFINITY;
      shared = look().finally(() => {
        endedAt = performance.now();
      });
    }
    return shared;
  };
}
