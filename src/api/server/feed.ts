/**
 * Reads feeds: lists of a partner's ledger by time, with bounds and a cursor (docs/contract.md §11). A page
 * skips and repeats nothing, and the last page has everything that was answered before the request.
 */
import type { Static } from '#typebox';
import { DAY_MS, startOf } from '../../domain/days.js';
import { firstIdAt } from '../../domain/entryId.js';
import { type Fault, invalid } from '../../domain/errors.js';
import type { Partner } from '../../domain/game.js';
import { NO_TIME, rfc3339Time } from '../../domain/rfc3339.js';
import type { LedgerWatermark } from '../../engine/catalog/partners.store.js';
import type { RoundFeedQuery } from '../blackjack/contract.js';
import { booked } from './found.js';
import type { Services } from './services.js';

const ID_END = 2n ** 63n - 1n;

/** The feed of adjustments has no `gameId`. */
type FeedQuery = Omit<Static<typeof RoundFeedQuery>, 'limit'>;

export interface FeedRange {
  readonly partner: Partner;
  readonly partnerId: number;
  /** First entry id of the range, inclusive. */
  readonly fromId: bigint;
  /** Entry id at the end of the range, exclusive. */
  readonly toId: bigint;
  readonly gameId: number | undefined;
  readonly playerId: string | undefined;
}

/** @param cursorId member of an item that the caller may send as cursor */
export function feedRange(
  { spinIds }: Pick<Services, 'spinIds'>,
  partner: Partner,
  query: FeedQuery,
  cursorId: string,
): FeedRange {
  const faults: Fault[] = [];
  const time = (name: 'from' | 'to'): bigint | undefined => {
    const text = query[name];
    if (text === undefined) return undefined;
    const date = rfc3339Time(text);
    if (date !== undefined) return firstIdAt(Math.max(0, date.getTime()));
    faults.push({ path: `/${name}`, message: NO_TIME });
    return undefined;
  };
  const position = (text: string | undefined): bigint | undefined =>
    text === undefined ? undefined : BigInt(text);
  const [fromTime, toTime] = [time('from'), time('to')];
  const [fromEntry, toEntry] = [position(query.fromEntry), position(query.toEntry)];
  if (toTime !== undefined && toTime < (fromTime ?? 0n))
    faults.push({ path: '/to', message: 'must not be before `from`' });
  if (toEntry !== undefined && toEntry < (fromEntry ?? 0n))
    faults.push({ path: '/toEntry', message: 'must not be less than `fromEntry`' });
  const { cursor } = query;
  const after = cursor === undefined ? undefined : spinIds.decode(cursor);
  if (cursor !== undefined && after?.partnerId !== partner.partnerId)
    faults.push({
      path: '/cursor',
      message: `must be a \`nextCursor\` or a \`${cursorId}\` of this account`,
    });
  if (faults.length > 0) throw invalid(faults);
  return {
    partner,
    partnerId: partner.partnerId,
    fromId: least([
      greatest([fromTime, fromEntry, after === undefined ? undefined : after.entryId + 1n]),
      ID_END,
    ]),
    toId: least([toTime, toEntry, ID_END]),
    gameId: query.gameId,
    playerId: query.playerId,
  };
}

const least = (ids: readonly (bigint | undefined)[]): bigint =>
  ids.reduce<bigint>((low, id) => (id !== undefined && id < low ? id : low), ID_END);
const greatest = (ids: readonly (bigint | undefined)[]): bigint =>
  ids.reduce<bigint>((high, id) => (id !== undefined && id > high ? id : high), 0n);

/**
 * Restricts the range to days that the ledger still has. Of dropped days the ledger has only totals, not
 * entries.
 */
export async function keptOf({ store }: Services, range: FeedRange): Promise<FeedRange> {
  const keptFrom = await store.ledgerDays.keptFrom();
  const fromId = keptFrom === undefined ? 0n : firstIdAt(keptFrom.getTime());
  return fromId > range.fromId ? { ...range, fromId } : range;
}

/** A page of a feed, and how far the partner's ledger was complete when the page was read. */
interface Reached {
  /** Id at which the next page begins. Undefined: the ledger currently has no more entries of the range. */
  readonly nextId: bigint | undefined;
  readonly reach: LedgerWatermark;
}

/**
 * Returns one page of a feed. Before the last page of the range is returned, all entries acknowledged before
 * this call must be committed.
 *
 * @param read reads the page up to the watermark of the partner's ledger
 * @throws ApiError (KS-5002) if these entries are not committed in time
 */
export async function feedPage<Page extends Reached>(
  { cells }: Pick<Services, 'cells'>,
  { cell }: Partner,
  read: () => Promise<Page>,
): Promise<Page> {
  const { reads } = cells;
  // The outbox is read before the ledger. An entry that is committed between the two reads leaves the outbox.
  // If the ledger were read first, both reads would miss this entry.
  const before = await reads.newestInOutbox(cell);
  const page = await read();
  if (page.nextId !== undefined) return page;
  const isMoved = page.reach.cell !== cell;
  if (!isMoved && before <= page.reach.toId) return page;
  const newestId = isMoved ? await reads.newestInOutbox(page.reach.cell) : before;
  if (newestId > page.reach.toId) await booked(cells, newestId);
  return read();
}

/** Returns the `nextCursor` of a page, which is the position before the next item. */
export const cursorBefore = (
  { spinIds }: Pick<Services, 'spinIds'>,
  { partnerId }: Partner,
  nextId: bigint | undefined,
): string | null => (nextId === undefined ? null : spinIds.encodeOne(nextId - 1n, partnerId));

/** Returns the member `completeFrom` of a feed, absent if no day of the ledger was dropped. */
export async function completeFrom({ store }: Services): Promise<{ completeFrom?: string }> {
  const keptFrom = await store.ledgerDays.keptFrom();
  return keptFrom === undefined ? {} : { completeFrom: keptFrom.toISOString() };
}

/** Like {@link completeFrom}, for a caller that already knows the newest dropped day. Null means none. */
export const completeAfter = (droppedDay: string | null): { completeFrom?: string } =>
  droppedDay === null ? {} : { completeFrom: new Date(startOf(droppedDay) + DAY_MS).toISOString() };
