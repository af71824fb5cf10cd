/**
 * Initializes the pass over the ledger at the boundary, where the oldest kept day begins, and checks the
 * records of the dropped days before it.
 */
import { AUDITED_KINDS } from '../../domain/auditedKinds.js';
import type { EntryTotal } from '../../domain/ledgerDay.js';
import type { CopyRow } from '../../postgres/copy.js';
import { intentKey, type Snapshot } from './auditReads.store.js';
import { BOUNDARY_PLAYER, type BoundaryFacts, KEPT } from './boundaryReads.store.js';
import { beginPots, type PotSnapshot } from './communalBoundary.js';
import type { CommunalReplay } from './communalReplay.js';
import type { dayTables } from './days.js';
import type { RefundReplay } from './refundReplay.js';
import type { Findings, Place } from './report.js';
import { auditedTimeMs, type PlayerTable } from './tables.js';

export type BoundarySnapshot = Pick<Snapshot, 'facts' | 'boundaryPlayers' | 'keptEntries'> & PotSnapshot;

interface Into {
  readonly players: PlayerTable;
  readonly days: ReturnType<typeof dayTables>;
  readonly refunds: RefundReplay;
  readonly communal: CommunalReplay;
  readonly findings: Findings;
  /** Ids of adjustment intents that have a ledger entry. */
  readonly adjusted: Set<string>;
}

/**
 * Compares dropped days with their daily totals, and loads players, tickets and adjustments as of the
 * boundary of dropped days.
 */
export async function beginAtBoundary(snapshot: BoundarySnapshot, into: Into): Promise<void> {
  const { facts, boundaryPlayers, keptEntries } = snapshot;
  for (const { day, totals } of facts.boundary.days) {
    boundaryTotals(into.days, totals);
    for (const table of Object.values(into.days)) table.close(day);
  }
  await boundaryPlayers(
    (row) => boundaryPlayer(into.players, row),
    async () => {},
  );
  await keptEntries(
    (row) => kept(into, row),
    async () => {},
  );
  await beginPots(snapshot, into.communal, into.findings);
}

/**
 * Sets the next index of each game and the newest entry of each cell to their values at the boundary of
 * dropped days.
 */
export function passBoundary(
  boundary: BoundaryFacts,
  games: ReadonlyMap<
    number,
    { next: number; voidAt: number; readonly voids: readonly { fromIndex: number }[] }
  >,
  newest: Map<number, { high: number; low: number }>,
): void {
  for (const [gameId, game] of games) {
    game.next = boundary.games.get(gameId) ?? 0;
    while (game.voidAt < game.voids.length && game.voids[game.voidAt]!.fromIndex < game.next) game.voidAt++;
  }
  for (const [cell, id] of boundary.cells)
    newest.set(cell, { high: Number(id >> 32n), low: Number(id & 0xffffffffn) });
}

/** Processes a ticket or an adjustment of a dropped day. */
function kept({ refunds, adjusted }: Into, row: CopyRow): void {
  const [partnerId, playerId] = [row.int(KEPT.partnerId), row.text(KEPT.playerId)];
  if (row.int(KEPT.kind) === AUDITED_KINDS.spin.code) {
    const ticket = { gameId: row.int(KEPT.gameId), partnerId, price: row.safe(KEPT.wagerMicros) };
    refunds.keptTicket(ticket, row.big(KEPT.id), playerId);
    return;
  }
  const requestId = row.isNull(KEPT.requestId) ? '' : row.text(KEPT.requestId);
  adjusted.add(intentKey(partnerId, requestId));
  const at = (): Place => ({ entry: row.big(KEPT.id).toString(), partner: partnerId, player: playerId });
  refunds.adjustment(requestId, partnerId, playerId, row.safe(KEPT.creditMicros), at);
}

/** Loads the state of a player as of the newest dropped entry. */
function boundaryPlayer(players: PlayerTable, row: CopyRow): void {
  const slot = players.slot(row.int(BOUNDARY_PLAYER.partnerId), row.text(BOUNDARY_PLAYER.playerId));
  players.high[slot] = row.word(BOUNDARY_PLAYER.entryId, 0);
  players.low[slot] = row.word(BOUNDARY_PLAYER.entryId, 4);
  players.balance[slot] = row.safe(BOUNDARY_PLAYER.balance);
  players.entries[slot] = row.int(BOUNDARY_PLAYER.entryNumber);
  players.code[slot] = row.int(BOUNDARY_PLAYER.outcomeCode);
  players.firstMs[slot] = auditedTimeMs(
    row.word(BOUNDARY_PLAYER.firstId, 0),
    row.word(BOUNDARY_PLAYER.firstId, 4),
  );
}

/**
 * For each kind of entry, its daily table, and the number that one entry adds to the count in this table. The
 * kind codes are constants of the audit (ledgerPass.ts), independent of the engine.
 */
const TABLES = {
  1: ['games', 1],
  2: ['openings', 1],
  3: ['adjustments', 1],
  6: ['games', 1],
  7: ['games', 0],
  8: ['games', -1],
  9: ['sandbox', 1],
} as const satisfies Record<number, readonly [keyof ReturnType<typeof dayTables>, number]>;

/** Adds the totals from the manifest of a dropped day to the sums that are compared with the daily tables. */
function boundaryTotals(days: ReturnType<typeof dayTables>, totals: readonly EntryTotal[]): void {
  for (const { partnerId, gameId, kind, entries, wageredMicros, creditedMicros } of totals) {
    const place = TABLES[kind as keyof typeof TABLES];
    if (place === undefined) continue;
    const [table, count] = place;
    const isOfGame = table === 'games' || table === 'sandbox';
    days[table].addTotal(
      isOfGame ? gameId : partnerId,
      partnerId,
      count * entries,
      BigInt(wageredMicros),
      BigInt(creditedMicros),
    );
  }
}
