/**
 * Writes the part of a flush that concerns communal progressives, in the flush's transaction: counters,
 * budgets, events, shares and notifications. A counter or budget that does not continue from its committed
 * value halts the cell.
 */
import { writeAuditEntry } from '../../postgres/auditLog.js';
import type { Transaction } from '../../postgres/connection.js';
import { rowsOf, safe } from '../../postgres/statements.js';

/** Change of the pot of a communal progressive by one script call. */
export interface PotChange {
  readonly noteId: bigint;
  readonly gameId: number;
  readonly cause: 'spins' | 'rules' | 'funding';
  /** Version of the rules, or number of the intent of a funding, that caused the change of the pot. */
  readonly reference: number;
  readonly progressBefore: number;
  readonly progress: number;
  readonly budgetBeforeMicros: number;
  readonly budgetMicros: number;
}

export interface CommittedEvent {
  readonly eventId: bigint;
  readonly gameId: number;
  readonly version: number;
  readonly progress: number;
  readonly tierLevel: number;
  readonly tierName: string;
  readonly amountMicros: number;
  readonly paidMicros: number;
  readonly winners: number;
  readonly status: 'PAID' | 'SKIPPED_BUDGET';
}

export interface CommittedShare {
  readonly entryId: bigint;
  readonly eventId: bigint;
  readonly gameId: number;
  readonly partnerId: number;
  readonly playerId: string;
  readonly amountMicros: number;
  readonly isTrigger: boolean;
  /** Entry id of the spin whose response notified the player. Null if the player is notified later. */
  readonly notifiedBy: bigint | null;
}

/** Data of communal progressives that a flush writes. All lists are in the order of the outbox. */
export interface CommunalFlush {
  readonly changes: readonly PotChange[];
  readonly events: readonly CommittedEvent[];
  readonly shares: readonly CommittedShare[];
  readonly notified: readonly { readonly shareId: bigint; readonly spinId: bigint }[];
  /** Shares that the events paid, summed by game and day. */
  readonly days: readonly {
    gameId: number;
    partnerId: number;
    day: string;
    shares: number;
    paidMicros: bigint;
  }[];
}

/**
 * Thrown when the first change of a pot in the outbox does not begin at the pot's committed state. Nothing
 * was written.
 */
export class PotError extends Error {}

/** @throws PotError; a unique violation if an event or share is committed already */
export async function bookCommunal(tx: Transaction, booking: CommunalFlush): Promise<void> {
  const { changes, events, shares, notified, days } = booking;
  for (const gameId of new Set(changes.map((change) => change.gameId))) {
    await bookPot(
      tx,
      gameId,
      changes.filter((change) => change.gameId === gameId),
      events,
    );
  }
  if (events.length > 0) {
    await tx`
      INSERT INTO communal_events (event_id, game_id, version, progress, tier_level, tier_name, amount_micros, paid_micros,
        winners, status)
      SELECT * FROM ${rowsOf(events, { eventId: 'bigint', gameId: 'int', version: 'int', progress: 'bigint', tierLevel: 'int', tierName: 'text', amountMicros: 'bigint', paidMicros: 'bigint', winners: 'int', status: 'text' })}`;
  }
  if (shares.length > 0) {
    await tx`
      INSERT INTO communal_shares (entry_id, event_id, game_id, partner_id, player_id, amount_micros, is_trigger,
        told_by)
      SELECT * FROM ${rowsOf(shares, { entryId: 'bigint', eventId: 'bigint', gameId: 'int', partnerId: 'int', playerId: 'text', amountMicros: 'bigint', isTrigger: 'boolean', notifiedBy: 'bigint' })}`;
  }
  if (notified.length > 0) await bookNotified(tx, notified);
  if (days.length > 0) {
    await tx`
      INSERT INTO communal_days AS t (game_id, day, partner_id, shares, paid_micros)
      SELECT * FROM ${rowsOf(days, { gameId: 'int', day: 'date', partnerId: 'int', shares: 'bigint', paidMicros: 'bigint' })}
      ON CONFLICT (game_id, day) DO UPDATE SET shares = t.shares + excluded.shares,
        paid_micros = t.paid_micros + excluded.paid_micros`;
  }
}

/**
 * Applies the changes of a pot, each of which must begin in the state in which the change before it ended.
 */
async function bookPot(
  tx: Transaction,
  gameId: number,
  changes: readonly PotChange[],
  events: readonly CommittedEvent[],
): Promise<void> {
  // Usually all changes come from spins. For such changes a single statement is enough.
  if (isOfSpinsOnly(gameId, changes, events) && (await bookSpins(tx, gameId, changes))) return;
  await bookChanges(tx, gameId, changes, events);
}

/**
 * Returns whether all changes come from spins and are consistent with each other and with the payouts of the
 * events.
 */
function isOfSpinsOnly(
  gameId: number,
  changes: readonly PotChange[],
  events: readonly CommittedEvent[],
): boolean {
  const paid = events.reduce((sum, event) => sum + (event.gameId === gameId ? event.paidMicros : 0), 0);
  const drop = changes[0]!.budgetBeforeMicros - changes.at(-1)!.budgetMicros;
  return (
    paid === drop &&
    changes.every((change, i) => {
      const before = changes[i - 1];
      const goesOn =
        before === undefined ||
        (before.progress === change.progressBefore && before.budgetMicros === change.budgetBeforeMicros);
      return change.cause === 'spins' && goesOn;
    })
  );
}

/**
 * Applies changes from spins only.
 * @returns false if the committed state is not where the changes begin; nothing is written in that case
 */
