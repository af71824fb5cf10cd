/**
 * Encodes a batch of spins in the format that lua/deal.lua reads (domain/layouts.ts, BATCH to BATCH_REQUEST).
 */
import type { Game, Partner } from '../../domain/game.js';
import { writeSafeInt64 } from '../../domain/layout.js';
import {
  BATCH,
  BATCH_GAME,
  BATCH_KIND,
  BATCH_PARTNER,
  BATCH_SPIN,
  FINGERPRINT_BYTES,
  PARTNER_FLAGS,
  PAYOUT,
} from '../../domain/layouts.js';
import { REQUEST_KEY_BYTES, writeRequestKey } from '../../domain/requestKey.js';
import { playerPrefix } from '../redis/keys.js';
import { DENY } from '../redis/statuses.js';
import { Named, Places } from './named.js';

export const KIND = BATCH_KIND;

/** A request that only counts against one of its partner's rate limit windows. */
export interface CountItem {
  readonly kind: typeof KIND.countSpin | typeof KIND.countApi;
  readonly partner: Partner;
  /** As for {@link SpinItem}. */
  judgeAgain?(): void;
}

/** A spin or raffle ticket, with all data that the batch contains about it. */
export interface SpinItem {
  /** `dealCounted` marks a retry that has already been counted against the rate limit window. */
  readonly kind: typeof KIND.deal | typeof KIND.dealCounted;
  /**
   * Brings partner, game and denial up to date with the catalog, if the catalog has changed. Called each time
   * before the batch is encoded. The partner keeps its id, cell and move.
   */
  judgeAgain?(): void;
  /**
   * True if the spin may only be answered by a replay of an earlier spin with the same requestId. The
   * function is called each time that the batch is encoded.
   */
  readonly isDenied: boolean;
  /**
   * True if the wager is not the raffle's wager, so that no ticket may be dealt. The error for a sold-out
   * raffle takes precedence.
   */
  readonly hasOtherWager?: boolean;
  /** True if the ledger must be asked whether a requestId is bound when Redis does not bind it. */
  readonly mayBeBound: boolean;
  readonly partner: Partner;
  readonly game: Game | undefined;
  /** Game id as the client sent it. It is part of the request fingerprint even if no such game exists. */
  readonly gameId: number;
  readonly playerId: string;
  readonly requestId: string | undefined;
  /**
   * True if the game belongs to the partner and the wager is the game's wager. Otherwise the request can't be
   * a repetition of an earlier one.
   */
  readonly mayEqual: boolean;
  /** Version of the request-id filters for which a look-up in the ledger did not find the requestId. */
  readonly clearedAt?: number | undefined;
}

export type BatchItem = SpinItem | CountItem;

export const isSpinItem = (item: BatchItem): item is SpinItem =>
  item.kind === KIND.deal || item.kind === KIND.dealCounted;

/** Filters for the request ids that Redis has already released to Postgres (requestIds/requestIds.ts). */
export interface RequestIdFilters {
  versionOf(cell: number): number;
  mayHave(partner: Pick<Partner, 'partnerId' | 'cell' | 'formerCells'>, hash: Buffer, at: number): boolean;
}

const PARTNER = BATCH_PARTNER.at;
const GAME = BATCH_GAME.at;
const SPIN = BATCH_SPIN.at;
const ID_TEXT_BYTES_MAX = 10;
const SPIN_BYTES = BATCH_SPIN.bytes;
/**
 * Maximum size of a player's field name in UTF-8, in bytes: 128 characters, and the partner's number with a
 * colon.
 */
const PLAYER_BYTES_MAX = 128 * 4 + 11;
const REQUEST_BYTES_MAX = 128 * 4;
const SPIN_BYTES_MAX = SPIN_BYTES + PLAYER_BYTES_MAX + REQUEST_BYTES_MAX;

/** One partner of a batch, with the positions of its players and request ids in the batch. */
interface PartnerPlaces {
  readonly place: number;
  readonly prefix: string;
  readonly players: Places;
  readonly requests: Places;
}

interface GamePlace {
  readonly place: number;
  readonly game: Game;
  spins: number;
}

