/**
 * Repairs a cell on a promoted replica (prepare.ts). The data of the replica is a prefix of the ledger: its
 * outbox has been committed by now (ledger/drain.ts), and the later entries of the ledger are written here.
 * The bound request ids and the players, which are most of the cell, stay as they are. A repair therefore
 * takes a second where a rebuild takes minutes.
 *
 *   claimed, drained ──> voided (Postgres: next epoch; leased, uncommitted outcomes are voided on record)
 *     ──> replayed (request ids of later entries) ──> pruned ──> partners ──> players
 *     ──> games, rounds, pots ──> installed ──> recorded
 *
 * An interrupted repair starts again. Until the new epoch is installed, the cell still names the server that
 * was replaced, and its newest entry is the replica's. All data is written as the ledger has it, so writing
 * it again changes nothing.
 */
import { entryTimeMs, firstIdAt } from '../../domain/entryId.js';
import { entryOfCode } from '../../domain/ledgerEntry.js';
import type { CellLease } from '../cells/cells.store.js';
import { playerStatuses } from '../cells/playerStatuses.store.js';
import { potsOf, type RecoveredPot } from '../communal/communalRecovery.store.js';
import { CellFiller } from '../redis/cellFiller.js';
import { NO_TOTALS, readPlayer, withStatus, writeBound } from '../redis/cellRecords.js';
import type { CellOwner } from '../redis/cellStore.js';
import { playerField } from '../redis/keys.js';
import { playerRecords, removeRenewed } from '../redis/promotedCell.js';
import { segmentNumbers } from '../redis/segmentRecords.js';
import { agreedTimeMs } from './agreedTime.js';
import { fillGames, fillPots, fillRounds, waitingSharesOf } from './fill.js';
import { awayPartners } from './partnerMoves.store.js';
import { bindingOf, fillPartners, learnPlayer, type RebuildParts, type Rebuilt, tailOf } from './rebuild.js';
import { Recency } from './recency.js';
import {
  beginRecovery,
  type PlayerState,
  RECOVERED,
  readEntriesFrom,
  recordRecovery,
  uncheckedFrom,
} from './recoveries.store.js';

/** Data of those ledger entries that the replica lacks. */
interface Replay {
  /** Players by the field of their record, in the state of their newest entry. */
  readonly players: Map<string, PlayerState>;
  requests: number;
}

/**
 * @param lease lease whose cursor is past all entries of the replica
 * @throws OutrunError or FencedError if the cell has another owner; any other error if a store failed
 */
export async function repair(
  parts: RebuildParts,
  lease: CellLease,
  owner: CellOwner & { readonly serverId: string },
  reason: string,
): Promise<Rebuilt> {
  const { sql, store, onFailpoint } = parts;
  const started = performance.now();
  return parts.turns.run(store.cell, async () => {
    const { newestEntryId = 0n, segments } = await store.head();
    if (segments === undefined) throw new Error('The replica has no segments of request ids');
    const begun = await beginRecovery(sql, lease, reason, 0n);
    onFailpoint('recovery.voided');
    const pots = await potsOf(sql, store.cell);
    const recency = new Recency(pots);
    const replayed = await replay(
      parts,
      owner,
      newestEntryId,
      segmentNumbers(segments).at(-1)!,
      pots,
      recency,
    );
    onFailpoint('recovery.requests');
    const openedIn = await playerRecords(store, [...replayed.players.keys()]);
    await removeRenewed(store, owner, [...replayed.players.keys()]);
    onFailpoint('recovery.cleared');
    await fillPartners(parts, owner);
    onFailpoint('recovery.partners');
    await fillPlayers(parts, owner, replayed.players, openedIn);
    onFailpoint('recovery.players');
    const filling = { sql, store, owner, scope: store.cell };
    await fillGames(filling);
    await fillRounds(filling);
    onFailpoint('recovery.games');
    await fillPots(filling, pots, recency);
    onFailpoint('recovery.communal');

    const { cursorId } = begun.lease;
    await store.trimOutbox(cursorId);
    // Entry ids continue after all committed entries, and after acknowledged entries that were lost.
    const lastMs = Math.max(entryTimeMs(cursorId), await agreedTimeMs(sql, store.node, parts.clocks));
    const away = await awayPartners(sql, store.cell);
    await store.open(owner, begun.lease.token, { lastMs, booked: { id: cursorId, totals: NO_TOTALS }, away });
    onFailpoint('recovery.installed');
    const filled = { players: replayed.players.size, requests: replayed.requests };
    await recordRecovery(sql, begun.lease, { step: 'finished', isFinished: true, ...filled });
    onFailpoint('recovery.recorded');
    return { ...begun, ...filled, seconds: (performance.now() - started) / 1000 };
  });
}