async function bookSpins(tx: Transaction, gameId: number, changes: readonly PotChange[]): Promise<boolean> {
  const first = changes[0]!;
  const last = changes.at(-1)!;
  const rows = await tx`
    UPDATE communal_pots SET progress = ${last.progress}, budget_micros = ${last.budgetMicros}, noted_to = ${last.noteId}
    WHERE game_id = ${gameId} AND progress = ${first.progressBefore} AND budget_micros = ${first.budgetBeforeMicros}
    RETURNING 1`;
  return rows.length === 1;
}

/**
 * Applies changes of any cause.
 * @throws PotError if a change does not begin at the committed state
 */
async function bookChanges(
  tx: Transaction,
  gameId: number,
  changes: readonly PotChange[],
  events: readonly CommittedEvent[],
): Promise<void> {
  const [row] = await tx<{ version: number; progress: bigint; budgetMicros: bigint }[]>`
    SELECT version, progress, budget_micros FROM communal_pots WHERE game_id = ${gameId} FOR UPDATE`;
  let at = { progress: safe(row?.progress ?? 0n), budgetMicros: safe(row?.budgetMicros ?? 0n) };
  let version = row?.version ?? 0;
  let paid = events.reduce(
    (sum, event) => (event.gameId === gameId ? sum + BigInt(event.paidMicros) : sum),
    0n,
  );
  for (const change of changes) {
    const isNext = change.progressBefore === at.progress && change.budgetBeforeMicros === at.budgetMicros;
    if (!isNext) {
      throw new PotError(
        `the next change of the pot of game ${gameId} starts at ${change.progressBefore} spins and ${change.budgetBeforeMicros} micro-USD, ` +
          `but Postgres has ${at.progress} spins and ${at.budgetMicros} micro-USD`,
      );
    }
    at = change;
    if (change.cause === 'spins') paid -= BigInt(change.budgetBeforeMicros - change.budgetMicros);
    else if (change.cause === 'rules') {
      version = change.reference;
      await tx`
        UPDATE communal_rules SET in_force_from = ${change.noteId}
        WHERE game_id = ${gameId} AND version = ${change.reference} AND in_force_from IS NULL`;
    } else await bookFunding(tx, change);
  }
  if (paid !== 0n)
    throw new PotError(
      `the events of game ${gameId} paid ${paid} micro-USD more than they took from its budget`,
    );
  const newest = changes.at(-1)!;
  await tx`
    INSERT INTO communal_pots AS t (game_id, version, progress, budget_micros, recency_from, noted_to)
    VALUES (${gameId}, ${version}, ${at.progress}, ${at.budgetMicros},
      (SELECT min(in_force_from) FROM communal_rules WHERE game_id = ${gameId} AND (rules->>'enabled')::boolean),
      ${newest.noteId})
    ON CONFLICT (game_id) DO UPDATE SET version = excluded.version, progress = excluded.progress,
      budget_micros = excluded.budget_micros, recency_from = coalesce(t.recency_from, excluded.recency_from),
      noted_to = excluded.noted_to`;
}

async function bookFunding(tx: Transaction, change: PotChange): Promise<void> {
  const rows = await tx`
    UPDATE communal_fundings SET note_id = ${change.noteId}, budget_micros = ${change.budgetMicros}
    WHERE game_id = ${change.gameId} AND funding_id = ${change.reference} AND note_id IS NULL
      AND amount_micros = ${change.budgetMicros - change.budgetBeforeMicros} RETURNING 1`;
  if (rows.length === 1 || (await bookWithdrawn(tx, change))) return;
  throw new PotError(
    `the funding ${change.reference} of game ${change.gameId} is committed with another amount`,
  );
}

/**
 * Records a funding that took effect although its intent had been withdrawn. Redis has the funding in the
 * budget, so the ledger must have it, too.
 * @returns false if the number is recorded already; nothing is written in that case
 */
async function bookWithdrawn(tx: Transaction, change: PotChange): Promise<boolean> {
  const { gameId, reference, noteId, budgetMicros, budgetBeforeMicros } = change;
  const known = await tx`
    SELECT 1 FROM communal_fundings WHERE game_id = ${gameId} AND funding_id = ${reference} LIMIT 1`;
  if (known.length > 0) return false;
  const amountMicros = budgetMicros - budgetBeforeMicros;
  const requestId = `late:${reference}`;
  const reason = 'Took effect after it had been refused';
  await tx`
    INSERT INTO communal_fundings (game_id, request_id, funding_id, amount_micros, reason, note_id, budget_micros)
    OVERRIDING SYSTEM VALUE
    VALUES (${gameId}, ${requestId}, ${reference}, ${amountMicros}, ${reason}, ${noteId}, ${budgetMicros})`;
  await writeAuditEntry(tx, {
    actor: 'worker',
    action: 'communal.fund.late',
    subject: `game:${gameId}`,
    after: { requestId, amountMicros, reason },
  });
  return true;
}

async function bookNotified(
  tx: Transaction,
  notified: readonly { readonly shareId: bigint; readonly spinId: bigint }[],
): Promise<void> {
  const rows = await tx`
    UPDATE communal_shares SET told_by = u.spin_id
    FROM ${rowsOf(notified, { shareId: 'bigint', spinId: 'bigint' }, 'u')}
    WHERE entry_id = u.share_id AND told_by IS NULL RETURNING 1`;
  if (rows.length !== notified.length)
    throw new PotError('a share was notified twice, or a notified share is not committed');
}
