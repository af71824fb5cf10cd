/** Looks at the stores for what keeps this process from dealing, for the list of problems (problems.ts). */

import { withTimeout } from '../platform/runtime/withTimeout.js';
import { type PostgresDurability, VolatilePostgresError } from '../postgres/postgresDurability.js';
import type { Catalog } from './catalog/catalog.js';
import type { EngineStore } from './engine.store.js';
import type { Finding, ProblemName } from './problems.js';
import type { MissingCopy } from './recovery/obstacles.store.js';
import { type Clocks, skewedNodes } from './redis/clockSkew.js';
import type { RedisNode } from './redis/node.js';
import type { RedisNodes } from './redis/nodes.js';
import type { ProcessRegistry } from './upgrade/processRegistry.js';

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
  readonly program: { readonly problem: string | undefined; readonly verified: number };
}

/**
 * Looks at the stores for problems of single cells and of the stores themselves. The look ends within the
 * timeouts of its parts, whatever the stores do.
 */
export async function storeFindings(
  { nodes, store, catalog, clocks, registry }: Omit<ReadinessParts, 'program'>,
  { unownedCells, dryGames }: { readonly unownedCells: UnownedCells; readonly dryGames: DryGames },
): Promise<Finding[]> {
  // This build can't read what newer versions write.
  if (registry.problem !== undefined) return [];
  const ofCells: Finding[] = [];
  const others: Finding[] = [];
  const refusals = nodesThatRefuse(nodes);
  const recent = withTimeout(store.recoveries.recent(), READY_WITHIN_MS);
  const rebuilt = recent.then(
    (found) => new Set(found.filter(({ isFinished }) => isFinished).map(({ cell }) => cell)),
    () => new Set<number>(),
  );
  const [recoveries, dry, halts, obstacles, unowned, states, skewed] = await Promise.allSettled([
    recent,
    rebuilt.then((cells) => withTimeout(dryGames.look({ nodes, catalog }, cells), READY_WITHIN_MS)),
    withTimeout(store.cells.halted(), READY_WITHIN_MS),
    withTimeout(store.answered.obstacles(), READY_WITHIN_MS),
    withTimeout(store.cells.unowned(), READY_WITHIN_MS),
    nodes.closed(catalog.epochs),
    withTimeout(skewedNodes(nodes.all, clocks), READY_WITHIN_MS),
  ]);
  const refusing = await refusals;
  let missingCopies: readonly MissingCopy[] = [];
  /** Cells for which a reason is already listed why they are closed. */
  const explained = new Set<number>();
  if (
    recoveries.status === 'rejected' ||
    halts.status === 'rejected' ||
    obstacles.status === 'rejected' ||
    unowned.status === 'rejected'
  ) {
    others.push({ name: 'postgres-away', message: 'Postgres does not respond' });
  } else {
    const explain = (name: ProblemName, cell: number, message: string, since?: Date): void => {
      explained.add(cell);
      ofCells.push({ name, subject: cell, cells: [cell], message, ...(since && { since }) });
    };
    for (const { cell, reason } of halts.value)
      explain('cell-halted', cell, `Cell ${cell} is halted: ${reason}`);
    for (const cell of obstacles.value.lacking)
      explain(
        'cell-lacks-entries',
        cell,
        `Redis has an older copy of cell ${cell}, which lacks answered entries. The cell is being rebuilt`,
      );
    for (const { cell, step, players, requests, startedAt, isFinished } of recoveries.value)
      if (!isFinished)
        explain(
          'cell-rebuilding',
          cell,
          `Cell ${cell} is being rebuilt from the ledger since ${startedAt.toISOString()}: ` +
            `${step} (${players} players, ${requests} requests so far)`,
          startedAt,
        );
    missingCopies = obstacles.value.missingCopies;
    const { hold, alsoRestored } = obstacles.value;
    for (const [subject, message] of [hold, alsoRestored].entries())
      if (message !== undefined) others.push({ name: 'stores-restored', subject, message });
    const isOnHold = hold !== undefined || missingCopies.length > 0;
    // A cell for which another reason is listed, or that must wait for an operator, has no owner meanwhile.
    const lasting = unownedCells.lasting(unowned.value.cells, Date.now());
    const [free] = isOnHold ? [] : lasting.filter(({ cell }) => !explained.has(cell));
    if (free !== undefined) {
      const cells = lasting.filter(({ cell }) => !explained.has(cell)).map(({ cell }) => cell);
      const { workers } = unowned.value;
      const who = workers === 0 ? 'No worker is alive, so none' : `None of ${workers} workers`;
      others.push({
        name: 'cells-not-served',
        message: `${who} owns cells ${cells.join(', ')} since ${free.since.toISOString()}`,
        since: free.since,
      });
    }
  }
  if (states.status === 'rejected') throw states.reason;
  const cellsOf = (node: RedisNode): number[] =>
    [...catalog.epochs.keys()].filter((cell) => nodes.of(cell) === node);
  for (const [node, refusal] of refusing)
    ofCells.push({
      name: 'redis-refuses-writes',
      subject: node.address,
      message: `Redis at ${node.address} accepts no writes: ${refusal}`,
      cells: cellsOf(node),
    });
  const { closed } = states.value;
  // A node that is left because it is a replica is not ready either.
  const away = states.value.away.filter((cell) => !refusing.has(nodes.of(cell)));
  if (away.length > 0) {
    const isAll = away.length === catalog.epochs.size;
    const message = isAll ? 'Redis does not respond' : `Redis does not respond for cells ${away.join(', ')}`;
    ofCells.push({ name: 'redis-away', message, cells: away });
  }
  const unprepared = closed.filter((cell) => !explained.has(cell));
  if (unprepared.length > 0) {
    ofCells.push({
      name: 'cell-unprepared',
      message: `Redis does not match the ledger in cells ${unprepared.join(', ')}. A worker must prepare these cells first`,
      cells: unprepared,
    });
    for (const [i, { message, isUnreadable }] of missingCopies.entries())
      ofCells.push({
        name: isUnreadable ? 'copy-unreadable' : 'copy-missing',
        subject: i,
        message,
        cells: unprepared,
        effect: 'SOME_REFUSED',
      });
  }
  if (dry.status === 'fulfilled' && dry.value.length > 0)
    others.push({ name: 'game-dry', message: dryText(dry.value) });
  for (const { node, problem } of skewed.status === 'fulfilled' ? skewed.value : [])
    ofCells.push({
      name: 'clocks-differ',
      subject: node.address,
      message: `${problem}. Nothing is dealt or prepared until the clocks agree`,
      cells: cellsOf(node),
    });
  return [...ofCells, ...others];
}

