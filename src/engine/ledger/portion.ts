/**
 * Prepares the next portion of a cell: as many of the outbox entries that were read as fit into one
 * transaction. Portions of several cells share a transaction while they fit.
 */
import { adjustmentOf, type CommittedAdjustment, type ReasonedAdjustment } from '../../domain/adjustment.js';
import type { Totals } from '../../domain/layouts.js';
import { ENTRY_KINDS } from '../../domain/ledgerEntry.js';
import type { NewEvent } from '../../domain/webhook.js';
import type { CellLease } from '../cells/cells.store.js';
import type { Consumption } from '../processEvents.js';
import type { Ticket } from '../raffles/raffles.store.js';
import { readOutbox } from '../redis/cellRecords.js';
import type { CellStore } from '../redis/cellStore.js';
import type { OutboxBatch, OutboxPosition } from '../redis/outboxReader.js';
import { type CellFlush, type FlushTotals, ProgressError } from './ledger.store.js';
import type { LargeWin, Transcoder } from './transcoder.js';

/** Maximum number of entries in one transaction, which must finish well within its deadline. */
const LEDGER_ENTRIES_MAX = 20_000;
/**
 * Maximum number of large wins and adjustments in one transaction. The event of each is written once for each
 * subscribed webhook, and a partner may have fifty.
 */
const EVENTS_MAX = 64;

export interface FlushEvents {
  ofWins(wins: readonly LargeWin[]): Promise<NewEvent[]>;
  ofAdjustment(adjustment: ReasonedAdjustment): NewEvent;
}

export interface OwnedCell {
  readonly lease: CellLease;
  /** Token that the cell must have in Redis. Undefined means the same token that front ends deal with. */
  readonly token: string | undefined;
  readonly store: CellStore;
  readonly records: Transcoder;
  /** Id of the cell's newest committed entry. */
  cursor: bigint;
  /**
   * Totals of the committed entries, if these entries are still to be trimmed or their commit is still to be
   * noted in Redis. `true` means that the totals must be read first.
   */
  untrimmed: Totals | true | undefined;
  notBefore: number;
  /** Whether the cell's last flush failed because Postgres refused its data. */
  hasDataFault: boolean;
  /**
   * Whether a flush of this cell together with other cells failed. The cell is flushed alone until such a
   * flush has succeeded.
   */
  isAlone: boolean;
}

export const newlyOwned = (
  lease: CellLease,
  token: string | undefined,
  store: CellStore,
  records: Transcoder,
): OwnedCell => ({
  lease,
  token,
  store,
  records,
  cursor: lease.cursorId,
  untrimmed: undefined,
  notBefore: 0,
  hasDataFault: false,
  isAlone: false,
});

export const positionOf = ({ lease, cursor, token }: OwnedCell): OutboxPosition => ({
  cell: lease.cell,
  epoch: lease.token,
  cursor,
  token,
});

/**
 * Thrown when the outbox that was read does not belong to the epoch of the lease, because the data in Redis
 * was replaced in the meantime. Nothing was written.
 */
export class EpochChangedError extends Error {
  constructor(cell: number) {
    super(`Redis has another epoch of cell ${cell} than its lease, so its outbox is not flushed`);
  }
}

/**
 * Thrown for an outbox entry that can't be read. The same bytes would be read at each attempt, so its cell is
 * halted.
 */
export class UnreadableEntryError extends Error {
  constructor(afterId: bigint, cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause);
    super(`an entry of the outbox behind entry ${afterId} can't be read: ${why}`, { cause });
  }
}

export interface Portion {
  readonly owned: OwnedCell;
  readonly flush: CellFlush;
  readonly entries: number;
  /** Number of large wins and adjustments. */
  readonly events: number;
  readonly days: ReadonlySet<string>;
  readonly oldestMs: number;
  /**
   * Numbers of entries and bytes that had been added to the outbox since the cell was created, counted up to
   * the newest entry.
   */
  readonly addedBytesAndEntries: Totals;
  /** Whether the portion has all entries that were read. */
  readonly isAll: boolean;
}

