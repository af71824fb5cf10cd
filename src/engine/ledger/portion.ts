/**
 * What a flush books next of one cell: as many of the outbox entries that were read as one transaction takes. Portions of
 * several cells go into one transaction, as far as it takes them.
 */
import type { Totals } from '../../domain/layouts.js';
import { ENTRY_KINDS } from '../../domain/ledgerEntry.js';
import type { NewEvent } from '../../domain/webhook.js';
import type { CommittedAdjustment } from '../cells/adjustments.store.js';
import type { CellLease } from '../cells/cells.store.js';
import type { Consumption } from '../processEvents.js';
import type { Ticket } from '../raffles/raffles.store.js';
import { readOutbox } from '../redis/cellRecords.js';
import type { CellStore } from '../redis/cellStore.js';
import type { OutboxBatch, OutboxPosition } from '../redis/outboxReader.js';
import type { CellFlush, FlushTotals } from './ledger.store.js';
import type { LargeWin, Transcoder } from './transcoder.js';

/** Booked in one transaction, which must be done well within its deadline. */
const LEDGER_ENTRIES_MAX = 20_000;
/** Likewise: each large win is written once for each webhook that wants it, and a partner may have fifty. */
const LARGE_WINS_MAX = 64;

/** A cell that this worker writes. */
export interface OwnedCell {
  readonly lease: CellLease;
  /** What Redis must have as the cell's token; undefined: the one that lets front ends deal. */
  readonly token: string | undefined;
  readonly store: CellStore;
  readonly records: Transcoder;
  /** Id of the newest booked entry. */
  cursor: bigint;
  /** What is booked is not trimmed and noted yet; `true`: nor is it known how much that is. */
  untrimmed: Totals | true | undefined;
  notBefore: number;
  /** The flush before failed for its own data. */
  hasDataFault: boolean;
  /** A flush together with other cells failed: it goes alone until one has succeeded. */
  isAlone: boolean;
}

/** A cell that is booked from the lease's cursor on. */
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

/** Where the reading of its outbox goes on. */
export const positionOf = ({ lease, cursor, token }: OwnedCell): OutboxPosition => ({
  cell: lease.cell,
  epoch: lease.token,
  cursor,
  token,
});

/** The outbox that was read is not that of the lease's epoch: Redis holds something else by now. Nothing was written. */
export class EpochChangedError extends Error {
  constructor(cell: number) {
    super(`Cell ${cell} of Redis is not at the epoch of its lease: its outbox is not booked`);
  }
}

export interface Portion {
  readonly owned: OwnedCell;
  readonly flush: CellFlush;
  readonly entries: number;
  readonly largeWins: number;
  /** UTC days of the entries. */
  readonly days: ReadonlySet<string>;
  /** When the oldest entry was made, milliseconds since the epoch. */
  readonly oldestMs: number;
  /** What the outbox has had added up to the newest entry. */
  readonly addedBytesAndEntries: Totals;
  /** There is nothing left over of what was read. */
  readonly isAll: boolean;
}

/**
 * Takes the first of the batches, all of them if they fit. The rows are views that hold until the next portion of the cell.
 * @param eventsOf the events of what may be large wins
 * @throws ProgressError, RangeError as {@link Transcoder.add}
 */
export async function takePortion(
  owned: OwnedCell,
  batches: readonly OutboxBatch[],
  eventsOf: (wins: readonly LargeWin[]) => Promise<NewEvent[]>,
): Promise<Portion> {
  const { lease, records, cursor } = owned;
  records.begin();
  let entriesBefore = 0;
  let count = 0;
  for (const batch of batches) {
    if (records.entries >= LEDGER_ENTRIES_MAX || records.largeWins.length >= LARGE_WINS_MAX) break;
    entriesBefore = records.entries;
    records.add(batch.records, batch.requestKeys);
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
      events: largeWins.length === 0 ? [] : await eventsOf(largeWins),
      communal: records.communal.booking,
    },
    entries,
    oldestMs,
    days,
    largeWins: largeWins.length,
    isAll: count === batches.length,
    addedBytesAndEntries: {
      entries: before.entries + entries - entriesBefore,
      bytes: before.bytes + newest.length,
    },
  };
}

/** Portions by transaction: as many of different cells together as it takes, those that must go alone by themselves. */
export function transactionsOf(portions: readonly Portion[]): Portion[][] {
  const transactions: Portion[][] = [];
  let open: Portion[] = [];
  let entries = 0;
  let largeWins = 0;
  for (const portion of portions) {
    if (portion.owned.isAlone) {
      transactions.push([portion]);
      continue;
    }
    const isFull =
      entries + portion.entries > LEDGER_ENTRIES_MAX || largeWins + portion.largeWins > LARGE_WINS_MAX;
    if (open.length === 0 || isFull) {
      open = [];
      entries = 0;
      largeWins = 0;
      transactions.push(open);
    }
    open.push(portion);
    entries += portion.entries;
    largeWins += portion.largeWins;
  }
  return transactions;
}

/** The tickets of raffles among stream entries, as far as they have a requestId. */
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
    .flatMap(({ kind, partnerId, requestId, id }) =>
      ENTRY_KINDS[kind].requestIds === 'adjustments' && requestId !== null
        ? [{ partnerId, requestId, entryId: id }]
        : [],
    );
}

/** What a flush saw of a game. */
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
