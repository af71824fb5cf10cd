/**
 * Prepares a cell for its new owner: compares Redis with the ledger, repairs or rebuilds the cell if
 * necessary, and opens it for dealing. Any worker may repeat any part.
 */

import type { FairQueue } from '../../platform/runtime/fairQueue.js';
import type { Sql } from '../../postgres/connection.js';
import { clearLacking } from '../cells/answered.store.js';
import { type CellLease, raiseFence } from '../cells/cells.store.js';
import type { EventEmitter } from '../processEvents.js';
import type { CellOwner, CellStore } from '../redis/cellStore.js';
import type { RedisNodes } from '../redis/nodes.js';
import { firstSegment } from '../redis/segmentRecords.js';
import { runsWatermarkOf } from '../requestIds/requestRuns.store.js';
import { agreedTimeMs } from './agreedTime.js';
import { examine, type Finding, ForeignError, type Unfit } from './handshake.js';
import { installation } from './installation.store.js';
import type { LedgerScan } from './ledgerScan.js';
import { awayPartners, hasMovedSince } from './partnerMoves.store.js';
import { endlessGames, type RestoredState } from './positions.store.js';
import { type RebuildOptions, type Rebuilt, rebuild } from './rebuild.js';
import { finishRecovery } from './recoveries.store.js';
import { repair } from './repair.js';

export interface PrepareParts extends RebuildOptions {
  readonly sql: Sql;
  readonly nodes: RedisNodes;
  readonly store: CellStore;
  /**
   * Returns the settings with which Redis may lose acknowledged writes. If there are any, nothing in Redis is
   * changed.
   */
  readonly volatile: () => Promise<readonly string[]>;
  /**
   * Limits the number of rebuilds that work on the data of their own cell at the same time. The scan of the
   * ledger, which rebuilds share, is not limited.
   */
  readonly turns: FairQueue;
  /** Shared scan of the ledger for all rebuilds of a node. */
  readonly scan: LedgerScan;
  readonly events: EventEmitter;
  /**
   * Commits the outbox of a cell that has the given token in Redis. Absent if this process can't commit
   * entries.
   * @returns the lease after the commit
   */
  readonly drain?: (lease: CellLease, token: string) => Promise<CellLease>;
  /**
   * Returns the reason why dealing is on hold until an operator has run a command; undefined if there is
   * none.
   */
  readonly hold: () => Promise<string | undefined>;
  /**
   * Returns the newest entry of the cell under the lease's epoch that is known from a source other than
   * Postgres and Redis; 0 if none is known.
   */
  readonly knownOutside?: (lease: CellLease) => bigint;
  /**
   * True if the operator has decided to discard data of another database, or of a later epoch than that of
   * Postgres, and to rebuild the cell.
   */
  readonly isToReplace?: boolean;
  /**
   * State of a restore of Postgres to an older state. The cell is rebuilt whatever Redis has, and continues
   * after everything that may have been revealed.
   */
  readonly restored?: RestoredState;
}

/**
 * @returns the current lease; a rebuild begins a new epoch
 * @throws ForeignError if an operator must decide, and the cell can't be dealt from; OutrunError or
 * FencedError if the cell has another owner; ClocksDifferError if clocks differ, and nothing was done; any
 * other error if a store failed
 */
export async function prepareCell(parts: PrepareParts, leased: CellLease): Promise<CellLease> {
  const { cell } = leased;
  // This process announces that it will read the ledger before it knows whether the cell is lost. Cells that
  // are prepared at the same time can thus share a scan.
  parts.scan.begin(cell);
  try {
    return await prepare(parts, leased);
  } finally {
    parts.scan.end(cell);
  }
}

async function prepare(parts: PrepareParts, leased: CellLease): Promise<CellLease> {
  const { sql, store } = parts;
  const serverId = store.node.knownServerId();
  await assertFit(parts);
  const claimed = await store.fence();
  const lease = claimed >= leased.fence ? await raiseFence(sql, leased, claimed) : leased;
  // From here on, all writes to the cell either go to the server run that was examined, or fail.
  const owner = { fence: lease.fence, serverId };
  const refusal = await refusalOf(parts, lease);
  if (refusal !== undefined) {
    const [dataset, number] = ((await store.token()) ?? '').split(':');
    if (dataset === lease.token.split(':')[0]) await store.close(owner, `${dataset}:${number}`);
    throw new ForeignError(refusal);
  }
  const finding = await found(parts, lease);
  switch (finding.state) {
    case 'new':
      await store.claim(owner);
      await store.open(owner, lease.token, {
        segments: firstSegment(await runsWatermarkOf(sql, lease.cell)),
        away: await awayPartners(sql, lease.cell),
      });
      return lease;
    case 'ready':
      return openReady(parts, owner, lease);
    case 'foreign':
      if (parts.isToReplace !== true) {
        if (finding.token !== undefined) await store.close(owner, finding.token);
        throw new ForeignError(finding.reason);
      }
  }
  return prepareAnew(parts, lease, owner, finding);
}