/**
 * Takes the first batches of the outbox, or all of them if they fit into one transaction. The rows are views
 * that are valid until the next portion of the cell.
 * @throws ProgressError as {@link Transcoder.add}, UnreadableEntryError
 */
export async function takePortion(
  owned: OwnedCell,
  batches: readonly OutboxBatch[],
  eventsOf: FlushEvents,
): Promise<Portion> {
  const { lease, records, cursor } = owned;
  records.begin();
  let entriesBefore = 0;
  let count = 0;
  for (const batch of batches) {
    if (records.entries >= LEDGER_ENTRIES_MAX || records.events >= EVENTS_MAX) break;
    entriesBefore = records.entries;
    const afterId = records.newestId === 0n ? cursor : records.newestId;
    try {
      records.add(batch.records, batch.requestKeys);
    } catch (error) {
      throw error instanceof ProgressError ? error : new UnreadableEntryError(afterId, error);
    }
    count++;
  }
  const taken = batches.slice(0, count);
  const { before, records: newest } = taken.at(-1)!;
  const { entries, oldestId, newestId, oldestMs, largeWins, days } = records;
  const totals = records.totals();
  return {
    owned,
    flush: {
      cursor: { lease, from: cursor, first: oldestId, to: newestId },
      rows: records.rows(),
      totals,
      ticketsOf: (raffles) => ticketsOf(taken, raffles),
      adjustments: totals.adjustments.length === 0 ? [] : adjustmentsOf(taken),
      events: largeWins.length === 0 ? [] : await eventsOf.ofWins(largeWins),
      adjustmentEvent: (adjustment) => eventsOf.ofAdjustment(adjustment),
      communal: records.communal.booking,
    },
    entries,
    oldestMs,
    days,
    events: records.events,
    isAll: count === batches.length,
    addedBytesAndEntries: {
      entries: before.entries + entries - entriesBefore,
      bytes: before.bytes + newest.length,
    },
  };
}

/**
 * Groups portions into transactions. Portions of different cells share a transaction while they fit. A cell
 * that is marked `isAlone` gets a transaction of its own.
 */
export function transactionsOf(portions: readonly Portion[]): Portion[][] {
  const transactions: Portion[][] = [];
  let open: Portion[] = [];
  let entries = 0;
  let events = 0;
  for (const portion of portions) {
    if (portion.owned.isAlone) {
      transactions.push([portion]);
      continue;
    }
    const isFull = entries + portion.entries > LEDGER_ENTRIES_MAX || events + portion.events > EVENTS_MAX;
    if (open.length === 0 || isFull) {
      open = [];
      entries = 0;
      events = 0;
      transactions.push(open);
    }
    open.push(portion);
    entries += portion.entries;
    events += portion.events;
  }
  return transactions;
}

/** Returns the raffle tickets with a requestId among outbox entries. */
function ticketsOf(batches: readonly OutboxBatch[], raffles: ReadonlySet<number>): Ticket[] {
  return batches
    .flatMap(({ records }) => readOutbox(records))
    .flatMap(({ kind, gameId, requestId, id }) =>
      ENTRY_KINDS[kind].requestIds === 'spins' && requestId !== null && raffles.has(gameId)
        ? [{ gameId, requestId, entryId: id }]
        : [],
    );
}

function adjustmentsOf(batches: readonly OutboxBatch[]): CommittedAdjustment[] {
  return batches
    .flatMap(({ records }) => readOutbox(records))
    .filter(({ kind, requestId }) => ENTRY_KINDS[kind].requestIds === 'adjustments' && requestId !== null)
    .map(adjustmentOf);
}

/** Converts the progress of a game in a flush to the event for the block keeper. */
export const consumptionOf = ({
  gameId,
  fromIndex,
  toIndex,
  voided,
}: FlushTotals['progress'][number]): Consumption => ({
  gameId,
  nextIndex: toIndex,
  count: toIndex - fromIndex - voided,
});
