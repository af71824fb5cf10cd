/**
 * Writes a batch of spins as lua/spin.lua reads it, and reads the reply. The layout is that script's header;
 * little endian throughout.
 */
import { hash } from 'node:crypto';
import type { Game, Partner } from '../domain/game.js';
import { playerPrefix } from '../redis/keys.js';
import { CORE_BYTES } from '../redis/records.js';

/** `dealCounted`: a deal that has counted against its window before. */
export const KIND = { deal: 1, countSpin: 2, countApi: 3, dealCounted: 4 } as const;

/** What the codec needs to know of a waiting request. */
export interface BatchItem {
  readonly kind: number;
  /** Not 0: refuse, unless the requestId is bound to the same request. */
  readonly deny: number;
  readonly partner: Partner;
  readonly game: Game | undefined;
  /** As sent; the id of an unknown game takes part in the fingerprint too. */
  readonly gameId: number;
  readonly playerId: string;
  readonly requestId: string | undefined;
  /** The game is the partner's and the wager is its: only then can the request equal one that was dealt before. */
  readonly mayEqual: boolean;
  /** Set by the encoder: place of the partner in the batch and in the reply. */
  partnerPlace: number;
}

const HEADER_BYTES = 10;
const PARTNER_BYTES = 29;
const GAME_BYTES = 30;
const SPIN_BYTES = 36;
/** UTF-8 bytes of 128 characters, and of a partner's number with its colon. */
const TEXT_BYTES_MAX = 128 * 4 * 2 + 11;

export class BatchEncoder {
  #buffer = Buffer.allocUnsafe(65_536);
  // By id, not by object: two versions of a changed game or partner may meet in one batch, and the script must see one.
  readonly #partnerPlaces = new Map<number, number>();
  readonly #gamePlaces = new Map<number, number>();

  /** The batch's bytes: a view that holds until the next call. `partners` gets the partners in the reply's order. */
  encode(items: readonly BatchItem[], partners: Partner[]): Buffer {
    const partnerPlaces = this.#partnerPlaces;
    const gamePlaces = this.#gamePlaces;
    partnerPlaces.clear();
    gamePlaces.clear();
    const games: Game[] = [];
    let tableBytes = 0;
    for (const item of items) {
      const { partner, game } = item;
      let place = partnerPlaces.get(partner.partnerId);
      if (place === undefined) {
        place = partners.length;
        partnerPlaces.set(partner.partnerId, place);
        partners.push(partner);
      }
      item.partnerPlace = place;
      if (isDeal(item) && game !== undefined && !gamePlaces.has(game.gameId)) {
        gamePlaces.set(game.gameId, games.length);
        games.push(game);
        tableBytes += game.payoutTable.length;
      }
    }
    const bytesMax =
      HEADER_BYTES +
      partners.length * PARTNER_BYTES +
      games.length * GAME_BYTES +
      tableBytes +
      items.length * (SPIN_BYTES + TEXT_BYTES_MAX);
    if (this.#buffer.length < bytesMax) this.#buffer = Buffer.allocUnsafe(bytesMax * 2);
    const buffer = this.#buffer;

    let at = HEADER_BYTES;
    for (const partner of partners) {
      buffer.writeUInt32LE(partner.partnerId, at);
      buffer.writeUInt32LE(partner.spinRateLimit, at + 4);
      buffer.writeUInt32LE(partner.apiRateLimit, at + 8);
      writeSafeInt64(buffer, partner.openingBalanceMicros, at + 12);
      writeSafeInt64(buffer, partner.fundingMicros ?? -1, at + 20);
      buffer[at + 28] = partner.balanceMode === 'enforce' ? 1 : 0;
      at += PARTNER_BYTES;
    }
    let tableAt = at + games.length * GAME_BYTES;
    for (const game of games) {
      buffer.writeUInt32LE(game.gameId, at);
      writeSafeInt64(buffer, game.wagerMicros, at + 4);
      writeSafeInt64(buffer, game.maxPayoutMicros, at + 12);
      buffer.writeUInt32LE(tableAt, at + 20);
      buffer.writeUInt16LE(game.payoutTable.length / 8, at + 24);
      buffer.writeUInt32LE(game.poolSize, at + 26);
      game.payoutTable.copy(buffer, tableAt);
      tableAt += game.payoutTable.length;
      at += GAME_BYTES;
    }
    at = tableAt;
    buffer.writeUInt16LE(partners.length, 0);
    buffer.writeUInt16LE(games.length, 2);
    buffer.writeUInt16LE(items.length, 4);
    buffer.writeUInt32LE(at, 6);
    for (const item of items) {
      const partnerId = item.partner.partnerId;
      buffer[at] = item.kind;
      buffer[at + 1] = item.deny;
      writeUInt16(buffer, item.partnerPlace, at + 2);
      writeUInt16(buffer, isDeal(item) ? gamePlaces.get(item.gameId)! : 0, at + 4);
      let textAt = at + SPIN_BYTES;
      if (isDealKind(item)) {
        textAt += writeText(buffer, playerPrefix(partnerId), textAt);
        textAt += writeText(buffer, item.playerId, textAt);
        writeUInt16(buffer, textAt - at - SPIN_BYTES, at + 32);
        if (item.requestId !== undefined) {
          writeRequestKey(buffer, at + 6, partnerId, item.requestId);
          if (item.mayEqual) writeFingerprint(buffer, at + 22, item.gameId, item.playerId);
          else buffer.fill(0xff, at + 22, at + 22 + FINGERPRINT_BYTES);
          const requestBytes = writeText(buffer, item.requestId, textAt);
          textAt += requestBytes;
          writeUInt16(buffer, requestBytes, at + 34);
        } else {
          buffer.fill(0, at + 6, at + 32);
          writeUInt16(buffer, 0, at + 34);
        }
      } else {
        buffer.fill(0, at + 6, at + SPIN_BYTES);
      }
      at = textAt;
    }
    return buffer.subarray(0, at);
  }
}

const isDealKind = ({ kind }: BatchItem): boolean => kind === KIND.deal || kind === KIND.dealCounted;
const isDeal = (item: BatchItem): boolean => isDealKind(item) && item.deny === 0;

/** How Redis names a partner's requestId: the first 16 bytes of a SHA-256. */
export const REQUEST_KEY_BYTES = 16;
export function writeRequestKey(buffer: Buffer, at: number, partnerId: number, requestId: string): void {
  const key = hash('sha256', `${partnerId}:${requestId}`, 'binary');
  for (let i = 0; i < REQUEST_KEY_BYTES; i++) buffer[at + i] = key.charCodeAt(i);
}

/**
 * What a requestId is bound to: the game (4 bytes) and a hash of the player (6 bytes). The wager needs no place in it:
 * one that is not the game's marks the fingerprint as like no other. The hash is not cryptographic: a partner that
 * searched for two of its own players that collide would only get its own answer again.
 */
export const FINGERPRINT_BYTES = 10;
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

/** Reads the reply of lua/spin.lua: a head, and a status with a CORE for each spin. */
export class BatchReply {
  readonly buffer: Buffer;
  readonly #itemsAt: number;

