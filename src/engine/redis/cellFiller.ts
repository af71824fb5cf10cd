/**
 * Fills a cell that its owner has claimed and cleared with the data that a rebuild reads from the ledger.
 * Each call writes many fields.
 */
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
  readonly #gathered = new Map<string, (string | Buffer)[]>();
  readonly #calls = new Set<Promise<void>>();
  #failure: unknown;

  constructor(
    private readonly store: CellStore,
    private readonly owner: CellOwner,
  ) {}

  /**
   * Adds a partner with new rate limit windows.
   * @param netMicros payouts minus wagers, in micro-USD
   */
  partner(partnerId: number, netMicros: bigint): void {
    this.#set(partnersKey(this.store.name), String(partnerId), writePartner(netMicros));
  }

  /** Adds a partner that moves to this cell, with the partner's record from its old cell. */
  copiedPartner(partnerId: number, record: Buffer): void {
    this.#set(partnersKey(this.store.name), String(partnerId), record);
  }

  /**
   * Adds a game with an empty queue.
   * @param queueEnd first index of the block that is loaded next
   */
  game(gameId: number, nextIndex: number, queueEnd: number): void {
    this.#set(gamesKey(this.store.name), String(gameId), writeGame(nextIndex, queueEnd));
  }

  pot(pot: PotRecord & { readonly gameId: number }): void {
    const record = Buffer.concat([writeState(pot), writeRules(pot.partnerId, pot.rules)]);
    this.#set(communalKey(this.store.name), String(pot.gameId), record);
  }

  /**
   * Adds a player with the state after its newest ledger entry.
   * @param untold shares that the player has not been notified of, oldest first
   * @param isAgain true if the cell may still have an earlier list of the player's shares
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
    this.#set(playersKey(this.store.name), field, writePlayer(record));
    if (isAgain) this.#call(unlistWaitingShares(this.store, this.owner, field));
    // Redis executes the calls in order, so the list keeps the order of the shares.
    for (let from = 0; from < listed.length; from += FIELDS_A_CALL)
      this.#call(this.store.listWaitingShares(this.owner, field, listed.slice(from, from + FIELDS_A_CALL)));
  }

  /** Adds a player whose record is already encoded. */
  playerRecord(field: string, record: Buffer): void {
    this.#set(playersKey(this.store.name), field, record);
  }

  round(gameId: number, partnerId: number, playerId: string, round: OpenRound): void {
    this.#set(roundsKey(this.store.name), playerAtGame(gameId, partnerId, playerId), ROUND.make(round));
  }

  /**
   * @param key hash of the requestId
   * @param bound record in the format of `writeBound`
   */
  request(segment: number, key: Buffer, bound: Buffer): void {
    this.#set(idempotencyKey(this.store.name, segment), key, bound);
  }

  #set(key: string, field: string | Buffer, value: Buffer): void {
    const fields = this.#gathered.get(key) ?? [];
    if (fields.length === 0) this.#gathered.set(key, fields);
    fields.push(field, value);
    if (fields.length >= FIELDS_A_CALL * 2) this.#send(key, fields);
  }

  #send(key: string, fields: (string | Buffer)[]): void {
    this.#gathered.delete(key);
    this.#call(this.store.fencedSet(this.owner, key, fields));
  }

  #call(sent: Promise<void>): void {
    const call = sent
      .catch((error: unknown) => {
        this.#failure ??= error;
      })
      .finally(() => this.#calls.delete(call));
    this.#calls.add(call);
  }

  /** True if too many calls are under way. The caller should call {@link pause} before it adds more data. */
  get isBusy(): boolean {
    return this.#calls.size >= CALLS_MAX;
  }

  /** Waits while too many calls are under way. */
  async pause(): Promise<void> {
    while (this.isBusy && this.#failure === undefined) await Promise.race(this.#calls);
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Writes the remaining fields and waits until all calls have completed. */
  async finish(): Promise<void> {
    for (const [key, fields] of this.#gathered) this.#send(key, fields);
    await Promise.all(this.#calls);
    if (this.#failure !== undefined) throw this.#failure;
  }
}
