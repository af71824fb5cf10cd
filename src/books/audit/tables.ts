/**
 * Tables for millions of players and requests. They use typed arrays instead of one object per item, to save
 * memory.
 */
import { createHash } from 'node:crypto';
import { idOf } from './ids.js';

/** Limit of the partial sum. A larger partial sum is moved into a BigInt. */
const SUM_MAX = 4_000_000_000_000_000;

/** Exact sum of safe integers. */
export class Sum {
  #moved = 0n;
  #rest = 0;

  add(value: number): void {
    // A value above the limit is added to the BigInt directly.
    if (value > SUM_MAX || value < -SUM_MAX) {
      this.#moved += BigInt(value);
      return;
    }
    this.#rest += value;
    if (this.#rest > SUM_MAX || this.#rest < -SUM_MAX) {
      this.#moved += BigInt(this.#rest);
      this.#rest = 0;
    }
  }

  addExact(value: bigint): void {
    this.#moved += value;
  }

  get value(): bigint {
    return this.#moved + BigInt(this.#rest);
  }
}

/** Newest entry of each player. Players are numbered by slot. */
export class PlayerTable {
  readonly #slots = new Map<number, Map<string, number>>();
  #lastPartner = -1;
  #lastSlots = new Map<string, number>();
  count = 0;
  /** Upper and lower 32 bits of the id of the player's newest entry, by slot. */
  high = new Uint32Array(1024);
  low = new Uint32Array(1024);
  /** Balance after the player's newest entry, in micro-USD, by slot. */
  balance = new Float64Array(1024);
  entries = new Uint32Array(1024);
  code = new Int32Array(1024);
  /** Time of the player's first entry, in ms since the epoch, by slot. */
  firstMs = new Float64Array(1024);
  /** Whether the audit has seen the player in Redis (1 or 0), by slot. */
  seen = new Uint8Array(1024);

  find(partnerId: number, playerId: string): number | undefined {
    return this.#slots.get(partnerId)?.get(playerId);
  }

  /** Returns the player's slot, or a new slot without entries. */
  slot(partnerId: number, playerId: string): number {
    if (partnerId !== this.#lastPartner) {
      this.#lastPartner = partnerId;
      this.#lastSlots = this.#slots.get(partnerId) ?? new Map();
      this.#slots.set(partnerId, this.#lastSlots);
    }
    let slot = this.#lastSlots.get(playerId);
    if (slot === undefined) {
      slot = this.count++;
      this.#lastSlots.set(playerId, slot);
      if (slot === this.high.length) this.#grow();
    }
    return slot;
  }

  newestId(slot: number): bigint {
    return idOf(this.high[slot]!, this.low[slot]!);
  }

  *names(): Generator<[slot: number, partnerId: number, playerId: string]> {
    for (const [partnerId, slots] of this.#slots) {
      for (const [playerId, slot] of slots) yield [slot, partnerId, playerId];
    }
  }

  #grow(): void {
    const size = this.high.length * 2;
    this.high = into(new Uint32Array(size), this.high);
    this.low = into(new Uint32Array(size), this.low);
    this.balance = into(new Float64Array(size), this.balance);
    this.entries = into(new Uint32Array(size), this.entries);
    this.code = into(new Int32Array(size), this.code);
    this.firstMs = into(new Float64Array(size), this.firstMs);
    this.seen = into(new Uint8Array(size), this.seen);
  }
}

function into<T extends { set(from: T): void }>(larger: T, smaller: T): T {
  larger.set(smaller);
  return larger;
}

/** Word offsets in a record of {@link RequestTable}. */
export const REQUEST = {
  /**
   * First 96 bits of the SHA-256 of "<partnerId>:<requestId>" (for an adjustment "+" instead of ":"), as
   * little-endian words.
   */
  hash: 0,
  /** Id of the entry to which the requestId is bound. */
  idHigh: 3,
  idLow: 4,
  balanceHigh: 5,
  balanceLow: 6,
  /**
   * Fingerprint of the request: 4 bytes for the game and 6 bytes for the player. An adjustment has a
   * different fingerprint of the same length.
   */
  game: 7,
  player: 8,
  /** Word with the outcome code and the last 2 bytes of the request's fingerprint. */
  codeAndPlayer: 9,
} as const;
export const REQUEST_WORDS = 10;
const LOAD_MAX = 0.7;

