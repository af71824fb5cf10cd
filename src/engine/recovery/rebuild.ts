/**
 * Rebuilds a claimed cell of Redis (prepare.ts) from the ledger.
 *
 *   fenced ──> voided (Postgres: next epoch; leased, uncommitted outcomes are voided on record) ──> cleared
 *     ──> partners ──> players ──> requests ──> games ──> installed (the epoch, last of all) ──> recorded
 *
 * An interrupted rebuild starts again from the beginning, under another epoch. Late writes of a slower worker
 * are refused by the fence in Redis and by the fence in Postgres.
 */

import type { BonusNotice } from '../../domain/communal.js';
import { entryTimeMs } from '../../domain/entryId.js';
import { FINGERPRINT_BYTES } from '../../domain/layouts.js';
import { entryOfCode } from '../../domain/ledgerEntry.js';
import { REQUEST_KEY_BYTES, writeRequestKey } from '../../domain/requestKey.js';
import { tailOfEntry, writeTail } from '../../domain/spinTail.js';
import type { OnFailpoint } from '../../platform/failpoints.js';
import type { FairQueue } from '../../platform/runtime/fairQueue.js';
import type { Sql } from '../../postgres/connection.js';
import type { CopyRow } from '../../postgres/copy.js';
import { writeFingerprint } from '../cells/batch.js';
import type { CellLease } from '../cells/cells.store.js';
import { potsOf } from '../communal/communalRecovery.store.js';
import { CellFiller } from '../redis/cellFiller.js';
import { NO_TOTALS, writeBound } from '../redis/cellRecords.js';
import type { CellOwner, CellStore } from '../redis/cellStore.js';
import type { Clocks } from '../redis/clockSkew.js';
import { playerField } from '../redis/keys.js';
import { adjustmentFingerprint, adjustmentKey } from '../redis/requestHashes.js';
import { FIRST_SEGMENT, firstSegment } from '../redis/segmentRecords.js';
import { runsWatermarkOf } from '../requestIds/requestRuns.store.js';
import { agreedTimeMs } from './agreedTime.js';
import { fillGames, fillPlayers, fillPots, fillRounds } from './fill.js';
import type { Unfit } from './handshake.js';
import type { LedgerScan } from './ledgerScan.js';
import { awayPartners } from './partnerMoves.store.js';
import type { RestoredState } from './positions.store.js';
import { Recency } from './recency.js';
import {
  beginRecovery,
  type PlayerState,
  partnerNets,
  RECOVERED,
  recordRecovery,
  recoveredRow,
  uncheckedFrom,
} from './recoveries.store.js';

export interface RebuildOptions {
  /**
   * Clocks with which the clock of Redis must agree again when the epoch is installed, because entry ids
   * continue from the clock of Redis.
   */
  readonly clocks: Clocks;
  readonly onFailpoint: OnFailpoint;
}

export interface Rebuilt {
  readonly lease: CellLease;
  readonly voided: number;
  readonly players: number;
  readonly requests: number;
  readonly seconds: number;
}

export interface RebuildParts extends RebuildOptions {
  readonly sql: Sql;
  /** Limits the number of rebuilds that read and write the data of their own cells at the same time. */
  readonly turns: FairQueue;
  /** Scan of the ledger that all rebuilds share. The cell must already be registered with it. */
  readonly scan: LedgerScan;
  readonly store: CellStore;
}

/** @throws OutrunError or FencedError if the cell has another owner; any other error if a store failed */
export async function rebuild(
  parts: RebuildParts,
  lease: CellLease,
  owner: CellOwner & { readonly serverId: string },
  { reason, token }: Unfit,
  restored?: RestoredState,
): Promise<Rebuilt> {
  const { sql, store, onFailpoint } = parts;
  const started = performance.now();
  const begun = await parts.turns.run(store.cell, async () => {
    const recovery = await beginRecovery(sql, lease, reason, BigInt(token?.split(':')[1] ?? 0), restored);
    onFailpoint('recovery.voided');
    await store.clear(owner);
    onFailpoint('recovery.cleared');
    await fillPartners(parts, owner);
    onFailpoint('recovery.partners');
    return recovery;
  });
  const runsReachId = await runsWatermarkOf(sql, store.cell);
  const filled = { players: 0, requests: 0 };
  const pots = await parts.turns.run(store.cell, () => potsOf(sql, store.cell));
  const recency = new Recency(pots);
  const record = (step: string, isFinished = false): Promise<void> =>
    recordRecovery(sql, begun.lease, { step, isFinished, ...filled });
  await record('players and requests');
  const progress = setInterval(() => record('players and requests').catch(() => {}), PROGRESS_MS);
  try {
    await fillPlayersAndRequests(parts, owner, runsReachId, recency, filled);
  } finally {
    clearInterval(progress);
  }
  await record('games');
  const filling = { sql, store, owner, scope: store.cell };
  await fillGames(filling);
  await fillRounds(filling);
  onFailpoint('recovery.games');
  await fillPots(filling, pots, recency);
  onFailpoint('recovery.communal');

  const { cursorId } = begun.lease;
  // Entry ids continue after all committed entries, and after acknowledged entries that were lost.
  const lastMs = Math.max(entryTimeMs(cursorId), await agreedTimeMs(sql, store.node, parts.clocks));
  await store.open(owner, begun.lease.token, {
    lastMs,
    booked: { id: cursorId, totals: NO_TOTALS },
    segments: firstSegment(runsReachId),
    away: await awayPartners(sql, store.cell),
  });
  onFailpoint('recovery.installed');
  await record('finished', true);
  onFailpoint('recovery.recorded');
  return { ...begun, ...filled, seconds: (performance.now() - started) / 1000 };
}