export class BatchEncoder {
  #buffer = Buffer.allocUnsafe(65_536);
  readonly #players = new Named();
  readonly #requests = new Named();
  // The maps are keyed by id. Two versions of a changed game or partner may meet in one batch, and the script
  // must see only one of them.
  //
  // Each batch gets new maps. A cleared map links its old table to the new one, and an old table that has
  // survived two minor garbage collections keeps all later tables alive until a full collection.
  #partnerPlaces = new Map<number, PartnerPlaces>();
  #gamePlaces = new Map<number, GamePlace>();
  /** Offset of each payout table in the batch. Games with the same PAR sheet share one table. */
  #tablesAt = new Map<Buffer, number>();
  readonly #requestIds: RequestIdFilters | undefined;
  /** By item of the last encoded batch: the position of the item's partner in the batch and in the reply. */
  #placesOfPartners = new Uint16Array(64);
  /** By item of the batch: the reason why nothing may be dealt for the item (DENY). */
  #denials = new Uint8Array(64);
  /** By position of a requestId in the batch: 1 if the ledger may have this requestId. */
  #mayBeInRuns = new Uint8Array(64);

  /** @param requestIds filters of the released request ids; undefined if Redis holds all request ids */
  constructor(requestIds?: RequestIdFilters) {
    this.#requestIds = requestIds;
  }

  /** Returns the position of an item's partner in the batch that was encoded last, and in its reply. */
  partnerPlace(item: number): number {
    return this.#placesOfPartners[item]!;
  }

