/**
 * Readers of the packed records that the scripts keep (lua/include/records.lua), and of the outbox.
 * Money is read as a JS safe integer: the scripts hold balances within ±9e15 micro-USD.
 */
import { entryTimeMs, entryTimeMsOfWords, makeEntryId, SEQUENCE_MAX } from '../domain/entryId.js';
import { type EntryKind, entryOfCode } from '../domain/ledgerEntry.js';
import type { PlayerStatus } from '../domain/playerStatus.js';

export const CORE_BYTES = 18;

/** A signed 64-bit little-endian integer that is known to be within the safe range. */
export function readSafeInt64(buffer: Buffer, offset: number): number {
  return buffer.readInt32LE(offset + 4) * 4_294_967_296 + buffer.readUInt32LE(offset);
}

/** The tail of a forced spin (lua/include/forcedRecords.lua). What tells of a communal progressive is longer. */
export const FORCED_TAIL = Buffer.of(1);
export const isForcedTail = (tail: Buffer): boolean => tail.equals(FORCED_TAIL);

/** An unsigned 64-bit id as BigInt. */
export const readId = (buffer: Buffer, offset: number): bigint => buffer.readBigUInt64LE(offset);

/** The id of a cell's newest ledger entry, from the field `last` of its hash. */
export const newestEntryId = (last: Buffer, cell: number): bigint =>
  makeEntryId({ timeMs: last.readUIntLE(0, 6), cell, sequence: last.readUInt16LE(6) });

/** Ledger entries, and their bytes in the outbox, summed since the cell's epoch began. */
export interface Totals {
  readonly entries: number;
  readonly bytes: number;
}
export const NO_TOTALS: Totals = { entries: 0, bytes: 0 };
const TOTALS_BYTES = 12;

export const readTotals = (buffer: Buffer, offset = 0): Totals => ({
  entries: buffer.readUIntLE(offset, 6),
  bytes: buffer.readUIntLE(offset + 6, 6),
});

const LAST_BYTES_1_0 = 8;
/** TOTALS of the field `last`. Version 1.0.0 wrote none: what it dealt is not counted. */
export const totalsOfLast = (last: Buffer): Totals =>
  last.length === LAST_BYTES_1_0 ? NO_TOTALS : readTotals(last, LAST_BYTES_1_0);

/** TOTALS before an outbox entry, from its fields; undefined: version 1.0.0 wrote it, and it is not counted. */
export const totalsBefore = ([, , , totals]: readonly Buffer[]): Totals | undefined =>
  totals === undefined ? undefined : readTotals(totals);

/** The field `booked` of a cell's hash. */
export interface Booked {
  /** The newest entry that is known to be in the ledger. */
  readonly id: bigint;
  /** Up to that entry. */
  readonly totals: Totals;
}

export const readBooked = (buffer: Buffer): Booked => ({
  id: readId(buffer, 0),
  totals: readTotals(buffer, 8),
});

/** What is not known to be in the ledger, by the fields `last` and `booked` of a cell's hash. */
export function waitingTotals(last: Buffer | null, booked: Buffer | null): Totals {
  if (last === null) return NO_TOTALS;
  const all = totalsOfLast(last);
  const done = booked === null ? NO_TOTALS : readBooked(booked).totals;
  return { entries: all.entries - done.entries, bytes: all.bytes - done.bytes };
}

export function writeBooked({ id, totals }: Booked): Buffer {
  const buffer = Buffer.alloc(8 + TOTALS_BYTES);
  buffer.writeBigUInt64LE(id, 0);
  buffer.writeUIntLE(totals.entries, 8, 6);
  buffer.writeUIntLE(totals.bytes, 14, 6);
  return buffer;
}

/**
 * The field `epoch` of a cell's hash: the epoch, and the run of the server for which a worker has found that the cell
 * holds what the ledger knows. A server that was started again on an older copy can't have it. `segments`: a front end of version
 * 1.3.0, which looks for request ids elsewhere, is refused.
 */
export const cellToken = (epoch: string, serverId: string): string => `${epoch}:${serverId}:segments`;

/** The field `last` of a cell that begins: its next entry comes after this moment. */
export function writeLast(timeMs: number): Buffer {
  const buffer = Buffer.alloc(8 + TOTALS_BYTES);
  buffer.writeUIntLE(timeMs, 0, 6);
  buffer.writeUInt16LE(SEQUENCE_MAX, 6);
  return buffer;
}

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

const GAME_BYTES = 28;
const READ_AHEAD_BYTES_MAX = 32;

/** The record of a game has a length that it can have. */
export const isGame = ({ length }: Buffer): boolean =>
  length >= GAME_BYTES && length <= GAME_BYTES + READ_AHEAD_BYTES_MAX && length % 2 === 0;

/** Outcomes from the next index on that the script has read ahead, packed as in a block; often none. */
export const readAhead = (record: Buffer): Buffer => record.subarray(GAME_BYTES);

export function readGame(record: Buffer): GameRecord {
  return {
    nextIndex: record.readUIntLE(0, 6),
    queueEnd: record.readUIntLE(6, 6),
    blockFrom: record.readUIntLE(12, 6),
    blockEnd: record.readUIntLE(18, 6),
    readyBlocks: record.readUInt32LE(24),
  };
}

