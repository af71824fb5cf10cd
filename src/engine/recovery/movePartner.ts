/**
 * Moves a partner from one cell to another, while both cells continue to deal for all other partners.
 *
 *   requested ──> copied (players, request ids; spins of the partner continue)
 *     ──> stopped (the old cell rejects the partner) ──> flushed (all dealt outcomes are committed)
 *     ──> filled (the new cell has what the ledger has) ──> switched (Postgres, one transaction)
 *     ──> opened ──> removed from the old cell ──> finished
 *
 * The owner of the old cell carries out the move. Until the switch, the partner belongs to the old cell. If
 * the cell gets another owner or is rebuilt before the switch, the partner can be dealt to there again. The
 * switch checks that both cells still have the owners under which they were read and written, so a late
 * worker changes nothing. From the switch on, the old cell rejects the partner permanently.
 *
 * Each step has a number, and numbers only grow. Each cell stores the newest step that it has seen for a
 * partner. An earlier step, or a write that belongs to it, is refused from then on (lua/setAway.lua), because
 * it may have been delayed in the network or by a paused process.
 */
import { setTimeout as pause, setImmediate as turnOfLoop } from 'node:timers/promises';
import { entryTimeMs } from '../../domain/entryId.js';
import type { MoveStep } from '../../domain/partnerMove.js';
import type { OnFailpoint } from '../../platform/failpoints.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { lockingWithin } from '../../postgres/limits.js';
import { isPostgresAway } from '../../postgres/postgresErrors.js';
import { openBlocks } from '../blocks/blocks.store.js';
import { gamesOfPartner } from '../catalog/games.store.js';
import { type CellLease, committedIdOf, FencedError } from '../cells/cells.store.js';
import { playerStatuses } from '../cells/playerStatuses.store.js';
import { adoptRules, potsOf } from '../communal/communalRecovery.store.js';
import type { EventEmitter } from '../processEvents.js';
import { voidedRaffles } from '../raffles/raffles.store.js';
import { CellFiller } from '../redis/cellFiller.js';
import type { CellOwner, CellStore, ClaimedCell } from '../redis/cellStore.js';
import type { RedisNodes } from '../redis/nodes.js';
import { findPartner, newestId, removePartner, setAway } from '../redis/partnerOfCell.js';
import { runsWatermarkOf, writeRun } from '../requestIds/requestRuns.store.js';
import { fillGames, fillPlayers, fillPots, fillRounds } from './fill.js';
import {
  backBy,
  failMove,
  finishMove,
  isSwitched,
  nextSteps,
  type PartnerMove,
  servedCell,
  switchPartner,
} from './partnerMoves.store.js';
import { Recency } from './recency.js';
import { checkpointCell } from './recoveries.store.js';

export interface MoveParts {
  readonly sql: Sql;
  readonly nodes: RedisNodes;
  readonly events: EventEmitter;
  readonly onFailpoint: OnFailpoint;
}

/**
 * Maximum time that the partner's spins are stopped, in ms. If the switch has not happened by then, the
 * partner continues in the old cell.
 */
const STOPPED_MS_MAX = 1500;
/** Maximum wait for a lock while the partner's spins continue, in ms. */
const LOCK_MS_MAX = 2000;
const LOOK_MS = 10;
/**
 * Maximum number of rounds of copying before the partner's spins are stopped. A round that takes less than
 * ROUND_MS_ENOUGH is the last one.
 */
const ROUNDS_MAX = 10;
const ROUND_MS_ENOUGH = 200;
const WRITE_TRIES = 10;
const LOADS_AT_ONCE = 32;

interface Side {
  readonly store: CellStore;
  readonly owner: CellOwner;
}

interface Sides {
  readonly from: Side;
  readonly to: Side;
}

/**
 * Carries out a move up to the switch and opens the new cell. After an interruption it starts again from the
 * beginning.
 * @throws the error that prevented the move. The partner then continues in the old cell, unless a store
 * became unreachable.
 */
