/**
 * Writes the data of the ledger to a cell in Redis, for all its partners or for one partner that moves to the
 * cell: players, games, open rounds, communal progressives. Repeating any part is safe.
 */
import { openSteps } from '../../domain/games/round.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { openRounds } from '../blackjack/rounds.store.js';
import type { PartnerScope } from '../cells/cells.store.js';
import { playerStatuses } from '../cells/playerStatuses.store.js';
import { hasPots, type RecoveredPot, waitingShares } from '../communal/communalRecovery.store.js';
import { CellFiller } from '../redis/cellFiller.js';
import type { CellOwner, CellStore } from '../redis/cellStore.js';
import { writeWaitingShare } from '../redis/communalRecords.js';
import { cellKey, playerField } from '../redis/keys.js';
import type { Recency } from './recency.js';
import { type PlayerState, readCheckpoint, resumptionsOf } from './recoveries.store.js';

export interface Filling<Run = Sql> {
  readonly sql: Run;
  readonly store: CellStore;
  readonly owner: CellOwner;
  readonly scope: PartnerScope;
}

/**
 * Writes the games with an empty queue, which the block keeper fills. A slot game continues after all
 * outcomes that were ever leased. A raffle or a blackjack table continues after its last committed outcome.
 * @param isAllCommitted true if every dealt outcome is committed, so that each game continues exactly where
 * it was
 */
export async function fillGames(
  { sql, store, owner, scope }: Filling<Sql | Transaction>,
  isAllCommitted = false,
): Promise<void> {
  const filler = new CellFiller(store, owner);
  for (const { gameId, nextIndex, queueEnd } of await resumptionsOf(sql, scope, isAllCommitted)) {
    filler.game(gameId, nextIndex, queueEnd);
  }
  await filler.finish();
}

/**
 * Writes the open rounds, which continue after their last committed step. Rounds that are to be voided are
 * left out.
 */
export async function fillRounds({ sql, store, owner, scope }: Filling<Sql | Transaction>): Promise<void> {
  const filler = new CellFiller(store, owner);
  for (const round of await openRounds(sql, scope)) {
    const { gameId, partnerId, playerId, shoeIndex, entryIds } = round;
    filler.round(gameId, partnerId, playerId, { shoeIndex, dealId: entryIds[0]!, steps: openSteps(round) });
    if (filler.isBusy) await filler.pause();
  }
  await filler.finish();
}

/** Writes the committed state of the pots, and their recent players. */
export async function fillPots(
  { store, owner }: Pick<Filling, 'store' | 'owner'>,
  pots: readonly RecoveredPot[],
  recency: Recency,
): Promise<void> {
  const filler = new CellFiller(store, owner);
  for (const pot of pots) filler.pot(pot);
  await filler.finish();
  for (const { gameId, partnerId } of pots)
    await store.rememberPlayers(owner, gameId, partnerId, recency.of(gameId));
  if (pots.length > 0) await store.fencedSet(owner, cellKey(store.name), ['communal', '1']);
}

export interface FillPlayersOptions {
  /** Players that have entries later than the checkpoint, in the state of their newest entry. */
  readonly later?: Map<string, PlayerState>;
  /**
   * Restricts the checkpoint to players that have had an entry after the entry with this id, plus `others`.
   */
  readonly afterId?: bigint;
  /** Further players of the checkpoint to read, by id. All of them belong to one partner. */
  readonly others?: readonly string[];
}

/**
 * A player in `later` is written in the state given there, and every other player in the state of the
 * checkpoint.
 * @returns the number of players
 */
export async function fillPlayers(
  { sql, store, owner, scope }: Filling,
  { later = new Map(), afterId = 0n, others = [] }: FillPlayersOptions = {},
): Promise<number> {
  const filler = new CellFiller(store, owner);
  const statuses = new Map(
    (await playerStatuses(sql, scope)).map((each) => [playerField(each.partnerId, each.playerId), each]),
  );
  const untold = await waitingSharesOf(sql, scope);
  // When the player was copied in an earlier round, the player's record may have had a list of shares. Since
  // then the player may have been notified of these shares.
  const mayHaveListed = afterId > 0n && (await hasPots(sql, scope));
  let players = 0;
  const fill = (player: PlayerState): void => {
    const { partnerId, playerId, firstId } = player;
    if (firstId === undefined)
      throw new Error(`Player ${partnerId}:${playerId} has no first entry in the ledger`);
    const field = playerField(partnerId, playerId);
    const record = { ...player, firstId, status: statuses.get(field) };
    filler.player(record, untold.get(field) ?? [], mayHaveListed);
    players++;
  };
  await readCheckpoint(
    sql,
    scope,
    (player) => {
      const field = playerField(player.partnerId, player.playerId);
      const newest = later.get(field);
      later.delete(field);
      fill(newest === undefined ? player : { ...newest, firstId: player.firstId });
    },
    () => filler.pause(),
    { afterId, others },
  );
  for (const player of later.values()) {
    fill(player);
    if (filler.isBusy) await filler.pause();
  }
  await filler.finish();
  return players;
}

/**
 * Returns the shares that players have not been notified of yet, oldest first, by the field of the player's
 * record.
 */
export async function waitingSharesOf(sql: Sql, scope: PartnerScope): Promise<Map<string, Buffer[]>> {
  const untold = new Map<string, Buffer[]>();
  for (const { partnerId, playerId, ...share } of await waitingShares(sql, scope)) {
    const field = playerField(partnerId, playerId);
    const sections = untold.get(field) ?? [];
    if (sections.push(writeWaitingShare({ ...share, isTrigger: false })) === 1) untold.set(field, sections);
  }
  return untold;
}