export const PLAYER_BYTES = 28;
/** Bytes of the status behind PLAYER. */
const PLAYER_STATUS_BYTES = 5;
/** Where shares that are still to be told are behind PLAYER. */
export const PLAYER_SHARES_AT = PLAYER_BYTES + PLAYER_STATUS_BYTES;
/** The flags behind PLAYER. */
export const PLAYER_FLAGS: Readonly<Record<PlayerStatus, number>> = { ACTIVE: 0, BLOCKED: 1 };
/** Beside them: more shares are in the player's list. */
export const HAS_LISTED = 2;

/** The record of a player has a length that it can have. */
export const isPlayer = ({ length }: Buffer): boolean =>
  length === PLAYER_BYTES || length >= PLAYER_SHARES_AT;

/** The player's status was changed once. */
export const hasStatus = (record: Buffer): boolean =>
  record.length > PLAYER_BYTES && record.readUInt32LE(PLAYER_BYTES + 1) > 0;

/** The player has shares in its list that it is still to be told of. */
export const hasListedShares = (record: Buffer): boolean =>
  record.length > PLAYER_BYTES && (record[PLAYER_BYTES]! & HAS_LISTED) !== 0;

export interface PlayerRecord {
  balanceMicros: number;
  newestEntryId: bigint;
  /** Ledger entries of the player, the opening included. */
  entries: number;
  createdAtMs: number;
  status: PlayerStatus;
}

export function readPlayer(record: Buffer): PlayerRecord {
  return {
    newestEntryId: readId(record, 0),
    balanceMicros: readSafeInt64(record, 10),
    entries: record.readUInt32LE(18),
    createdAtMs: record.readUIntLE(22, 6),
    status:
      record.length > PLAYER_BYTES && (record[PLAYER_BYTES]! & PLAYER_FLAGS.BLOCKED) !== 0
        ? 'BLOCKED'
        : 'ACTIVE',
  };
}

/** One entry of the ledger as the outbox carries it; the byte strings are views into the stream entry. */
export interface OutboxRecord {
  kind: EntryKind;
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
  /** What the player got: the payout of a spin, the amount of an opening or (of either sign) of an adjustment. */
  creditMicros: number;
  balanceMicros: number;
  /** The player's entry before, 0 for the first. */
  previousId: bigint;
  /** 1 for the player's opening, then 2, 3, … for its spins; an adjustment has that of the entry before it. */
  entryNumber: number;
  requestId: string | null;
}

/** Where the members of an outbox record are, from its first byte; little endian. lua/deal.lua and adjust.lua write it. */
export const OUTBOX = {
  /** u8: the code of an EntryDefinition (domain/ledgerEntry.ts) */
  kind: 0,
  /** u32 */
  gameId: 1,
  /** i64 */
  wager: 5,
  /** u48 */
  outcomeIndex: 13,
  /** i64 */
  credit: 19,
  /** u64, as low u32 and high u32 */
  id: 27,
  /** u16 */
  outcomeCode: 35,
  /** i64 */
  balance: 37,
  /** u64 */
  previousId: 45,
  /** u32 */
  entryNumber: 53,
  /** u16: bytes of `<partner id>:<playerId>` */
  playerLength: 57,
  /** u16: bytes of the requestId, which follows the player */
  requestLength: 59,
  player: 61,
} as const;

/** When the entry of the record at `at` was made, milliseconds since the epoch. */
export const outboxTimeMs = (batch: Buffer, at: number): number =>
  entryTimeMsOfWords(batch.readUInt32LE(at + OUTBOX.id + 4), batch.readUInt32LE(at + OUTBOX.id));

/**
 * Reads all entries of one outbox stream entry, oldest first: for people, tests and tickets; for rows the flusher has its
 * own way.
 * @throws RangeError where one is of an unknown kind.
 */
export function readOutbox(batch: Buffer): OutboxRecord[] {
  const records: OutboxRecord[] = [];
  let at = 0;
  while (at < batch.length) {
    const { kind, requestIds } = entryOfCode(batch[at + OUTBOX.kind]!);
    const playerAt = at + OUTBOX.player;
    const requestAt = playerAt + batch.readUInt16LE(at + OUTBOX.playerLength);
    const end = requestAt + batch.readUInt16LE(at + OUTBOX.requestLength);
    const colon = batch.indexOf(0x3a, playerAt);
    records.push({
      kind,
      gameId: batch.readUInt32LE(at + OUTBOX.gameId),
      wagerMicros: readSafeInt64(batch, at + OUTBOX.wager),
      outcomeIndex: batch.readUIntLE(at + OUTBOX.outcomeIndex, 6),
      creditMicros: readSafeInt64(batch, at + OUTBOX.credit),
      id: readId(batch, at + OUTBOX.id),
      timeMs: outboxTimeMs(batch, at),
      outcomeCode: batch.readUInt16LE(at + OUTBOX.outcomeCode),
      balanceMicros: readSafeInt64(batch, at + OUTBOX.balance),
      previousId: readId(batch, at + OUTBOX.previousId),
      entryNumber: batch.readUInt32LE(at + OUTBOX.entryNumber),
      partnerId: Number(batch.toString('latin1', playerAt, colon)),
      playerId: batch.toString('utf8', colon + 1, requestAt),
      requestId:
        requestIds === undefined || requestAt === end ? null : batch.toString('utf8', requestAt, end),
    });
    at = end;
  }
  return records;
}