/** Repairs or rebuilds a cell that can't be opened as it is. */
async function prepareAnew(
  parts: PrepareParts,
  lease: CellLease,
  owner: CellOwner & { readonly serverId: string },
  finding: Unfit,
): Promise<CellLease> {
  const { sql, store } = parts;
  const { cell } = lease;
  const isDrained = finding.state === 'promoted' && !isGivenUp(parts, finding);
  // A repair is not possible after a partner's move: the replica may lack a partner that has arrived in the
  // cell, or still have a partner that has left.
  const isRepair = isDrained && !(await hasMovedSince(sql, cell, (await store.head()).newestEntryId ?? 0n));
  // A repair reads few entries of the ledger, so it does not take part in the shared scan.
  if (isRepair) parts.scan.end(cell);
  parts.events.emit('RebuildStarted', { cell, reason: finding.reason, isRepair });
  let rebuilt: Rebuilt;
  try {
    parts.onFailpoint('recovery.detected');
    await store.claim(owner);
    parts.onFailpoint('recovery.fenced');
    // A former owner may have finished preparing the cell before this worker claimed the cell, so the finding
    // is verified again.
    const again = await found(parts, lease);
    if (!('reason' in again) || again.state !== finding.state) {
      throw new Error(
        `The state of cell ${lease.cell} changed from ${finding.state} to ${again.state} during its preparation`,
      );
    }
    rebuilt = isRepair
      ? await repair(parts, await drained(parts, lease, again), owner, again.reason)
      : await rebuild(
          parts,
          isDrained ? await drained(parts, lease, again) : lease,
          owner,
          again,
          await restoredState(parts, again),
        );
  } catch (error) {
    parts.events.emit('RebuildFailed', { cell });
    throw error;
  }
  const { voided, players, requests, seconds } = rebuilt;
  parts.events.emit('CellRebuilt', { cell, isRepair, voided, players, requests, seconds });
  return rebuilt.lease;
}

/**
 * Checks the durability of Redis and the clocks before the cell is opened for this server run, and before
 * anything is written.
 */
async function assertFit({ sql, store, clocks, volatile }: PrepareParts): Promise<void> {
  // The server was started without its append-only file. Entries that Redis lacks may still be in that file,
  // so the cell is not rebuilt.
  const settings = await volatile();
  if (settings.length > 0)
    throw new Error(`Redis may lose acknowledged writes because of its settings: ${settings.join('; ')}`);
  await agreedTimeMs(sql, store.node, clocks);
}

/** Opens a cell whose data in Redis agrees with the ledger. */
async function openReady(
  parts: PrepareParts,
  owner: CellOwner & { readonly serverId: string },
  lease: CellLease,
): Promise<CellLease> {
  const { sql, store } = parts;
  await store.claim(owner);
  // The former owner may have committed entries and lost the cell before it could trim these entries from the
  // outbox.
  await store.trimOutbox(lease.cursorId);
  const booked = { id: lease.cursorId, totals: await store.totalsAt(lease.cursorId) };
  const away = await awayPartners(sql, lease.cell);
  await store.open(owner, lease.token, { booked, away });
  await finishRecovery(sql, lease);
  await clearLacking(sql, lease);
  return lease;
}

/** Returns the reason why an operator must decide before the cell is prepared; undefined if there is none. */
async function refusalOf({ hold, restored }: PrepareParts, lease: CellLease): Promise<string | undefined> {
  if (lease.halted !== null) return `The cell is halted: ${lease.halted}`;
  return restored === undefined ? hold() : undefined;
}

/** Returns the finding of the handshake. After a restore to an older state the finding is always `lost`. */
async function found(
  { sql, store, restored, knownOutside }: PrepareParts,
  lease: CellLease,
): Promise<Finding> {
  const finding = await examine(sql, store, lease, knownOutside?.(lease));
  if (restored === undefined) return finding;
  const token = 'reason' in finding ? finding.token : undefined;
  return { state: 'lost', reason: 'Postgres was restored to an older state', token };
}

/**
 * Returns what is known about outcomes that were dealt beyond the ledger. There can be such outcomes if
 * Postgres was restored to an older state, or if the Redis data that is discarded belongs to this database
 * and is ahead of it. Undefined if no outcomes other than leased ones can have been revealed.
 */
async function restoredState(
  { sql, store, restored }: PrepareParts,
  { state, token }: Unfit,
): Promise<RestoredState | undefined> {
  const isAhead = state === 'foreign' && token !== undefined;
  if (restored === undefined && !isAhead) return undefined;
  const floors = restored?.floors ?? new Map<number, number>();
  const dataset = ((await store.token()) ?? '').split(':')[0];
  // The counters of another database are not read, because they belong to other games.
  if (dataset !== (await installation(sql)).datasetId) return { floors };
  const gameIds = await endlessGames(sql, store.cell);
  const loadedTo = new Map<number, number>();
  for (let at = 0; at < gameIds.length; at += GAMES_AT_ONCE) {
    const ids = gameIds.slice(at, at + GAMES_AT_ONCE);
    for (const [i, game] of (await store.findGames(ids)).entries()) {
      if (game !== undefined) loadedTo.set(ids[i]!, Math.max(game.queueEnd, game.nextIndex));
    }
  }
  return { floors, loadedTo };
}

/** Number of games whose counters are read from Redis in one call. */
const GAMES_AT_ONCE = 1000;

/**
 * True if this process can't commit the replica's uncommitted entries, and the operator has decided to
 * discard them.
 */
const isGivenUp = ({ drain, isToReplace }: PrepareParts, { unbooked }: Unfit): boolean =>
  unbooked !== undefined && drain === undefined && isToReplace === true;

/** Commits the entries in the outbox of a promoted replica. They were acknowledged and must not be lost. */
async function drained({ drain }: PrepareParts, lease: CellLease, found: Unfit): Promise<CellLease> {
  if (found.unbooked === undefined) return lease;
  if (drain !== undefined) return drain(lease, found.unbooked);
  throw new Error(
    'The entries in the outbox of the promoted replica must be committed first. Start a worker, or discard them with --replace.',
  );
}
