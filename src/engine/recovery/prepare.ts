/**
 * Makes a cell ready for its new owner: looks whether Redis holds what the ledger knows, rebuilds it where it does not,
 * and lets the front ends deal. Every part can be repeated, by this worker or another.
 */

import type { Semaphore } from '../../platform/semaphore.js';
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
  /** Of the cell that is prepared. */
  readonly store: CellStore;
  /** Settings of Redis that let it lose what it acknowledged. While there are any, nothing of it is touched. */
  readonly volatile: () => Promise<readonly string[]>;
  /** What a rebuild does for its cell alone is done by a few at a time. */
  readonly turn: Semaphore;
  /** What all rebuilds of a node read of the ledger is read once. */
  readonly scan: LedgerScan;
  readonly events: EventEmitter;
  /** Books what the outbox of a cell holds that has this token in Redis; absent: this process books nothing. @returns the lease as it is then. */
  readonly drain?: (lease: CellLease, token: string) => Promise<CellLease>;
  /** Why nothing may be dealt until an operator has run a command; undefined: nothing stands against it. */
  readonly hold: () => Promise<string | undefined>;
  /** The newest entry that is known outside both stores under the epoch of the lease; 0 where none is. */
  readonly knownOutside?: (lease: CellLease) => bigint;
  /** Rebuild also what is another database's, or newer than Postgres: it is given up. */
  readonly isToReplace?: boolean;
  /** Postgres was restored to an older state: the cell is rebuilt whatever it is, and goes on above all that may have been shown. */
  readonly restored?: RestoredState;
}

/**
 * @returns the lease as it is now: a rebuild begins a new epoch.
 * @throws ForeignError where people must decide; the cell can't be dealt from then. OutrunError, FencedError where
 *   another owner came. ClocksDifferError: nothing was done while clocks differ. Any other error: a store failed.
 */
export async function prepareCell(parts: PrepareParts, leased: CellLease): Promise<CellLease> {
  const { cell } = leased;
  // Before it is known whether the cell is lost: those that are prepared together read together.
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
  // Whatever is written from here on goes to the server that was looked at, or nowhere.
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

/** Repairs or rebuilds a cell that can't be dealt from as it is. */
async function prepareAnew(
  parts: PrepareParts,
  lease: CellLease,
  owner: CellOwner & { readonly serverId: string },
  finding: Unfit,
): Promise<CellLease> {
  const { sql, store } = parts;
  const { cell } = lease;
  const isDrained = finding.state === 'promoted' && !isGivenUp(parts, finding);
  // A replica may lack a partner that has come since, or hold one that has left.
  const isRepair = isDrained && !(await hasMovedSince(sql, cell, (await store.head()).newestEntryId ?? 0n));
  // What a repair reads of the ledger is little, and its own.
  if (isRepair) parts.scan.end(cell);
  parts.events.emit('RebuildStarted', { cell, reason: finding.reason, isRepair });
  let rebuilt: Rebuilt;
  try {
    parts.onFailpoint('recovery.detected');
    await store.claim(owner);
    parts.onFailpoint('recovery.fenced');
    // Before the claim a former owner may have finished what it was about: what was found then may hold no more.
    const again = await found(parts, lease);
    if (!('reason' in again) || again.state !== finding.state) {
      throw new Error(`Cell ${lease.cell} was found ${finding.state}, and ${again.state} at a second look`);
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

/** Asked before the front ends learn that this run of the server is dealt from, and before anything is written. */
async function assertFit({ sql, store, clocks, volatile }: PrepareParts): Promise<void> {
  // What a server lacks that was started without its log may still be in that log, so it is not rebuilt either.
  const settings = await volatile();
  if (settings.length > 0) throw new Error(`Redis may lose what it acknowledges: ${settings.join('; ')}`);
  await agreedTimeMs(sql, store.node, clocks);
}

/** Lets the front ends deal from a cell that Redis has as the ledger knows it. */
async function openReady(
  parts: PrepareParts,
  owner: CellOwner & { readonly serverId: string },
  lease: CellLease,
): Promise<CellLease> {
  const { sql, store } = parts;
  await store.claim(owner);
  // What a former owner booked and could not trim any more.
  await store.trimOutbox(lease.cursorId);
  const booked = { id: lease.cursorId, totals: await store.totalsAt(lease.cursorId) };
  const away = await awayPartners(sql, lease.cell);
  await store.open(owner, lease.token, { booked, away });
  await finishRecovery(sql, lease);
  await clearLacking(sql, lease);
  return lease;
}

/** Why people must decide first; undefined: nothing stands against the cell. */
async function refusalOf({ hold, restored }: PrepareParts, lease: CellLease): Promise<string | undefined> {
  if (lease.halted !== null) return `The ledger of the cell is halted: ${lease.halted}`;
  return restored === undefined ? hold() : undefined;
}

/** What is found of the cell; after a restore to an older state it is lost, whatever Redis has. */
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
 * What is known of outcomes that were dealt beyond the ledger: where Postgres was restored to an older state, or Redis, which is given
 * up, is this database's and ahead of it. Undefined: nothing was shown beyond the ledger but what it has leased.
 */
async function restoredState(
  { sql, store, restored }: PrepareParts,
  { state, token }: Unfit,
): Promise<RestoredState | undefined> {
  const isAhead = state === 'foreign' && token !== undefined;
  if (restored === undefined && !isAhead) return undefined;
  const floors = restored?.floors ?? new Map<number, number>();
  const dataset = ((await store.token()) ?? '').split(':')[0];
  // Of another database's Redis the games are others.
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

/** Games whose counters are read from Redis in one call. */
const GAMES_AT_ONCE = 1000;

/** What a replica holds and the ledger lacks can't be booked here, and is to be given up with the rest. */
const isGivenUp = ({ drain, isToReplace }: PrepareParts, { unbooked }: Unfit): boolean =>
  unbooked !== undefined && drain === undefined && isToReplace === true;

/** A replica that has taken over may hold what was acknowledged and is not booked yet: that is not given up. */
async function drained({ drain }: PrepareParts, lease: CellLease, found: Unfit): Promise<CellLease> {
  if (found.unbooked === undefined) return lease;
  if (drain !== undefined) return drain(lease, found.unbooked);
  throw new Error(
    'What the replica holds must be booked first: start a worker, or give it up with --replace',
  );
}
