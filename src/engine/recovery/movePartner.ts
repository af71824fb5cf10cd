/**
 * Moves a partner from a cell to another one, while both go on dealing for all others.
 *
 *   requested ──> copied (players, request ids; the partner is dealt for) ──> stopped (the old cell turns the partner away)
 *     ──> flushed (all that was dealt is booked) ──> filled (the new cell has what the ledger has)
 *     ──> switched (Postgres, one transaction) ──> opened ──> removed from the old cell ──> finished
 *
 * The owner of the old cell does it. Up to the switch the partner belongs to the old cell: whoever owns or rebuilds that next lets
 * it deal again, by what Postgres says. The switch checks that both cells have the owners under which they were read and written,
 * so that a worker that comes late changes nothing. From the switch on, the old cell turns the partner away for good.
 *
 * Each step has a number that only grows, and each cell keeps the newest that it has seen of a partner. A step, or a write as a part of
 * one, that was held in the network, or by a process that was paused, is refused once a later step was taken (lua/setAway.lua).
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

/** The partner is dealt for again where the move did not get so far within this. */
const STOPPED_MS_MAX = 1500;
/** No lock is waited for longer while the partner is dealt for. */
const LOCK_MS_MAX = 2000;
const LOOK_MS = 10;
/** Rounds of copying before the stop; no further one where one took so little. */
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
 * Does all up to the switch, and opens the new cell. Begun again from the start where it was ended.
 * @throws where it could not be done: the partner is dealt for in the old cell, unless a store was away by then.
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

  // Known before the stop: to let the partner back takes Redis alone.
  const cameBy = await backBy(sql, partnerId, fromCell);
  const stopped = performance.now();
  await setAway(from.store, from.owner, stopping, 'away');
  try {
    onFailpoint('move.stopped');
    const copied = { ...ahead, token: target.token };
    await finishCopy(parts, lease, move, sides, copied, stopped + STOPPED_MS_MAX);
  } catch (error) {
    // A commit whose answer was lost is waited for; whatever else failed undid the switch, and may hold locks that are waited for.
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
 * Copies players and hands request ids over while the partner is dealt for, again and again, each time what came meanwhile: what is
 * left for the stop is what is spun in a moment, however much the partner has.
 */
async function copyAhead(
  unbounded: Sql,
  lease: CellLease,
  move: PartnerMove,
  to: Side,
): Promise<Omit<Copied, 'token'> & { players: number }> {
  // Other moves of this worker wait for this one.
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
    // No less would be left after another round.
    if (nowMs < ROUND_MS_ENOUGH || nowMs > tookMs / 2) break;
    tookMs = nowMs;
  }
  return { to: copiedTo, players, statuses };
}

/** A partner that lives in a cell is dealt for there, by those who know by which move it has come back. */
async function letBack(sql: Sql, { store, owner }: Side, partnerId: number): Promise<void> {
  const [step] = (await nextSteps(sql, partnerId, 1)) as [MoveStep];
  await setAway(store, owner, step, await backBy(sql, partnerId, store.cell));
}

/** The new cell may have turned the partner away since it lived there before. */
async function openTarget({ sql, nodes, onFailpoint }: MoveParts, move: PartnerMove) {
  await letBack(sql, sideOf(nodes, await servedCell(sql, move.toCell)), move.partnerId);
  onFailpoint('move.opened');
}

/** Removes what the old cell has of a partner that was switched, once no front end reads it there any more. */
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
 * Gives a move up that could not be done: the partner stays where it is. {@link clearAbandonedMove} finishes it.
 * @returns false where it was switched after all
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

/** Removes what was copied by a move that was given up. @throws where no worker serves the new cell */
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

/** @param step as a part of which the cell is written; absent: whatever steps it has seen */
function sideOf(nodes: RedisNodes, { cell, fence }: OwnedCell, step?: MoveStep): Side {
  const store = nodes.cell(cell);
  return { store, owner: { fence, serverId: store.node.knownServerId(), ...(step && { step }) } };
}

const sidesOf = (nodes: RedisNodes, from: OwnedCell, to: OwnedCell, copying: MoveStep): Sides => ({
  from: sideOf(nodes, from),
  to: sideOf(nodes, to, copying),
});

/** What was copied while the partner was dealt for. */
interface Copied {
  /** Entries of players up to this one. */
  readonly to: bigint;
  readonly statuses: Statuses;
  /** Epoch of the new cell. */
  readonly token: string;
}

/** What happens while the partner is turned away. */
async function finishCopy(
  { sql: unbounded, onFailpoint }: MoveParts,
  lease: CellLease,
  move: PartnerMove,
  { from, to }: Sides,
  copied: Copied,
  deadline: number,
): Promise<void> {
  const { partnerId, fromCell } = move;
  // The partner's clients wait for whatever this waits for.
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
  // Ids of the partner's entries go on growing.
  await until(async () => (await to.store.node.timeMs()) > entryTimeMs(untilId), deadline, 'the clock');
  onFailpoint('move.filled');
  const toFence = to.owner.fence;
  const switching = { move, lease, toFence, untilId, deadline };
  await switchPartner(unbounded, switching, async (tx) => {
    if (changedIn(statuses, await statusesOf(tx, partnerId)).length > 0)
      throw new Error('The status of a player was changed meanwhile');
    if (performance.now() > deadline) throw new Error('The partner is turned away for too long');
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

/** Loads what is leased of the partner's games and not dealt: it goes on without a gap, and no block keeper is waited for. */
async function loadBlocks(
  tx: Transaction,
  store: CellStore,
  claimed: ClaimedCell,
  partnerId: number,
): Promise<void> {
  const games = await gamesOfPartner(tx, partnerId);
  for (let at = 0; at < games.length; at += LOADS_AT_ONCE) {
    const load = async (gameId: number): Promise<void> => {
      for (const { fromIndex, outcomes, isPublished } of await openBlocks(tx, gameId, 0)) {
        // The block keeper loads it, and those behind it, once it is.
        if (!isPublished) return;
        await store.loadBlock(claimed, gameId, fromIndex, outcomes!);
      }
    };
    await Promise.all(games.slice(at, at + LOADS_AT_ONCE).map(load));
  }
}

/** Waits until the ledger has all that a cell holds. @returns an id after which nothing is booked of a partner that is turned away */
async function allBooked(sql: Sql, { store, owner }: Side, deadline: number): Promise<bigint> {
  const newest = await newestId(store);
  // A replica that has taken over may lack what was dealt.
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
    if (performance.now() > deadline) throw new Error(`A partner that moves can't wait longer for ${what}`);
    await pause(LOOK_MS);
  }
}

/** Hands over the request ids of a cell up to an entry: from then on they are found wherever their partner lives. */
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
      // The regular release of the cell was there before.
      if (!(error instanceof FencedError) || tries > WRITE_TRIES) throw error;
    }
  }
}

/** By player: how often its status was changed. */
type Statuses = ReadonlyMap<string, number>;

const statusesOf = async (sql: Sql | Transaction, partnerId: number): Promise<Statuses> =>
  new Map((await playerStatuses(sql, { partnerId })).map(({ playerId, change }) => [playerId, change]));

/** The players whose status was changed since. */
const changedIn = (before: Statuses, now: Statuses): string[] =>
  [...now].filter(([playerId, change]) => before.get(playerId) !== change).map(([playerId]) => playerId);