  /**
   * The result is a view of a shared buffer, valid until the next call. The partners of the batch are
   * appended to the array `partners`, in the order of the reply.
   */
  encode(items: readonly BatchItem[], partners: Partner[]): Buffer {
    const players = this.#players;
    const requests = this.#requests;
    players.begin(items.length, 2 + PLAYER_BYTES_MAX);
    requests.begin(items.length, REQUEST_KEY_BYTES);
    if (this.#mayBeInRuns.length <= items.length) this.#mayBeInRuns = new Uint8Array(2 * items.length);
    if (this.#placesOfPartners.length < items.length) {
      this.#placesOfPartners = new Uint16Array(2 * items.length);
      this.#denials = new Uint8Array(2 * items.length);
    }
    const tableBytes = this.#place(items, partners);
    const headBytesMax =
      BATCH.bytes +
      partners.length * (BATCH_PARTNER.bytes + ID_TEXT_BYTES_MAX) +
      this.#gamePlaces.size * (BATCH_GAME.bytes + ID_TEXT_BYTES_MAX) +
      tableBytes;
    const bytesMax =
      headBytesMax + items.length * SPIN_BYTES_MAX + players.buffer.length + requests.buffer.length;
    if (this.#buffer.length < bytesMax) this.#buffer = Buffer.allocUnsafe(bytesMax * 2);
    const buffer = this.#buffer;
    const gamesAt = writePartners(buffer, partners);
    const spinsAt = this.#writeGames(buffer, gamesAt, tableBytes);
    let at = spinsAt;
    for (let i = 0; i < items.length; i++) at = this.#spin(items[i]!, this.#denials[i]!, buffer, at);
    if (at > spinsAt + items.length * SPIN_BYTES_MAX) throw new RangeError('A spin exceeds SPIN_BYTES_MAX');
    BATCH.write(buffer, 0, {
      partners: partners.length,
      games: this.#gamePlaces.size,
      players: players.count,
      requestIds: requests.count,
      spins: items.length,
      tableBytes,
      listsAt: at,
      spinsAt,
    });
    for (const { buffer: list, length } of [players, requests]) {
      list.copy(buffer, at, 0, length);
      at += length;
    }
    return buffer.subarray(0, at);
  }

  /** @returns size of the payout tables in bytes */
  #place(items: readonly BatchItem[], partners: Partner[]): number {
    const partnerPlaces = new Map<number, PartnerPlaces>();
    const gamePlaces = new Map<number, GamePlace>();
    const tablesAt = new Map<Buffer, number>();
    this.#partnerPlaces = partnerPlaces;
    this.#gamePlaces = gamePlaces;
    this.#tablesAt = tablesAt;
    let tableBytes = 0;
    for (let i = 0; i < items.length; i++) {
      const item = items[i]!;
      item.judgeAgain?.();
      const { partner } = item;
      let places = partnerPlaces.get(partner.partnerId);
      if (places === undefined) {
        places = {
          place: partners.length,
          prefix: playerPrefix(partner.partnerId),
          players: new Places(),
          requests: new Places(),
        };
        partnerPlaces.set(partner.partnerId, places);
        partners.push(partner);
      } else if (movesOf(partner) < movesOf(partners[places.place]!)) {
        // Keep the older version of the partner. The request that brought it read the catalog before the
        // partner's last move, so it has not checked the filters of every cell that the partner has been in.
        // With the older version, the cell rejects the request.
        partners[places.place] = partner;
      }
      this.#placesOfPartners[i] = places.place;
      if (!isSpinItem(item)) {
        this.#denials[i] = DENY.not;
        continue;
      }
      const { game } = item;
      const deny = denyOf(item);
      this.#denials[i] = deny;
      if (!isOfGame(deny) || game === undefined) continue;
      const known = gamePlaces.get(game.gameId);
      if (known === undefined) {
        gamePlaces.set(game.gameId, { place: gamePlaces.size + 1, game, spins: 1 });
        if (!tablesAt.has(game.payoutTable)) {
          tablesAt.set(game.payoutTable, tableBytes);
          tableBytes += game.payoutTable.length;
        }
      } else {
        known.spins++;
      }
    }
    return tableBytes;
  }

  /** @returns offset of the end */
  #writeGames(buffer: Buffer, tablesFrom: number, tableBytes: number): number {
    let at = tablesFrom + tableBytes;
    for (const [table, offset] of this.#tablesAt) table.copy(buffer, tablesFrom + offset);
    for (const { game, spins } of this.#gamePlaces.values()) {
      writeUInt32(buffer, game.gameId, at + GAME.gameId);
      writeSafeInt64(buffer, at + GAME.wagerMicros, game.wagerMicros);
      writeSafeInt64(buffer, at + GAME.maxPayoutMicros, game.maxPayoutMicros);
      writeUInt32(buffer, tablesFrom + this.#tablesAt.get(game.payoutTable)!, at + GAME.payoutsAt);
      writeUInt16(buffer, game.payoutTable.length / PAYOUT.bytes, at + GAME.payoutCount);
      writeUInt32(buffer, game.poolSize, at + GAME.poolSize);
      writeUInt16(buffer, spins, at + GAME.spins);
      at = writeIdText(buffer, game.gameId, at + GAME.digitsOfId);
    }
    return at;
  }

  /** @returns offset of the end */
  #spin(item: BatchItem, deny: number, buffer: Buffer, at: number): number {
    const places = this.#partnerPlaces.get(item.partner.partnerId)!;
    buffer[at + SPIN.kind] = item.kind;
    buffer[at + SPIN.deny] = deny;
    writeUInt16(buffer, places.place + 1, at + SPIN.partner);
    if (!isSpinItem(item)) {
      buffer.fill(0, at + SPIN.game, at + SPIN_BYTES);
      return at + SPIN_BYTES;
    }
    const playerAt = at + SPIN_BYTES;
    let textAt = playerAt + writeText(buffer, places.prefix, playerAt);
    textAt += writeText(buffer, item.playerId, textAt);
    const playerBytes = textAt - playerAt;
    let gamePlace = 0;
    let playerPlace = 0;
    const { requestId } = item;
    const requestPlace = requestId === undefined ? 0 : this.#request(item, places, requestId);
    if (this.#mayBeInRuns[requestPlace] === 1 && !this.#isCleared(item))
      buffer[at + SPIN.deny] = DENY.mayBeBound;
    if (isOfGame(buffer[at + SPIN.deny]!)) {
      gamePlace = this.#gamePlaces.get(item.gameId)!.place;
      playerPlace = places.players.get(item.playerId) ?? 0;
      if (playerPlace === 0) {
        const players = this.#players;
        playerPlace = ++players.count;
        places.players.set(item.playerId, playerPlace);
        writeUInt16(players.buffer, playerBytes, players.length);
        const copyAt = players.length + 2 - playerAt;
        // The player's name is copied byte by byte, because Buffer.copy would first create a view of the
        // range.
        for (let byte = playerAt; byte < textAt; byte++) players.buffer[copyAt + byte] = buffer[byte]!;
        players.length += 2 + playerBytes;
      }
    }
    writeUInt16(buffer, gamePlace, at + SPIN.game);
    writeUInt16(buffer, playerPlace, at + SPIN.player);
    writeUInt16(buffer, playerBytes, at + SPIN.playerLength);
    if (requestId === undefined) {
      buffer.fill(0, at + SPIN.requestId, at + SPIN.playerLength);
      writeUInt16(buffer, 0, at + SPIN.requestLength);
      return textAt;
    }
    writeUInt16(buffer, requestPlace, at + SPIN.requestId);
    const fingerprintAt = at + SPIN.fingerprint;
    if (item.mayEqual) writeFingerprint(buffer, fingerprintAt, item.gameId, item.playerId);
    else buffer.fill(0xff, fingerprintAt, fingerprintAt + FINGERPRINT_BYTES);
    const requestBytes = writeText(buffer, requestId, textAt);
    writeUInt16(buffer, requestBytes, at + SPIN.requestLength);
    return textAt + requestBytes;
  }

  /**
   * Adds the requestId of an item to the batch once, and checks against the filters whether the ledger may
   * have it.
   */
  #request({ partner }: SpinItem, places: PartnerPlaces, requestId: string): number {
    const known = places.requests.get(requestId);
    if (known !== undefined) return known;
    const requests = this.#requests;
    const place = ++requests.count;
    places.requests.set(requestId, place);
    writeRequestKey(requests.buffer, requests.length, partner.partnerId, requestId);
    const mayHave = this.#requestIds?.mayHave(partner, requests.buffer, requests.length);
    this.#mayBeInRuns[place] = mayHave === true ? 1 : 0;
    requests.length += REQUEST_KEY_BYTES;
    return place;
  }

  #isCleared({ clearedAt, partner }: SpinItem): boolean {
    return clearedAt !== undefined && clearedAt === this.#requestIds?.versionOf(partner.cell);
  }
}

