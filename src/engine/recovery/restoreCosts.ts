/** What each way out of a restore costs, in words for the operator who chooses. */
import { withTimeout } from '../../platform/runtime/withTimeout.js';
import type { Sql } from '../../postgres/connection.js';
import { cellLeases } from '../cells/cells.store.js';
import type { RedisNodes } from '../redis/nodes.js';
import type { PositionDifference } from './positionFindings.store.js';
import { type RestorePlan, raffleIds, restorePlan } from './restorePlan.store.js';

/** Maximum number of entries that are counted by kind in a cell. */
const COUNTED_MAX = 200_000;
const KINDS = ['spins', 'tickets', 'steps of rounds', 'adjustments', 'other entries'] as const;
type WaitingKind = (typeof KINDS)[number];

/** Entries that Redis has and Postgres lacks, by kind. */
export interface Waiting {
  readonly counts: Readonly<Record<WaitingKind, number>>;
  /** True if there are more entries than were counted. */
  readonly isMore: boolean;
}

/**
 * Counts the entries that wait in Redis and are not in Postgres.
 * @returns undefined if Redis does not respond
 */
async function waitingEntries(
  sql: Sql,
  nodes: RedisNodes | undefined,
  withinMs: number,
): Promise<Waiting | undefined> {
  if (nodes === undefined) return undefined;
  const raffles = await raffleIds(sql);
  const counts = Object.fromEntries(KINDS.map((kind) => [kind, 0])) as Record<WaitingKind, number>;
  let isMore = false;
  const ofCells = (await cellLeases(sql)).map(async ({ cell, cursorId }) => {
    let counted = 0;
    for await (const { id, kind, gameId } of nodes.cell(cell).outboxAfter(cursorId)) {
      if (id <= cursorId) continue;
      if (counted++ === COUNTED_MAX) {
        isMore = true;
        return;
      }
      if (kind === 'spin' || kind === 'forcedSpin') counts[raffles.has(gameId) ? 'tickets' : 'spins']++;
      else if (kind.startsWith('round')) counts['steps of rounds']++;
      else counts[kind === 'adjustment' ? 'adjustments' : 'other entries']++;
    }
  });
  return withTimeout(Promise.all(ofCells), withinMs).then(
    () => ({ counts, isMore }),
    () => undefined,
  );
}

/** Returns the number of each kind: "462 spins, 20 tickets". */
export function waitingText(waiting: Waiting | undefined): string {
  if (waiting === undefined) return 'an unknown number of entries, because Redis does not respond,';
  const some = KINDS.filter((kind) => kind === 'spins' || waiting.counts[kind] > 0);
  return `${waiting.isMore ? 'more than ' : ''}${some.map((kind) => `${waiting.counts[kind]} ${kind}`).join(', ')}`;
}

export interface RestoreCosts {
  readonly waiting: Waiting | undefined;
  readonly plan: RestorePlan;
}

export const restoreCosts = async (
  sql: Sql,
  nodes: RedisNodes | undefined,
  withinMs: number,
): Promise<RestoreCosts> => ({
  waiting: await waitingEntries(sql, nodes, withinMs),
  plan: await restorePlan(sql),
});

const restoredCostText = ({ waiting, plan }: RestoreCosts): string =>
  `discards ${waitingText(waiting)} that wait in Redis, voids ${plan.outcomes} undealt outcomes and ` +
  `${plan.rounds} open rounds, and suspends ${plan.raffleCount} raffles`;

const KEEP_COMMAND = 'spindle recover --without POSITION_FILE';
export const RESTORED_COMMAND = 'spindle recover --restored';

/** The choices after a restore with their costs, the one that keeps everything first. */
export function choicesText({ text, mayBeNewest }: PositionDifference, costs: RestoreCosts): string {
  const restored = `run \`${RESTORED_COMMAND}\`: it ${restoredCostText(costs)}`;
  if (!mayBeNewest) return `${text}. If no newer state of Postgres can be restored, ${restored}`;
  return (
    `${text}. If Postgres has its newest state, run \`${KEEP_COMMAND}\`: it keeps everything, also ` +
    `${waitingText(costs.waiting)} that wait in Redis. Otherwise ${restored}`
  );
}