// Adjustments ------------------------------------------------------------------------------------------------------

/** Bytes of REFUSED, which stands in the place of BOUND for an adjustment that was refused. */
export const REFUSED_BYTES = 7;

// Rounds ------------------------------------------------------------------------------------------------------------

/** ROUND (lua/include/roundRecords.lua): an open round. */
export interface OpenRound {
  readonly shoeIndex: number;
  /** Of the deal's entry. */
  readonly dealId: bigint;
  /** Steps after the deal. */
  readonly steps: number;
}

const ROUND_BYTES = 16;

/** Undefined where the record has another length than it can have. */
export function readRound(record: Buffer): OpenRound | undefined {
  if (record.length !== ROUND_BYTES) return undefined;
  return { shoeIndex: record.readUIntLE(0, 6), dealId: readId(record, 6), steps: record.readUInt16LE(14) };
}

export function writeRound({ shoeIndex, dealId, steps }: OpenRound): Buffer {
  const buffer = Buffer.alloc(ROUND_BYTES);
  buffer.writeUIntLE(shoeIndex, 0, 6);
  buffer.writeBigUInt64LE(dealId, 6);
  buffer.writeUInt16LE(steps, 14);
  return buffer;
}

// Writers, for a rebuild ---------------------------------------------------------------------------------------------

function writeCore(buffer: Buffer, at: number, id: bigint, outcomeCode: number, balanceMicros: number): void {
  buffer.writeBigUInt64LE(id, at);
  buffer.writeUInt16LE(outcomeCode, at + 8);
  buffer.writeBigInt64LE(BigInt(balanceMicros), at + 10);
}

/** PLAYER. */
export function writePlayer(player: {
  entryId: bigint;
  outcomeCode: number;
  balanceMicros: number;
  entryNumber: number;
  firstId: bigint;
  /** Undefined: it was never changed. */
  status?: { readonly status: PlayerStatus; readonly change: number } | undefined;
  /** Shares that the player is still to be told of; undefined: none. */
  untold?: { readonly shares: Buffer; readonly hasListed: boolean } | undefined;
}): Buffer {
  const { status, untold } = player;
  const hasTail = status !== undefined || untold !== undefined;
  const buffer = Buffer.alloc(
    PLAYER_BYTES + (hasTail ? PLAYER_STATUS_BYTES : 0) + (untold?.shares.length ?? 0),
  );
  writeCore(buffer, 0, player.entryId, player.outcomeCode, player.balanceMicros);
  buffer.writeUInt32LE(player.entryNumber, 18);
  buffer.writeUIntLE(entryTimeMs(player.firstId), 22, 6);
  if (status !== undefined) {
    buffer[PLAYER_BYTES] = PLAYER_FLAGS[status.status];
    buffer.writeUInt32LE(status.change, PLAYER_BYTES + 1);
  }
  if (untold !== undefined) {
    if (untold.hasListed) buffer[PLAYER_BYTES]! += HAS_LISTED;
    untold.shares.copy(buffer, PLAYER_SHARES_AT);
  }
  return buffer;
}

/** BOUND. */
export function writeBound(
  id: bigint,
  outcomeCode: number,
  balanceMicros: number,
  fingerprint: Buffer,
): Buffer {
  const buffer = Buffer.alloc(CORE_BYTES + fingerprint.length);
  writeCore(buffer, 0, id, outcomeCode, balanceMicros);
  fingerprint.copy(buffer, CORE_BYTES);
  return buffer;
}

/**
 * The largest net of a partner, of either sign, micro-USD: what a signed 64-bit integer holds with room for a batch.
 * Beyond it the net stays there. It is compared with the funding alone, which is at most MAX_MICROS: a spin that brings
 * the net near this from below is refused long before, and one far below zero leaves all of the funding.
 */
const NET_MAX_MICROS = 9_000_000_000_000_000_000n;

/** PARTNER whose windows begin anew. @param netMicros payouts − wagers */
export function writePartner(netMicros: bigint): Buffer {
  const buffer = Buffer.alloc(24);
  let net = netMicros;
  if (net > NET_MAX_MICROS) net = NET_MAX_MICROS;
  else if (net < -NET_MAX_MICROS) net = -NET_MAX_MICROS;
  buffer.writeBigInt64LE(net, 16);
  return buffer;
}

/**
 * GAME that goes on at an index, with an empty queue.
 * @param queueEnd where the block that is loaded next begins
 */
export function writeGame(nextIndex: number, queueEnd: number): Buffer {
  const buffer = Buffer.alloc(28);
  buffer.writeUIntLE(nextIndex, 0, 6);
  for (const at of [6, 12, 18]) buffer.writeUIntLE(queueEnd, at, 6);
  return buffer;
}