export async function fillPartners({ sql, store }: RebuildParts, owner: CellOwner): Promise<void> {
  const filler = new CellFiller(store, owner);
  for (const { partnerId, netMicros } of await partnerNets(sql, store.cell)) {
    filler.partner(partnerId, netMicros);
  }
  await filler.finish();
}

async function fillPlayersAndRequests(
  parts: RebuildParts,
  owner: CellOwner,
  runsReachId: bigint,
  recency: Recency,
  filled: {
    players: number;
    requests: number;
  },
): Promise<void> {
  const { sql, store, onFailpoint } = parts;
  const filler = new CellFiller(store, owner);
  // Redis need not have the request ids that are in runs in Postgres.
  const boundFrom = runsReachId + 1n;
  const unchecked = await uncheckedFrom(sql, store.cell);
  const players = new Map<string, PlayerState>();
  // Partners that have left are skipped, because their newer entries are in other cells.
  const left = await awayPartners(sql, store.cell);
  const away = new Set(left.filter(({ backBy }) => backBy === undefined).map(({ partnerId }) => partnerId));
  // A single scan reads two kinds of entries: those after the players' checkpoint, and those whose request
  // ids Redis must have.
  await parts.scan.read(
    store.cell,
    unchecked === undefined || boundFrom < unchecked ? boundFrom : unchecked,
    (row) => {
      const entryId = row.big(RECOVERED.id);
      if (unchecked !== undefined && entryId >= unchecked && !away.has(row.int(RECOVERED.partnerId))) {
        learnPlayer(players, row, entryId);
        const gameId = row.int(RECOVERED.gameId);
        if (recency.remembers(gameId) && entryOfCode(row.int(RECOVERED.kind)).kind === 'spin')
          recency.spun(gameId, row.text(RECOVERED.playerId), entryId);
      }
      if (entryId >= boundFrom && !row.isNull(RECOVERED.requestId)) {
        const [key, fingerprint] = bindingOf(row);
        const bound = writeBound(
          entryId,
          row.int(RECOVERED.outcomeCode),
          row.safe(RECOVERED.balanceMicros),
          fingerprint,
        );
        filler.request(FIRST_SEGMENT, key, Buffer.concat([bound, tailOf(row, entryId)]));
        filled.requests++;
      }
    },
    () => filler.pause(),
  );
  await filler.finish();
  onFailpoint('recovery.requests');
  await parts.turns.run(store.cell, async () => {
    filled.players += await fillPlayers({ sql, store, owner, scope: store.cell }, { later: players });
  });
  onFailpoint('recovery.players');
}

/** Encodes the tail of a ledger entry. The tail is what a replay returns in addition to the entry itself. */
export function tailOf(row: CopyRow, entryId: bigint): Buffer {
  const entry = recoveredRow(row);
  const { kind } = entryOfCode(entry.kind);
  return writeTail(tailOfEntry({ ...entry, kind }, noticeOf(row, entryId)));
}

function noticeOf(row: CopyRow, entryId: bigint): BonusNotice | undefined {
  if (row.isNull(RECOVERED.eventId)) return undefined;
  const eventId = row.big(RECOVERED.eventId);
  return {
    eventId,
    tierLevel: row.int(RECOVERED.tierLevel),
    tierName: row.text(RECOVERED.tierName),
    paidMicros: row.safe(RECOVERED.paidMicros),
    shareMicros: row.isNull(RECOVERED.shareMicros) ? 0 : row.safe(RECOVERED.shareMicros),
    isTrigger: eventId === entryId,
  };
}

/** Updates a player's state with an entry if no newer entry of the player has been read so far. */
export function learnPlayer(players: Map<string, PlayerState>, row: CopyRow, entryId: bigint): void {
  const partnerId = row.int(RECOVERED.partnerId);
  const playerId = row.text(RECOVERED.playerId);
  const field = playerField(partnerId, playerId);
  const known = players.get(field);
  const firstId = entryOfCode(row.int(RECOVERED.kind)).opensPlayer ? entryId : known?.firstId;
  if (known === undefined || known.entryId < entryId) {
    players.set(field, {
      partnerId,
      playerId,
      entryId,
      entryNumber: row.int(RECOVERED.entryNumber),
      outcomeCode: row.int(RECOVERED.outcomeCode),
      balanceMicros: row.safe(RECOVERED.balanceMicros),
      firstId,
    });
  } else if (firstId !== known.firstId) {
    players.set(field, { ...known, firstId });
  }
}

export function bindingOf(row: CopyRow): [key: Buffer, fingerprint: Buffer] {
  const partnerId = row.int(RECOVERED.partnerId);
  const playerId = row.text(RECOVERED.playerId);
  const requestId = row.text(RECOVERED.requestId);
  return entryOfCode(row.int(RECOVERED.kind)).requestIds === 'adjustments'
    ? [adjustmentKey(partnerId, requestId), adjustmentFingerprint(playerId, row.safe(RECOVERED.creditMicros))]
    : spinBinding(partnerId, requestId, row.int(RECOVERED.gameId), playerId);
}

function spinBinding(
  partnerId: number,
  requestId: string,
  gameId: number,
  playerId: string,
): [key: Buffer, fingerprint: Buffer] {
  const key = Buffer.allocUnsafe(REQUEST_KEY_BYTES);
  writeRequestKey(key, 0, partnerId, requestId);
  const fingerprint = Buffer.allocUnsafe(FINGERPRINT_BYTES);
  writeFingerprint(fingerprint, 0, gameId, playerId);
  return [key, fingerprint];
}

/** Interval at which the progress of a long rebuild is recorded, in ms. */
const PROGRESS_MS = 1000;
