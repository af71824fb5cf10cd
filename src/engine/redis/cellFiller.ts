/** Fills a cell that its owner has claimed and cleared with what a rebuild reads of the ledger; many fields a call. */
import type { PotRecord } from '../../domain/communal.js';
import { ROUND } from '../../domain/layouts.js';
import { type OpenRound, writeGame, writePartner, writePlayer } from './cellRecords.js';
import type { CellOwner, CellStore } from './cellStore.js';
import { placeWaitingShares, writeRules, writeState } from './communalRecords.js';
import {
  communalKey,
  gamesKey,
  idempotencyKey,
  partnersKey,
  playerAtGame,
  playerField,
  playersKey,
  roundsKey,
} from './keys.js';
import { unlistWaitingShares } from './partnerOfCell.js';

const FIELDS_A_CALL = 500;
const CALLS_MAX = 16;

export class CellFiller {
  readonly #store: CellStore;
  readonly #owner: CellOwner;
  readonly #gathered = new Map<string, (string | Buffer)[]>();
  readonly #calls = new Set<Promise<void>>();
  #failure: unknown;

  constructor(store: CellStore, owner: CellOwner) {
    this.#store = store;
    this.#owner = owner;
  }

  /** A partner whose windows begin anew. @param netMicros payouts − wagers */
  partner(partnerId: number, netMicros: bigint): void {
    this.#set(partnersKey(this.#store.name), String(partnerId), writePartner(netMicros));
  }

  /** A partner as another cell has it. */
  copiedPartner(partnerId: number, record: Buffer): void {
    this.#set(partnersKey(this.#store.name), String(partnerId), record);
  }

  /** A game that goes on at an index, with an empty queue. @param queueEnd where the block that is loaded next begins */
  game(gameId: number, nextIndex: number, queueEnd: number): void {
    this.#set(gamesKey(this.#store.name), String(gameId), writeGame(nextIndex, queueEnd));
  }

  /** The communal progressive of a game. */
  pot(pot: PotRecord & { readonly gameId: number }): void {
    const record = Buffer.concat([writeState(pot), writeRules(pot.partnerId, pot.rules)]);
    this.#set(communalKey(this.#store.name), String(pot.gameId), record);
  }

  /**
   * A player as of its newest ledger entry.
   * @param untold shares that wait for it, oldest first
   * @param isAgain the cell may have shares listed from before
   */
  player(
    player: Parameters<typeof writePlayer>[0] & { partnerId: number; playerId: string },
    untold: readonly Buffer[],
    isAgain = false,
  ): void {
    const field = playerField(player.partnerId, player.playerId);
    const { behindPlayer, listed } = placeWaitingShares(untold);
    const record =
      untold.length === 0
        ? player
        : { ...player, untold: { shares: behindPlayer, hasListed: listed.length > 0 } };
    this.#set(playersKey(this.#store.name), field, writePlayer(record));
    if (isAgain) this.#call(unlistWaitingShares(this.#store, this.#owner, field));
    // The calls are taken in order: so is the list.
    for (let from = 0; from < listed.length; from += FIELDS_A_CALL)
      this.#call(this.#store.listWaitingShares(this.#owner, field, listed.slice(from, from + FIELDS_A_CALL)));
  }

  /** A player's record as it is to be. */
  playerRecord(field: string, record: Buffer): void {
    this.#set(playersKey(this.#store.name), field, record);
  }

  /** An open round. */
  round(gameId: number, partnerId: number, playerId: string, round: OpenRound): void {
    this.#set(roundsKey(this.#store.name), playerAtGame(gameId, partnerId, playerId), ROUND.make(round));
  }

  /** A requestId that is bound. @param key its hash @param bound as `writeBound` makes it */
  request(segment: number, key: Buffer, bound: Buffer): void {
    this.#set(idempotencyKey(this.#store.name, segment), key, bound);
  }

  #set(key: string, field: string | Buffer, value: Buffer): void {
    const fields = this.#gathered.get(key) ?? [];
    if (fields.length === 0) this.#gathered.set(key, fields);
    fields.push(field, value);
    if (fields.length >= FIELDS_A_CALL * 2) this.#send(key, fields);
  }

  #send(key: string, fields: (string | Buffer)[]): void {
    this.#gathered.delete(key);
    this.#call(this.#store.fencedSet(this.#owner, key, fields));
  }

  #call(sent: Promise<void>): void {
    const call = sent
      .catch((error: unknown) => {
        this.#failure ??= error;
      })
      .finally(() => this.#calls.delete(call));
    this.#calls.add(call);
  }

  /** So many calls are under way that {@link pause} should be called before more is given. */
  get isBusy(): boolean {
    return this.#calls.size >= CALLS_MAX;
  }

  /** Waits while too many calls are under way. @throws what one of them threw. */
  async pause(): Promise<void> {
    while (this.isBusy && this.#failure === undefined) await Promise.race(this.#calls);
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Writes what is left, and waits until all is written. @throws what a call threw. */
  async finish(): Promise<void> {
    for (const [key, fields] of this.#gathered) this.#send(key, fields);
    await Promise.all(this.#calls);
    if (this.#failure !== undefined) throw this.#failure;
  }
}
