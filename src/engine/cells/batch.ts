/** Writes a batch of spins as lua/deal.lua reads it (domain/layouts.ts, BATCH to BATCH_REQUEST). */
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

/** A request that counts against a window of its partner, and does nothing else. */
export interface CountItem {
  readonly kind: typeof KIND.countSpin | typeof KIND.countApi;
  readonly partner: Partner;
}

/** A spin or ticket, as the batch has it. */
export interface SpinItem {
  /** `dealCounted`: it has counted against its window before. */
  readonly kind: typeof KIND.deal | typeof KIND.dealCounted;
  /** Nothing may be dealt for it, unless the requestId is bound. Asked once each time that a batch is written. */
  readonly isDenied: boolean;
  /** The wager is not that of the raffle: nothing may be dealt, and that the raffle is sold out comes first. */
  readonly hasOtherWager?: boolean;
  /** Only the ledger can tell whether the requestId is bound, where Redis does not bind it. */
  readonly mayBeBound: boolean;
  readonly partner: Partner;
  readonly game: Game | undefined;
  /** As sent; the id of an unknown game takes part in the fingerprint too. */
  readonly gameId: number;
  readonly playerId: string;
  readonly requestId: string | undefined;
  /** The game is the partner's and the wager is its: only then can the request equal one that was dealt before. */
  readonly mayEqual: boolean;
  /** The ledger was asked, and has not the requestId, as of this version of the filters. */
  readonly clearedAt?: number | undefined;
}

export type BatchItem = SpinItem | CountItem;

export const isSpinItem = (item: BatchItem): item is SpinItem =>
  item.kind === KIND.deal || item.kind === KIND.dealCounted;

/** What is known of the request ids that Redis holds no more (requestIds/requestIds.ts). */
export interface RequestIdFilters {
  versionOf(cell: number): number;
  mayHave(partner: Pick<Partner, 'partnerId' | 'cell' | 'formerCells'>, hash: Buffer, at: number): boolean;
}

const PARTNER = BATCH_PARTNER.at;
const GAME = BATCH_GAME.at;
const SPIN = BATCH_SPIN.at;
/** Digits of an id, u32. */
const ID_TEXT_BYTES_MAX = 10;
const SPIN_BYTES = BATCH_SPIN.bytes;
/** UTF-8 bytes of 128 characters, and of a partner's number with its colon. */
const PLAYER_BYTES_MAX = 128 * 4 + 11;
const REQUEST_BYTES_MAX = 128 * 4;

/** A partner in the batch, and the places of what is its own. */
interface PartnerPlaces {
  readonly place: number;
  readonly prefix: string;
  readonly players: Places;
  readonly requests: Places;
}

/** A game in the batch: its place, and its spins that may be dealt. */
interface GamePlace {
  readonly place: number;
  readonly game: Game;
  spins: number;
}

export class BatchEncoder {
  #buffer = Buffer.allocUnsafe(65_536);
  readonly #players = new Named();
  readonly #requests = new Named();
  // By id, not by object: two versions of a changed game or partner may meet in one batch, and the script must see one. Each batch has maps
  // of its own: one that is cleared links its old table to the new one, and an old table that has outlived two collections of young objects
  // keeps all that come after it, with what they hold, until a full one.
  #partnerPlaces = new Map<number, PartnerPlaces>();
  #gamePlaces = new Map<number, GamePlace>();
  /** Where the payouts of a sheet are: its games share them. */
  #tablesAt = new Map<Buffer, number>();
  readonly #requestIds: RequestIdFilters | undefined;
  /** Places of the partners of the items that were encoded last, in the batch and in the reply. */
  #placesOfPartners = new Uint16Array(64);
  /** Why nothing may be dealt for an item, by its place (DENY). */
  #denials = new Uint8Array(64);
  /** By the place of a requestId: 1, the ledger may have it. */
  #mayBeInRuns = new Uint8Array(64);

  /** @param requestIds absent: Redis holds all request ids that there are */
  constructor(requestIds?: RequestIdFilters) {
    this.#requestIds = requestIds;
  }

  /** The place of an item's partner in the batch that was encoded last, and in its reply. */
  partnerPlace(item: number): number {
    return this.#placesOfPartners[item]!;
  }

  /** The batch's bytes: a view that holds until the next call. `partners` gets the partners in the reply's order. */
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
      headBytesMax +
      items.length * (SPIN_BYTES + PLAYER_BYTES_MAX + REQUEST_BYTES_MAX) +
      players.buffer.length +
      requests.buffer.length;
    if (this.#buffer.length < bytesMax) this.#buffer = Buffer.allocUnsafe(bytesMax * 2);
    const buffer = this.#buffer;
    const gamesAt = writePartners(buffer, partners);
    const spinsAt = this.#writeGames(buffer, gamesAt, tableBytes);
    let at = spinsAt;
    for (let i = 0; i < items.length; i++) at = this.#spin(items[i]!, this.#denials[i]!, buffer, at);
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

  /** Gives partners, games and payout tables their places. @returns bytes of the tables */
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
        // The cell must turn away who knows least: its filters were asked of fewer cells.
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

  /** Writes payout tables and games. @returns where they end */
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

  /** Writes a spin, its player and its requestId. @returns where it ends. */
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
        // Byte by byte: a copy of a part of a buffer makes a view of it first.
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

  /** Names the requestId of an item once, and asks whether the ledger may have it. @returns its place */
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

/** @returns where they end */
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

/** Writes an id in digits, after their number: Redis takes four times as long to make text of a number. @returns where it ends */
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

/** The script looks at the game's record for it. */
const isOfGame = (deny: number): boolean => deny === DENY.not || deny === DENY.otherWager;

/**
 * What a requestId is bound to: the game (4 bytes) and a hash of the player (6 bytes). The wager needs no place in it:
 * one that is not the game's marks the fingerprint as like no other. The hash is not cryptographic: a partner that
 * searched for two of its own players that collide would only get its own answer again.
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

/** Writes a text as UTF-8 and gives its bytes; short ASCII, the rule here, is written without a call out of JavaScript. */
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