/**
 * Reads the ledger's entries after the replica's newest entry, and binds their request ids.
 * @param segment the replica's open segment; its closed segments end at its newest entry or earlier
 */
async function replay(
  { sql, store }: RebuildParts,
  owner: CellOwner,
  newestId: bigint,
  segment: number,
  pots: readonly RecoveredPot[],
  recency: Recency,
): Promise<Replay> {
  const filler = new CellFiller(store, owner);
  const replayed: Replay = { players: new Map(), requests: 0 };
  // The recent players of a pot are collected anew, starting from the checkpoint.
  const unchecked = pots.length === 0 ? undefined : await uncheckedFrom(sql, store.cell);
  await readEntriesFrom(
    sql,
    [store.cell],
    unchecked !== undefined && unchecked <= newestId ? unchecked : newestId + 1n,
    (row) => {
      const entryId = row.big(RECOVERED.id);
      const gameId = row.int(RECOVERED.gameId);
      if (unchecked !== undefined && entryId >= unchecked && recency.remembers(gameId)) {
        if (entryOfCode(row.int(RECOVERED.kind)).kind === 'spin')
          recency.spun(gameId, row.text(RECOVERED.playerId), entryId);
      }
      if (entryId <= newestId) return;
      learnPlayer(replayed.players, row, entryId);
      if (row.isNull(RECOVERED.requestId)) return;
      const [key, fingerprint] = bindingOf(row);
      const bound = writeBound(
        entryId,
        row.int(RECOVERED.outcomeCode),
        row.safe(RECOVERED.balanceMicros),
        fingerprint,
      );
      filler.request(segment, key, Buffer.concat([bound, tailOf(row, entryId)]));
      replayed.requests++;
    },
    () => filler.pause(),
  );
  await filler.finish();
  return replayed;
}

/**
 * Writes the players that have entries later than the replica's newest, in the state of the ledger. Also adds
 * player statuses that the replica lacks.
 * @param before records of these players on the replica
 */
async function fillPlayers(
  { sql, store }: RebuildParts,
  owner: CellOwner,
  players: ReadonlyMap<string, PlayerState>,
  before: readonly (Buffer | null)[],
): Promise<void> {
  const filler = new CellFiller(store, owner);
  const statuses = new Map(
    (await playerStatuses(sql, store.cell)).map((each) => [playerField(each.partnerId, each.playerId), each]),
  );
  const untold = players.size === 0 ? new Map<string, Buffer[]>() : await waitingSharesOf(sql, store.cell);
  for (const [i, [field, player]] of [...players].entries()) {
    const known = before[i];
    const firstId = known ? firstIdAt(readPlayer(known).createdAtMs) : player.firstId;
    if (firstId === undefined) throw new Error(`The first entry of player ${field} is missing`);
    filler.player({ ...player, firstId, status: statuses.get(field) }, untold.get(field) ?? []);
    statuses.delete(field);
    if (filler.isBusy) await filler.pause();
  }
  const others = [...statuses.keys()];
  const records = await playerRecords(store, others);
  for (const [i, field] of others.entries()) {
    const record = records[i];
    if (!record) continue;
    const changed = withStatus(record, statuses.get(field)!);
    if (changed !== record) filler.playerRecord(field, changed);
    if (filler.isBusy) await filler.pause();
  }
  await filler.finish();
}