const movesOf = ({ newestMove = 0 }: Partner): number => newestMove;

/** @returns offset of the end */
function writePartners(buffer: Buffer, partners: readonly Partner[]): number {
  let at = BATCH.bytes;
  for (const partner of partners) {
    writeUInt32(buffer, partner.spinRateLimit, at + PARTNER.spinLimit);
    writeUInt32(buffer, partner.apiRateLimit, at + PARTNER.apiLimit);
    writeSafeInt64(buffer, at + PARTNER.openingMicros, partner.openingBalanceMicros);
    writeSafeInt64(buffer, at + PARTNER.fundingMicros, partner.fundingMicros ?? -1);
    buffer[at + PARTNER.flags] =
      (partner.balanceMode === 'enforce' ? PARTNER_FLAGS.enforcesBalance : 0) |
      (partner.environment === 'sandbox' ? PARTNER_FLAGS.isSandbox : 0);
    writeUInt32(buffer, movesOf(partner), at + PARTNER.newestMove);
    at = writeIdText(buffer, partner.partnerId, at + PARTNER.digitsOfId);
  }
  return at;
}

/**
 * Writes an id as decimal digits, preceded by the number of digits. The script would take four times as long
 * to format the number itself.
 * @returns offset of the end
 */
function writeIdText(buffer: Buffer, id: number, at: number): number {
  const length = writeText(buffer, String(id), at + 1);
  buffer[at] = length;
  return at + 1 + length;
}

function denyOf({ isDenied, mayBeBound, hasOtherWager }: SpinItem): number {
  if (mayBeBound) return DENY.mayBeBound;
  if (isDenied) return DENY.refused;
  return hasOtherWager ? DENY.otherWager : DENY.not;
}

/** True if the script reads the game's record for a spin with this denial code. */
const isOfGame = (deny: number): boolean => deny === DENY.not || deny === DENY.otherWager;

/**
 * Writes the fingerprint that a requestId is bound to: the game (4 bytes) and a hash of the player (6 bytes).
 *
 * The wager is not part of the fingerprint, because a request whose wager differs from the game's wager gets
 * a fingerprint that never matches. The hash is not cryptographic. If a partner finds two of its own players
 * with the same hash, it can only make a request of one player return the response to the other player.
 */
export function writeFingerprint(buffer: Buffer, at: number, gameId: number, playerId: string): void {
  buffer.writeUInt32LE(gameId >>> 0, at);
  const text = playerId;
  let a = 0xdeadbeef;
  let b = 0x41c6ce57;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    a = Math.imul(a ^ unit, 0x9e3779b1);
    b = Math.imul(b ^ unit, 0x5f356495);
  }
  a = Math.imul(a ^ (a >>> 16), 0x85ebca6b) ^ Math.imul(b ^ (b >>> 13), 0xc2b2ae35);
  b = Math.imul(b ^ (b >>> 16), 0x85ebca6b) ^ Math.imul(a ^ (a >>> 13), 0xc2b2ae35);
  buffer.writeUInt32LE(a >>> 0, at + 4);
  writeUInt16(buffer, b & 0xffff, at + 8);
}

/**
 * Writes a text as UTF-8 and returns its size in bytes. Short ASCII texts, the usual case, are written
 * without a native call.
 */
export function writeText(buffer: Buffer, text: string, at: number): number {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit > 0x7f) return buffer.write(text, at);
    buffer[at + i] = unit;
  }
  return text.length;
}

function writeUInt32(buffer: Buffer, value: number, at: number): void {
  buffer[at] = value & 0xff;
  buffer[at + 1] = (value >>> 8) & 0xff;
  buffer[at + 2] = (value >>> 16) & 0xff;
  buffer[at + 3] = value >>> 24;
}

function writeUInt16(buffer: Buffer, value: number, at: number): void {
  buffer[at] = value & 0xff;
  buffer[at + 1] = value >>> 8;
}