/** Hash table of the requestIds of one idempotency period, with open addressing. */
export class RequestTable {
  words = new Uint32Array(1024 * REQUEST_WORDS);
  /** Whether the audit has seen the requestId in Redis (1 or 0), by slot. */
  seen = new Uint8Array(1024);
  count = 0;
  #slots = 1024;

  /**
   * Returns the position of the record's first word in {@link words}, or -1 minus the position at which it
   * would be inserted.
   */
  find(a: number, b: number, c: number): number {
    const { words } = this;
    const mask = this.#slots - 1;
    for (let slot = a & mask; ; slot = (slot + 1) & mask) {
      const at = slot * REQUEST_WORDS;
      if (words[at + REQUEST.idHigh] === 0 && words[at + REQUEST.idLow] === 0) return -1 - at;
      if (words[at] === a >>> 0 && words[at + 1] === b >>> 0 && words[at + 2] === c >>> 0) return at;
    }
  }

  /** Writes a request record at a free position returned by {@link find}. */
  insert(place: number, record: Uint32Array): void {
    this.words.set(record, -1 - place);
    if (++this.count > this.#slots * LOAD_MAX) this.#grow();
  }

  /** Overwrites the request record at a position returned by {@link find}. */
  replace(place: number, record: Uint32Array): void {
    this.words.set(record, place);
  }

  *records(): Generator<number> {
    for (let at = 0; at < this.words.length; at += REQUEST_WORDS) {
      if (this.words[at + REQUEST.idHigh] !== 0 || this.words[at + REQUEST.idLow] !== 0) yield at;
    }
  }

  /**
   * Doubles the table and clears {@link seen}. So it must not be called after a record was marked as seen.
   */
  #grow(): void {
    const before = this.words;
    this.#slots *= 2;
    this.words = new Uint32Array(this.#slots * REQUEST_WORDS);
    this.seen = new Uint8Array(this.#slots);
    for (let at = 0; at < before.length; at += REQUEST_WORDS) {
      if (before[at + REQUEST.idHigh] === 0 && before[at + REQUEST.idLow] === 0) continue;
      const place = -1 - this.find(before[at]!, before[at + 1]!, before[at + 2]!);
      this.words.set(before.subarray(at, at + REQUEST_WORDS), place);
    }
  }
}

/**
 * Returns the last 6 bytes of a requestId's fingerprint, a hash of the player's name, as words of 32 and 16
 * bits. The audit implements the hash of src/engine/cells/batch.ts a second time.
 */
export function playerHash(playerId: string): [number, number] {
  let a = 0xdeadbeef;
  let b = 0x41c6ce57;
  for (let i = 0; i < playerId.length; i++) {
    const unit = playerId.charCodeAt(i);
    a = Math.imul(a ^ unit, 0x9e3779b1);
    b = Math.imul(b ^ unit, 0x5f356495);
  }
  a = Math.imul(a ^ (a >>> 16), 0x85ebca6b) ^ Math.imul(b ^ (b >>> 13), 0xc2b2ae35);
  b = Math.imul(b ^ (b >>> 16), 0x85ebca6b) ^ Math.imul(a ^ (a >>> 13), 0xc2b2ae35);
  return [a >>> 0, b & 0xffff];
}

/**
 * Returns the fingerprint of an adjustment's requestId as words of 32, 32 and 16 bits. The audit implements
 * the hash of src/engine/redis/cellRecords.ts a second time.
 */
export function adjustmentHash(playerId: string, amountMicros: number): [number, number, number] {
  const digest = createHash('sha256').update(`${amountMicros}:${playerId}`).digest();
  return [digest.readUInt32LE(0), digest.readUInt32LE(4), digest.readUInt16LE(8)];
}
