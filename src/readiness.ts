/** Whether this process can serve, and what stands against it: the answer of GET /readyz. */
import type { Catalog } from './catalog/catalog.js';
import type { Store } from './postgres/store.js';
import type { RedisNodes } from './redis/nodes.js';
import { withTimeout } from './runtime/withTimeout.js';

export interface Readiness {
  /** What is missing, a line each: the process is not ready. */
  readonly missing: readonly string[];
  /** Cells that are halted while others are served, a line each: the process is ready, for the partners of the others. */
  readonly halted: readonly string[];
}

/** @param volatile settings of Redis that let it lose data, where it may not be served from for that. */
export async function readiness(
  nodes: RedisNodes,
  store: Store,
  catalog: Catalog,
  volatile: readonly string[],
): Promise<Readiness> {
  const lines: string[] = [];
  const haltedLines: string[] = [];
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
      haltedLines.push(`The ledger of cell ${cell} is halted: ${reason}`);
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
  const isAnyServed = haltedLines.length < catalog.epochs.size;
  return isAnyServed
    ? { missing: lines, halted: haltedLines }
    : { missing: [...haltedLines, ...lines], halted: [] };
}

/** The answer. */
export function readyAnswer({ missing, halted }: Readiness): {
  readonly status: number;
  readonly body: string;
} {
  const isReady = missing.length === 0;
  const body = JSON.stringify({ status: isReady ? 'ready' : 'not ready', missing, halted });
  return { status: isReady ? 200 : 503, body };
}

const READY_WITHIN_MS = 2000;

const SHARED_FOR_MS = 250;

/**
 * Everybody who asks within 250 ms, or while a look is under way, gets the result of one look.
 * @param known what this process knows at once; when that has changed, the look from before is no longer shared
 */
export function sharedLook<T>(look: () => Promise<T>, known: () => unknown): () => Promise<T> {
  let shared: { readonly result: Promise<T>; readonly known: unknown; endedAt: number } | undefined;
  return () => {
    const now = known();
    if (shared === undefined || shared.known !== now || performance.now() - shared.endedAt > SHARED_FOR_MS) {
      const result = look();
      const own = { result, known: now, endedAt: Number.POSITIVE_INFINITY };
      shared = own;
      const ended = (): void => {
        own.endedAt = performance.now();
      };
      result.then(ended, ended);
    }
    return shared.result;
  };
}