export async function movePartner(parts: MoveParts, lease: CellLease, move: PartnerMove): Promise<void> {
  const { sql, nodes, events, onFailpoint } = parts;
  const { partnerId, fromCell, toCell } = move;
  const started = performance.now();
  const target = await servedCell(sql, toCell);
  const [copying, stopping, returning] = (await nextSteps(sql, partnerId, 3)) as [
    MoveStep,
    MoveStep,
    MoveStep,
  ];
  const sides = sidesOf(nodes, lease, target, copying);
  const { from, to } = sides;
  await setAway(to.store, to.owner, copying, 'keep');
  await removePartner(to.store, to.owner, partnerId, await gamesOfPartner(sql, partnerId));
  const { players, ...ahead } = await copyAhead(sql, lease, move, to);
  onFailpoint('move.copied');

  // The partner's earlier move is read before the stop, so that resuming the partner's spins needs Redis
  // only.
  const cameBy = await backBy(sql, partnerId, fromCell);
  const stopped = performance.now();
  await setAway(from.store, from.owner, stopping, 'away');
  try {
    onFailpoint('move.stopped');
    const copied = { ...ahead, token: target.token };
    await finishCopy(parts, lease, move, sides, copied, stopped + STOPPED_MS_MAX);
  } catch (error) {
    // If Postgres became unreachable, the switch may have been committed, so the end of its transaction is
    // awaited. After any other failure the switch was rolled back, and waiting could block on its locks.
    if (!isPostgresAway(error) || !(await isSwitched(sql, lease, move.moveId))) {
      await setAway(from.store, from.owner, returning, cameBy);
      throw error;
    }
  }
  onFailpoint('move.switched');
  const stoppedSeconds = (performance.now() - stopped) / 1000;
  await openTarget(parts, move);
  const seconds = (performance.now() - started) / 1000;
  events.emit('PartnerMoved', { partnerId, fromCell, toCell, players, stoppedSeconds, seconds });
}

/**
 * Copies players and request ids while spins of the partner continue. Each round copies what has changed
 * since the round before it. While the spins are stopped, only the changes of a moment are left to copy,
 * however much data the partner has.
 */
async function copyAhead(
  unbounded: Sql,
  lease: CellLease,
  move: PartnerMove,
  to: Side,
): Promise<Omit<Copied, 'token'> & { players: number }> {
  // Lock waits are limited, because other moves of this worker wait for this one.
  const sql = lockingWithin(unbounded, () => LOCK_MS_MAX);
  let copiedTo = 0n;
  let players = 0;
  let statuses: Statuses = new Map();
  for (let round = 0, tookMs = Number.POSITIVE_INFINITY; round < ROUNDS_MAX; round++) {
    const started = performance.now();
    const bookedTo = await committedIdOf(sql, lease.cell);
    await checkpointCell(sql, lease.cell);
    const statusesNow = await statusesOf(sql, move.partnerId);
    const changed = { afterId: copiedTo, others: changedIn(statuses, statusesNow) };
    const copied = await fillPlayers({ sql, ...to, scope: move }, changed);
    await writeRunsTo(sql, lease, bookedTo);
    copiedTo = bookedTo;
    statuses = statusesNow;
    if (round === 0) players = copied;
    const nowMs = performance.now() - started;
    // Another round of copying would not leave fewer changes to copy while the spins are stopped.
    if (nowMs < ROUND_MS_ENOUGH || nowMs > tookMs / 2) break;
    tookMs = nowMs;
  }
  return { to: copiedTo, players, statuses };
}

/**
 * Resumes the partner's commands in the cell that the partner belongs to. Commands are accepted from callers
 * that know of the move by which the partner came back.
 */
async function letBack(sql: Sql, { store, owner }: Side, partnerId: number): Promise<void> {
  const [step] = (await nextSteps(sql, partnerId, 1)) as [MoveStep];
  await setAway(store, owner, step, await backBy(sql, partnerId, store.cell));
}

/**
 * Opens the new cell for the partner. The cell may still reject the partner because of an earlier move out of
 * the cell.
 */
async function openTarget({ sql, nodes, onFailpoint }: MoveParts, move: PartnerMove) {
  await letBack(sql, sideOf(nodes, await servedCell(sql, move.toCell)), move.partnerId);
  onFailpoint('move.opened');
}