/** Maximum number of games whose queue a look reads. Later looks read those of other games. */
const GAMES_A_LOOK = 500;
/** Time in which a new game gets its first outcomes, in ms. */
const FILLED_WITHIN_MS = 60_000;

/** Finds the active games without an outcome to deal. Sold-out raffles are not among them. */
export class DryGames {
  readonly #dry = new Set<number>();
  /** Times at which games were first seen without a queue, on the scale of performance.now(). */
  readonly #unfilled = new Map<number, number>();
  #next = 0;

  /** @param rebuilt cells whose queues were emptied a moment ago */
  async look(
    { nodes, catalog }: Pick<ReadinessParts, 'nodes' | 'catalog'>,
    rebuilt: ReadonlySet<number>,
  ): Promise<number[]> {
    const all = catalog.knownGames;
    if (this.#next >= all.length) this.#next = 0;
    const first = rebuilt.size === 0 ? [] : all.filter(({ cell }) => rebuilt.has(cell));
    const turn = all.slice(this.#next, this.#next + GAMES_A_LOOK);
    this.#next += GAMES_A_LOOK;
    const ofCells = new Map<number, number[]>();
    for (const { gameId, partnerId, cell, gameType, status } of new Set([
      ...first.slice(0, GAMES_A_LOOK),
      ...turn,
    ])) {
      this.#dry.delete(gameId);
      if (status !== 'ACTIVE' || gameType === 'raffle' || !catalog.partner(partnerId)?.isActive) continue;
      const gameIds = ofCells.get(cell);
      if (gameIds === undefined) ofCells.set(cell, [gameId]);
      else gameIds.push(gameId);
    }
    await Promise.allSettled(
      [...ofCells].map(async ([cell, gameIds]) => {
        const records = await nodes.cell(cell).findGames(gameIds);
        for (const [i, gameId] of gameIds.entries()) {
          const { queueEnd, nextIndex } = records[i] ?? { queueEnd: 0, nextIndex: 0 };
          if (queueEnd > nextIndex) this.#unfilled.delete(gameId);
          else if (queueEnd > 0 || rebuilt.has(cell) || this.#isLate(gameId)) this.#dry.add(gameId);
        }
      }),
    );
    return [...this.#dry].sort((a, b) => a - b);
  }

  #isLate(gameId: number): boolean {
    const now = performance.now();
    const since = this.#unfilled.get(gameId) ?? now;
    this.#unfilled.set(gameId, since);
    return now - since >= FILLED_WITHIN_MS;
  }
}

/** Returns the nodes that accept no writes, with the reason of each. */
async function nodesThatRefuse(nodes: RedisNodes): Promise<ReadonlyMap<RedisNode, string>> {
  const refusals = await Promise.all(
    nodes.all.map(async (node) => {
      const refusal = await withTimeout(node.refusal(), READY_WITHIN_MS).catch(() => undefined);
      return [node, refusal] as const;
    }),
  );
  return new Map(refusals.flatMap(([node, refusal]) => (refusal === undefined ? [] : [[node, refusal]])));
}

/** Time for which a cell may be without an owner while it passes from one worker to another, in ms. */
const PASSED_ON_WITHIN_MS = 5000;

/** Remembers since when cells have had no owner. */
export class UnownedCells {
  #since = new Map<number, number>();

  /**
   * Returns the cells that have had no owner for a while, the longest first.
   * @param unowned cells without an owner; `lapsedAt` is null if the last owner released the cell
   */
  lasting(
    unowned: readonly { readonly cell: number; readonly lapsedAt: Date | null }[],
    nowMs: number,
  ): { readonly cell: number; readonly since: Date }[] {
    this.#since = new Map(
      unowned.map(({ cell, lapsedAt }) => [cell, lapsedAt?.getTime() ?? this.#since.get(cell) ?? nowMs]),
    );
    return [...this.#since]
      .filter(([, sinceMs]) => nowMs - sinceMs >= PASSED_ON_WITHIN_MS)
      .map(([cell, sinceMs]) => ({ cell, since: new Date(sinceMs) }))
      .sort((a, b) => a.since.getTime() - b.since.getTime());
  }
}

/** Returns the problems that are known without looking at the stores. */
export function knownFindings(
  { registry, program }: Pick<ReadinessParts, 'registry' | 'program'>,
  { redis, postgres }: Volatile,
): Finding[] {
  const ofRedis = `Redis may lose acknowledged writes because of its settings: ${redis.join('; ')}`;
  const ofPostgres = new VolatilePostgresError(postgres).message;
  return [
    ...(registry.problem !== undefined
      ? [{ name: 'format-unreadable', message: registry.problem } as const]
      : []),
    ...(program.problem !== undefined
      ? [{ name: 'program-changed', message: program.problem } as const]
      : program.verified === 0
        ? [{ name: 'program-changed', message: PROGRAM_DIFFERS, effect: 'ATTENTION' } as const]
        : []),
    ...(redis.length > 0 ? [{ name: 'redis-volatile', message: ofRedis } as const] : []),
    ...(postgres.length > 0 ? [{ name: 'postgres-volatile', message: ofPostgres } as const] : []),
  ];
}

const NAMED_MAX = 20;
const dryText = (games: readonly number[]): string => {
  const more = games.length > NAMED_MAX ? ` and ${games.length - NAMED_MAX} others` : '';
  return `Games without outcomes to deal: ${games.slice(0, NAMED_MAX).join(', ')}${more}`;
};

const PROGRAM_DIFFERS = 'Files of the program differ from its build';

const READY_WITHIN_MS = 2000;
