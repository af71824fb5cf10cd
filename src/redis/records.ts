/**
 * Readers of the packed records that the scripts keep (lua/include/records.lua), and of the outbox.
 * Money is read as a JS safe integer: the scripts hold balances within ±9e15 micro-USD.
 */

/** What a spin came to, in the order of the codes in lua/spin.lua. */
export const SPIN_STATUS = {
  dealt: 0,
  replay: 1,
  conflict: 2,
  limited: 3,
  denied: 4,
  insufficientBalance: 5,
  fundingUnavailable: 6,
  queueExhausted: 7,
  noBlock: 8,
  counted: 9,
  overflow: 10,
} as const;

export const CORE_BYTES = 18;

/** A signed 64-bit little-endian integer that is known to be within the safe range. */
export function readSafeInt64(buffer: Buffer, offset: number): number {
  return buffer.readInt32LE(offset + 4) * 4_294_967_296 + buffer.readUInt32LE(offset);
}

/** An unsigned 64-bit id as BigInt. */
export const readId = (buffer: Buffer, offset: number): bigint => buffer.readBigUInt64LE(offset);

/** Milliseconds since the epoch at which the entry with this id was made. */
export const entryTimeMs = (id: bigint): number => Number(id >> 22n);

/** The smallest entry id of a moment; ids of that moment and later are not below it. */
export const firstIdAt = (timeMs: number): bigint => BigInt(timeMs) << 22n;

export interface GameRecord {
  /** Index of the next outcome to deal. */
  nextIndex: number;
  /** Index after the last loaded outcome. */
  queueEnd: number;
  blockFrom: number;
  blockEnd: number;
  /** Blocks with at least one outcome left. */
  readyBlocks: number;
}

export function readGame(record: Buffer): GameRecord {
  return {
    nextIndex: record.readUIntLE(0, 6),
    queueEnd: record.readUIntLE(6, 6),
    blockFrom: record.readUIntLE(12, 6),
    blockEnd: record.readUIntLE(18, 6),
    readyBlocks: record.readUInt32LE(24),
  };
}

export interface PlayerRecord {
  balanceMicros: number;
  newestEntryId: bigint;
  /** Ledger entries of the player, the opening included. */
  entries: number;
  createdAtMs: number;
}

export function readPlayer(record: Buffer): PlayerRecord {
  return {
    newestEntryId: readId(record, 0),
    balanceMicros: readSafeInt64(record, 10),
    entries: record.readUInt32LE(18),
    createdAtMs: record.readUIntLE(22, 6),
  };
}

/** One entry of the ledger as the outbox carries it; the byte strings are views into the stream entry. */
export interface OutboxRecord {
  kind: 'spin' | 'opening';
  id: bigint;
  /** When it was made, milliseconds since the epoch; also in the id. */
  timeMs: number;
  partnerId: number;
  playerId: string;
  /** 0 where the entry is not a spin; likewise the next three. */
  gameId: number;
  wagerMicros: number;
  outcomeIndex: number;
  outcomeCode: number;
  /** What the player got: the payout of a spin, the amount of an opening. */
  creditMicros: number;
  balanceMicros: number;
  /** The player's entry before, 0 for the first. */
  previousId: bigint;
  /** 1 for the player's first entry, then 2, 3, … */
  entryNumber: number;
  requestId: string | null;
}

/** Reads all entries of one outbox stream entry, oldest first. */
export function readOutbox(batch: Buffer): OutboxRecord[] {
  const records: OutboxRecord[] = [];
  let at = 0;
  while (at < batch.length) {
    const kind = batch[at];
    if (kind !== 1 && kind !== 2) throw new Error(`Outbox record of unknown kind ${kind} at byte ${at}`);
    const playerLength = batch.readUInt16LE(at + 57);
    const requestLength = batch.readUInt16LE(at + 59);
    const playerAt = at + 61;
    const requestAt = playerAt + playerLength;
    const colon = batch.indexOf(0x3a, playerAt);
    records.push({
      kind: kind === 1 ? 'spin' : 'opening',
      gameId: batch.readUInt32LE(at + 1),
      wagerMicros: readSafeInt64(batch, at + 5),
      outcomeIndex: batch.readUIntLE(at + 13, 6),
      creditMicros: readSafeInt64(batch, at + 19),
      id: readId(batch, at + 27),
      // The upper 41 bits of the id, taken without a BigInt.
      timeMs: batch.readUInt32LE(at + 31) * 1024 + (batch.readUInt32LE(at + 27) >>> 22),
      outcomeCode: batch.readUInt16LE(at + 35),
      balanceMicros: readSafeInt64(batch, at + 37),
      previousId: readId(batch, at + 45),
      entryNumber: batch.readUInt32LE(at + 53),
      partnerId: Number(batch.toString('latin1', playerAt, colon)),
      playerId: batch.toString('utf8', colon + 1, requestAt),
      requestId: requestLength === 0 ? null : batch.toString('utf8', requestAt, requestAt + requestLength),
    });
    at = requestAt + requestLength;
  }
  return records;
}