/** Removes a moved partner's data from the old cell, once front ends no longer read the data there. */
export async function finishPartnerMove(
  parts: MoveParts,
  lease: CellLease,
  move: PartnerMove,
): Promise<void> {
  const { sql, nodes, onFailpoint } = parts;
  const { partnerId } = move;
  await openTarget(parts, move);
  const [removing] = (await nextSteps(sql, partnerId, 1)) as [MoveStep];
  const { store, owner } = sideOf(nodes, lease, removing);
  await setAway(store, owner, removing, 'keep');
  await removePartner(store, owner, partnerId, await gamesOfPartner(sql, partnerId));
  onFailpoint('move.removed');
  await finishMove(sql, move.moveId);
  onFailpoint('move.finished');
}

/**
 * Cancels a move that could not be carried out, so that the partner stays in its cell. {@link
 * clearAbandonedMove} completes the clean-up.
 * @returns false if the partner had been switched after all
 */
export async function abandonMove(
  { sql, nodes }: MoveParts,
  lease: CellLease,
  move: PartnerMove,
  reason: string,
): Promise<boolean> {
  if (await isSwitched(sql, lease, move.moveId)) return false;
  await letBack(sql, sideOf(nodes, lease), move.partnerId);
  await failMove(sql, move.moveId, reason);
  return true;
}

/**
 * Removes the data that a cancelled move copied to the new cell.
 * @throws Error if no worker serves the new cell
 */
export async function clearAbandonedMove(
  { sql, nodes }: MoveParts,
  { moveId, partnerId, toCell }: PartnerMove,
): Promise<void> {
  const [removing] = (await nextSteps(sql, partnerId, 1)) as [MoveStep];
  const to = sideOf(nodes, await servedCell(sql, toCell), removing);
  await setAway(to.store, to.owner, removing, 'keep');
  await removePartner(to.store, to.owner, partnerId, await gamesOfPartner(sql, partnerId));
  await finishMove(sql, moveId);
}

interface OwnedCell {
  readonly cell: number;
  readonly fence: bigint;
}

/**
 * @param step step of a move that the writes belong to; if absent, writes are accepted regardless of the
 * steps that the cell has seen
 */
function sideOf(nodes: RedisNodes, { cell, fence }: OwnedCell, step?: MoveStep): Side {
  const store = nodes.cell(cell);
  return { store, owner: { fence, serverId: store.node.knownServerId(), ...(step && { step }) } };
}

const sidesOf = (nodes: RedisNodes, from: OwnedCell, to: OwnedCell, copying: MoveStep): Sides => ({
  from: sideOf(nodes, from),
  to: sideOf(nodes, to, copying),
});

/** Result of copying a partner's data before its spins were stopped. */
interface Copied {
  /** Ledger entry up to which the partner's players have been copied. */
  readonly to: bigint;
  readonly statuses: Statuses;
  readonly token: string;
}

/** Copies the remaining changes and switches the partner, while its spins are stopped. */
async function finishCopy(
  { sql: unbounded, onFailpoint }: MoveParts,
  lease: CellLease,
  move: PartnerMove,
  { from, to }: Sides,
  copied: Copied,
  deadline: number,
): Promise<void> {
  const { partnerId, fromCell } = move;
  // Lock waits are limited, because the partner's clients wait as well.
  const sql = lockingWithin(unbounded, () => deadline - performance.now());
  const untilId = await allBooked(sql, from, deadline);
  onFailpoint('move.flushed');
  await checkpointCell(sql, fromCell);
  await writeRunsTo(sql, lease, untilId);
  onFailpoint('move.runs-written');
  const statuses = await statusesOf(sql, partnerId);
  const changed = { afterId: copied.to, others: changedIn(copied.statuses, statuses) };
  await fillPlayers({ sql, ...to, scope: move }, changed);
  const record = await findPartner(from.store, partnerId);
  if (record !== undefined) {
    const filler = new CellFiller(to.store, to.owner);
    filler.copiedPartner(partnerId, record);
    await filler.finish();
  }
  // The new cell's clock must have passed the last entry, so that the ids of the partner's entries keep
  // growing.
  await until(async () => (await to.store.node.timeMs()) > entryTimeMs(untilId), deadline, 'the clock');
  onFailpoint('move.filled');
  const toFence = to.owner.fence;
  const switching = { move, lease, toFence, untilId, deadline };
  await switchPartner(unbounded, switching, async (tx) => {
    if (changedIn(statuses, await statusesOf(tx, partnerId)).length > 0)
      throw new Error('The status of a player changed during the partner move');
    if (performance.now() > deadline)
      throw new Error("The partner move took too long while the partner's requests were refused");
    await adoptRules(tx, move, untilId);
    const filling = { sql: tx, ...to, scope: move };
    await fillGames(filling, true);
    await loadBlocks(tx, to.store, { fence: toFence, token: copied.token }, partnerId);
    await fillRounds(filling);
    const pots = await potsOf(tx, move);
    await fillPots(to, pots, new Recency(pots));
    onFailpoint('move.switching');
  });
}

