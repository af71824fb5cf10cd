/**
 * Determines whether this process can deal outcomes and which problems it has, for the responses to
 * GET /readyz and GET /statusz.
 */

import { withTimeout } from '../platform/runtime/withTimeout.js';
import { type PostgresDurability, VolatilePostgresError } from '../postgres/postgresDurability.js';
import type { Catalog } from './catalog/catalog.js';
import type { EngineStore } from './engine.store.js';
import { type Clocks, skewedNodes } from './redis/clockSkew.js';
import type { RedisNodes } from './redis/nodes.js';
import type { ProcessRegistry } from './upgrade/processRegistry.js';

export interface Readiness {
  /** Problems because of which the process can deal from no cell, one line each. */
  readonly missing: readonly string[];
  /**
   * Cells that are not served while other cells are, one line each. The process is ready for the partners of
   * the other cells.
   */
  readonly unserved: readonly string[];
  /** Problems because of which other work waits while outcomes are dealt, one line each. */
  readonly waiting: readonly string[];
}

/** Settings that risk data loss, of the stores that may not be used because of these settings. */
export interface Volatile {
  readonly redis: readonly string[];
  readonly postgres: readonly string[];
}

/** Stores that may be used although their settings risk data loss. */
export interface AllowedVolatile {
  readonly allowVolatileRedis: boolean;
  readonly allowVolatilePostgres: boolean;
}

export const unservedVolatile = (
  allowed: AllowedVolatile,
  nodes: RedisNodes,
  postgres: PostgresDurability,
): Volatile => ({
  redis: allowed.allowVolatileRedis ? [] : nodes.all.flatMap(({ durability }) => durability.volatile),
  postgres: allowed.allowVolatilePostgres ? [] : postgres.volatile,
});

export interface ReadinessParts {
  readonly nodes: RedisNodes;
  readonly store: EngineStore;
  readonly catalog: Catalog;
  readonly clocks: Clocks;
  readonly registry: Pick<ProcessRegistry, 'problem'>;
  /**
   * Result of the program check. `problem` is set if the program's files differ from the build and the
   * process may therefore not deal.
   */
  readonly program: { readonly problem: string | undefined };
}

/**
 * Checks the readiness. The problems of single cells go to `unserved` as long as any other cell is served, so
 * that they don't stop the service for the partners of the other cells.
 */
export async function readiness(
  { nodes, store, catalog, clocks, registry, program }: ReadinessParts,
  volatile: Volatile,
): Promise<Readiness> {
  if (registry.problem !== undefined) return { missing: [registry.problem], unserved: [], waiting: [] };
  const missing = program.problem === undefined ? [] : [program.problem];
  const waiting: string[] = [];
  const ofCells: string[] = [];
  const [recoveries, halts, obstacles, states, skewed] = await Promise.allSettled([
    withTimeout(store.recoveries.open(), READY_WITHIN_MS),
    withTimeout(store.cells.halted(), READY_WITHIN_MS),
    withTimeout(store.answered.obstacles(), READY_WITHIN_MS),
    nodes.closed(catalog.epochs),
    withTimeout(skewedNodes(nodes.all, clocks), READY_WITHIN_MS),
  ]);
  let missingCopies: string | undefined;
  /** Cells for which a reason is already listed why they are closed. */
  const explained = new Set<number>();
  const unserved = new Set<number>();
  if (recoveries.status === 'rejected' || halts.status === 'rejected' || obstacles.status === 'rejected') {
    waiting.push(POSTGRES_AWAY);
  } else {
    for (const { cell, reason } of halts.value) {
      explained.add(cell);
      unserved.add(cell);
      ofCells.push(`Cell ${cell} is halted: ${reason}`);
    }
    for (const cell of obstacles.value.lacking) {
      explained.add(cell);
      unserved.add(cell);
      ofCells.push(
        `Redis has an older copy of cell ${cell}, which lacks answered entries. The cell is being rebuilt`,
      );
    }
    for (const { cell, step, players, requests, startedAt } of recoveries.value) {
      explained.add(cell);
      unserved.add(cell);
      ofCells.push(
        `Cell ${cell} is being rebuilt from the ledger since ${startedAt.toISOString()}: ` +
          `${step} (${players} players, ${requests} requests so far)`,
      );
    }
    missingCopies = obstacles.value.missingCopies;
    if (obstacles.value.hold !== undefined) missing.push(obstacles.value.hold);
  }
  if (states.status === 'rejected') throw states.reason;
  const { closed, away } = states.value;
  for (const cell of [...closed, ...away]) unserved.add(cell);
  if (away.length > 0) {
    const isAll = away.length === catalog.epochs.size;
    ofCells.push(isAll ? 'Redis does not respond' : `Redis does not respond for cells ${away.join(', ')}`);
  }
  const others = closed.filter((cell) => !explained.has(cell));
  if (others.length > 0) {
    ofCells.push(
      `Redis does not match the ledger in cells ${others.join(', ')}. A worker must prepare these cells first`,
    );
    if (missingCopies !== undefined) ofCells.push(missingCopies);
  }
  for (const { node, problem } of skewed.status === 'fulfilled' ? skewed.value : []) {
    for (const cell of catalog.epochs.keys()) if (nodes.of(cell) === node) unserved.add(cell);
    ofCells.push(`${problem}. Nothing is dealt or prepared until the clocks agree`);
  }
  missing.push(...volatileStores(volatile));
  return unserved.size < catalog.epochs.size
    ? { missing, unserved: ofCells, waiting }
    : { missing: [...ofCells, ...missing], unserved: [], waiting };
}

function volatileStores({ redis, postgres }: Volatile): string[] {
  return [
    ...(redis.length > 0
      ? [`Redis may lose acknowledged writes because of its settings: ${redis.join('; ')}`]
      : []),
    ...(postgres.length > 0 ? [new VolatilePostgresError(postgres).message] : []),
  ];
}

export interface HealthAnswer {
  readonly status: number;
  readonly body: string;
}

/** Returns the answer to GET /readyz: 503 takes the process out of a load balancer. */
export function readyAnswer({ missing }: Readiness): HealthAnswer {
  const isReady = missing.length === 0;
  const body = JSON.stringify({ status: isReady ? 'ready' : 'not ready', missing });
  return { status: isReady ? 200 : 503, body };
}

/** Returns the answer to GET /statusz: 503 if there is any problem. */
export function statusAnswer({ missing, unserved, waiting }: Readiness): HealthAnswer {
  const isWell = missing.length + unserved.length + waiting.length === 0;
  const status = isWell ? 'well' : missing.length === 0 ? 'degraded' : 'not ready';
  return { status: isWell ? 200 : 503, body: JSON.stringify({ status, missing, unserved, waiting }) };
}

const POSTGRES_AWAY =
  'Postgres does not respond. Loaded outcomes are dealt; new blocks, the ledger and reads of it wait';

const READY_WITHIN_MS = 2000;

const SHARED_FOR_MS = 250;

/**
 * Returns a function that shares one check among all callers during the check and for 250 ms after it.
 * @param known state that this process has without waiting; after a change of this state, an earlier result
 * is no longer shared
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
