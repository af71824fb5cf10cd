/**
 * Compares a cell in Redis with the ledger before its owner writes anything. The finding decides how the cell
 * is prepared:
 *
 * - ready: Redis has the epoch of this database and is not behind the ledger. The cell is opened for this
 *   server run.
 * - new: Redis has no epoch, nothing is committed, and nothing is leased.
 * - lost: Redis has no epoch or an earlier epoch of this database, or it is behind the ledger or behind the
 *   answered watermark. The cell is rebuilt from the ledger.
 * - promoted: Redis has the epoch of this database, but is a promoted replica, which may lack acknowledged
 *   entries. The cell is repaired from the ledger. If its data contradicts the ledger, the finding is lost.
 * - foreign: Redis has the data of another database or a later epoch of this database, or the ledger has
 *   lost entries that it had. An operator must decide.
 *
 * A cell that can't be dealt from has no epoch in Redis that a front end could present, so the scripts
 * refuse.
 */
import { isSameEntry } from '../../domain/ledgerEntry.js';
import type { Sql } from '../../postgres/connection.js';
import { answeredUnder } from '../cells/answered.store.js';
import type { CellLease } from '../cells/cells.store.js';
import { findEntry } from '../ledger/ledgerEntries.store.js';
import type { CellStore } from '../redis/cellStore.js';
import { newestInOutboxUpTo } from '../redis/promotedCell.js';
import { committedIndices, hasBlocks } from './recoveries.store.js';

export type Finding = { readonly state: 'ready' | 'new' } | Unfit;
export interface Unfit {
  readonly state: 'lost' | 'promoted' | 'foreign';
  readonly reason: string;
  /** Dataset and number of the epoch in Redis, if it is an epoch of this database. */
  readonly token: string | undefined;
  /**
   * Token of the cell in Redis. Present if the cell's outbox has entries that must be committed before a
   * repair.
   */
  readonly unbooked?: string;
}

/**
 * Redis and the ledger differ in a way that must not be repaired automatically, so nothing is dealt from the
 * cell.
 */
export class ForeignError extends Error {}

/**
 * Examines a cell without changing anything.
 * @param knownOutside newest entry that a source other than Postgres and Redis shows to have been dealt under
 * the lease's epoch
 */
export async function examine(
  sql: Sql,
  store: CellStore,
  lease: CellLease,
  knownOutside = 0n,
): Promise<Finding> {
  const { cell, cursorId } = lease;
  const { token, newestEntryId, booked, segments } = await store.head();
  const ours = lease.token.split(':');
  if (token === undefined) {
    if (cursorId === 0n && newestEntryId === undefined && !(await hasBlocks(sql, cell)))
      return { state: 'new' };
    return lost('Redis has no data of this cell, or its last rebuild was interrupted');
  }
  const [dataset, number, serverId = ''] = token.split(':');
  if (dataset !== ours[0]) {
    return foreign(
      'Redis holds the data of another database. Empty it, or run `spindle recover --replace`',
      undefined,
    );
  }
  const epoch = `${dataset}:${number}`;
  if (BigInt(number ?? 0) > BigInt(ours[1]!)) {
    return foreign(
      'Redis has a later epoch than Postgres, because Postgres was restored from an older copy',
      epoch,
    );
  }
  const isPromoted = store.node.mayLack(serverId);
  const isEarlier = BigInt(number ?? 0) < BigInt(ours[1]!);
  if (isEarlier && !isPromoted) return lost('Redis has a copy from before an earlier rebuild');
  if (booked !== undefined && booked.id > cursorId) {
    return foreign(
      `Redis has recorded entries up to ${booked.id} as committed, but the ledger does not have them, ` +
        'because Postgres was restored from an older copy',
      epoch,
    );
  }
  if (isPromoted)
    return segments === undefined ? lost(TAKEN_OVER) : examinePromoted(sql, store, lease, token, isEarlier);
  if (cursorId > 0n && (newestEntryId === undefined || newestEntryId < cursorId)) {
    return lost('Redis lacks ledger entries, because it was restored from an older copy');
  }
  const noted = await answeredUnder(sql, lease);
  const answered = noted > knownOutside ? noted : knownOutside;
  if (answered > cursorId && (newestEntryId === undefined || newestEntryId < answered)) {
    return lost('Redis lacks answered entries, because it was restored from an older copy');
  }
  const indices = await committedIndices(sql, cell);
  if (indices.length > 0) {
    const games = await store.findGames(indices.map(({ gameId }) => gameId));
    const behind = indices.find(({ nextIndex }, i) => {
      const game = games[i];
      return game === undefined || BigInt(game.nextIndex) < nextIndex;
    });
    if (behind !== undefined) {
      return lost(
        `Redis is an older copy, because it would deal outcomes of game ${behind.gameId} that are already committed`,
      );
    }
  }
  return { state: 'ready' };
}

const TAKEN_OVER =
  'A replica has taken over or the hash slot was moved, so Redis may lack acknowledged entries';

/**
 * Examines a promoted replica. Its data is a prefix of the data of the old primary. Once its outbox is
 * committed, the data is also a prefix of the ledger and can be repaired. A repair is impossible if the
 * replica has entries of an earlier epoch, which can no longer be committed and differ from the ledger.
 */
async function examinePromoted(
  sql: Sql,
  store: CellStore,
  { cursorId }: CellLease,
  token: string,
  isEarlier: boolean,
): Promise<Finding> {
  const promoted: Unfit = { state: 'promoted', reason: TAKEN_OVER, token: undefined };
  const hasUnbooked = (await store.newestInOutbox()) > cursorId;
  if (hasUnbooked && isEarlier)
    return lost(`${TAKEN_OVER}. Its outbox has entries that an earlier recovery discarded`);
  const booked = await newestInOutboxUpTo(store, cursorId);
  if (booked !== undefined && !isSameEntry(booked, await findEntry(sql, booked.id)))
    return lost(`${TAKEN_OVER}. Its newest common entry differs from the entry in the ledger`);
  return hasUnbooked ? { ...promoted, unbooked: token } : promoted;
}

const lost = (reason: string): Unfit => ({ state: 'lost', reason, token: undefined });
const foreign = (reason: string, token: string | undefined): Finding => ({ state: 'foreign', reason, token });
