/** What the audit remembers of millions of players and requests: columns of numbers, no object each. */
import { createHash } from 'node:crypto';
import type { Facts } from './auditReads.store.js';

/** Safe integers are added up to here before the sum moves into a BigInt. */
const SUM_MAX = 4_000_000_000_000_000;

/** An exact sum of safe integers. */
export class Sum {
  #moved = 0n;
  #rest = 0;

  add(value: number): void {
    // One that leaves no room beside it.
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

/** The newest entry of each player, by slot. */
export class PlayerTable {
  readonly #slots = new Map<number, Map<string, number>>();
  #lastPartner = -1;
  #lastSlots = new Map<string, number>();
  count = 0;
  /** Upper and lower half of the newest entry's id. */
  high = new Uint32Array(1024);
  low = new Uint32Array(1024);
  /** Micro-USD after it. */
  balance = new Float64Array(1024);
  entries = new Uint32Array(1024);
  code = new Int32Array(1024);
  /** When the first entry was made, ms since the epoch. */
  firstMs = new Float64Array(1024);
  /** 1: Redis has the player. */
  seen = new Uint8Array(1024);

  find(partnerId: number, playerId: string): number | undefined {
    return this.#slots.get(partnerId)?.get(playerId);
  }

  /** The player's slot; a new one (with no entries) where there was none. */
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
    return (BigInt(this.high[slot]!) << 32n) | BigInt(this.low[slot]!);
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

/** Words of a record of {@link RequestTable}. */
export const REQUEST = {
  /** The first 96 bits of the SHA-256 of "<partnerId>:<requestId>" (an adjustment: "+"), as little-endian words. */
  hash: 0,
  /** The entry that it stands for. */
  idHigh: 3,
  idLow: 4,
  balanceHigh: 5,
  balanceLow: 6,
  /** The fingerprint: 4 bytes game, 6 bytes player; of an adjustment the same bytes of its own. */
  game: 7,
  player: 8,
  /** Outcome code, and the last 2 bytes of the fingerprint. */
  codeAndPlayer: 9,
} as const;
export const REQUEST_WORDS = 10;
const LOAD_MAX = 0.7;

/** The requestIds of one idempotency period: open addressing, by their hash. */
export class RequestTable {
  words = new Uint32Array(1024 * REQUEST_WORDS);
  /** 1: Redis has it. */
  seen = new Uint8Array(1024);
  count = 0;
  #slots = 1024;

  /** The record with this hash, as its first word in {@link words}; or -1 − the place for it. */
  find(a: number, b: number, c: number): number {
    const { words } = this;
    const mask = this.#slots - 1;
    for (let slot = a & mask; ; slot = (slot + 1) & mask) {
      const at = slot * REQUEST_WORDS;
      if (words[at + REQUEST.idHigh] === 0 && words[at + REQUEST.idLow] === 0) return -1 - at;
      if (words[at] === a >>> 0 && words[at + 1] === b >>> 0 && words[at + 2] === c >>> 0) return at;
    }
  }

  /** Writes a record where {@link find} found none. */
  insert(place: number, record: Uint32Array): void {
    this.words.set(record, -1 - place);
    if (++this.count > this.#slots * LOAD_MAX) this.#grow();
  }

  /** Writes a record over the one that {@link find} found. */
  replace(place: number, record: Uint32Array): void {
    this.words.set(record, place);
  }

  *records(): Generator<number> {
    for (let at = 0; at < this.words.length; at += REQUEST_WORDS) {
      if (this.words[at + REQUEST.idHigh] !== 0 || this.words[at + REQUEST.idLow] !== 0) yield at;
    }
  }

  /** The records are moved, and {@link seen} begins anew: only while no record is marked. */
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

/** The id whose halves these are. */
export const idOf = (high: number, low: number): bigint => (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);

/**
 * Milliseconds since the epoch of the entry with this id. The layout that src/domain/entryId.ts has, written down a second
 * time: an audit that reads ids by the service's own code could not tell that it is wrong.
 */
export const auditedTimeMs = (high: number, low: number): number => high * 1024 + ((low >>> 0) >>> 22);

/**
 * The last 6 bytes of a requestId's fingerprint as two words of 32 and 16 bits: a hash of the player's name. What
 * src/engine/cells/batch.ts writes, written down a second time.
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
 * The fingerprint of an adjustment's requestId as words of 32, 32 and 16 bits. What src/engine/redis/cellRecords.ts writes, written
 * down a second time.
 */
export function adjustmentHash(playerId: string, amountMicros: number): [number, number, number] {
  const digest = createHash('sha256').update(`${amountMicros}:${playerId}`).digest();
  return [digest.readUInt32LE(0), digest.readUInt32LE(4), digest.readUInt16LE(8)];
}

/** The cell that a partner lived in when it had an entry. @param high, low the words of the entry's id */
export function cellOfPartnerAt(
  { formerCells, partnerCells }: Pick<Facts, 'formerCells' | 'partnerCells'>,
  partnerId: number,
  high: number,
  low: number,
): number | undefined {
  const former = formerCells.get(partnerId);
  const left = former?.find(({ untilId }) => idOf(high, low) <= untilId);
  return left?.cell ?? partnerCells.get(partnerId);
}