/**
 * Loads the outcomes of the partner's games that are leased but not dealt. The games then continue without a
 * gap and without waiting for the block keeper.
 */
async function loadBlocks(
  tx: Transaction,
  store: CellStore,
  claimed: ClaimedCell,
  partnerId: number,
): Promise<void> {
  // The pool of a voided raffle is not loaded, because the new cell would sell its tickets again.
  const voided = await voidedRaffles(tx, partnerId);
  const games = (await gamesOfPartner(tx, partnerId)).filter((gameId) => !voided.has(gameId));
  for (let at = 0; at < games.length; at += LOADS_AT_ONCE) {
    const load = async (gameId: number): Promise<void> => {
      for (const { fromIndex, outcomes, isPublished } of await openBlocks(tx, gameId, 0)) {
        // A block that no published checkpoint covers is not loaded here. The block keeper loads it later,
        // together with the blocks after it.
        if (!isPublished) return;
        await store.loadBlock(claimed, gameId, fromIndex, outcomes!);
      }
    };
    await Promise.all(games.slice(at, at + LOADS_AT_ONCE).map(load));
  }
}

/**
 * Waits until the ledger has all entries of a cell.
 * @returns an id after which no committed entry of the stopped partner follows
 */
async function allBooked(sql: Sql, { store, owner }: Side, deadline: number): Promise<bigint> {
  const newest = await newestId(store);
  // The server run is checked, because a promoted replica may lack entries that were dealt.
  store.assertServer(owner);
  let booked = 0n;
  await until(
    async () => {
      booked = await committedIdOf(sql, store.cell);
      return booked >= newest;
    },
    deadline,
    'the ledger',
  );
  return booked;
}

async function until(isSo: () => Promise<boolean>, deadline: number, what: string): Promise<void> {
  while (!(await isSo())) {
    if (performance.now() > deadline)
      throw new Error(`The partner move timed out while it waited for ${what}`);
    await pause(LOOK_MS);
  }
}

/**
 * Writes the request ids of a cell's entries up to a given entry to a run. From then on the ids are found
 * whichever cell their partner belongs to.
 */
async function writeRunsTo(sql: Sql, { cell, fence }: CellLease, to: bigint): Promise<void> {
  for (let tries = 0; ; tries++) {
    const from = await runsWatermarkOf(sql, cell);
    if (from >= to) return;
    try {
      await writeRun(
        sql,
        [{ cell, fence, from, to }],
        () => turnOfLoop(),
        () => {},
      );
    } catch (error) {
      // The regular release of request ids has already written these request ids to a run.
      if (!(error instanceof FencedError) || tries > WRITE_TRIES) throw error;
    }
  }
}

type Statuses = ReadonlyMap<string, number>;

const statusesOf = async (sql: Sql | Transaction, partnerId: number): Promise<Statuses> =>
  new Map((await playerStatuses(sql, { partnerId })).map(({ playerId, change }) => [playerId, change]));

/** Returns the players whose status has changed between two reads of the statuses. */
const changedIn = (before: Statuses, now: Statuses): string[] =>
  [...now].filter(([playerId, change]) => before.get(playerId) !== change).map(([playerId]) => playerId);