  constructor(buffer: Buffer, partnerCount: number, itemCount: number) {
    this.buffer = buffer;
    this.#itemsAt = 6 + partnerCount * 8;
    const expected = this.#itemsAt + itemCount * (1 + CORE_BYTES);
    if (buffer.length !== expected) {
      throw new Error(`The spin script answered with ${buffer.length} bytes, ${expected} were expected`);
    }
  }

  /** The store's clock at the batch, milliseconds since the epoch. */
  get timeMs(): number {
    return this.buffer.readUIntLE(0, 6);
  }

  /** Spin requests of the partner in this window before the batch. */
  spinsUsed(place: number): number {
    return this.buffer.readUInt32LE(6 + place * 8);
  }

  /** API requests of the partner in this window before the batch. */
  apiUsed(place: number): number {
    return this.buffer.readUInt32LE(10 + place * 8);
  }

  status(place: number): number {
    return this.buffer[this.#itemsAt + place * (1 + CORE_BYTES)]!;
  }

  /** Where the CORE of a spin begins in {@link buffer}. */
  coreAt(place: number): number {
    return this.#itemsAt + place * (1 + CORE_BYTES) + 1;
  }
}

/** @param value a safe integer, negative ones too */
function writeSafeInt64(buffer: Buffer, value: number, at: number): void {
  const high = Math.floor(value / 4_294_967_296);
  buffer.writeUInt32LE(value - high * 4_294_967_296, at);
  buffer.writeInt32LE(high, at + 4);
}

/** Writes a text as UTF-8 and gives its bytes; short ASCII, the rule here, is written without a call out of JavaScript. */
function writeText(buffer: Buffer, text: string, at: number): number {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit > 0x7f) return buffer.write(text, at);
    buffer[at + i] = unit;
  }
  return text.length;
}

function writeUInt16(buffer: Buffer, value: number, at: number): void {
  buffer[at] = value & 0xff;
  buffer[at + 1] = value >>> 8;
}
