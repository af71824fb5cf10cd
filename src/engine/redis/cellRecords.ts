/**
 * Readers and writers of what Redis keeps that have more to them than a layout (domain/layouts.ts): defaults, parts of
 * changing length. Money is read as a JS safe integer: the scripts hold balances within ±9e15 micro-USD.
 */
import { entryTimeMs, entryTimeMsOfWords, makeEntryId, SEQUENCE_MAX } from '../../domain/entryId.js';
import type { RecordOf } from '../../domain/layout.js';
import {
  BOOKED,
  BOUND,
  ENTRY,
  GAME,
  LAST,
  MOMENT,
  NET_MAX_MICROS,
  PARTNER,
  PLAYER,
  PLAYER_FLAGS,
  PLAYER_STATUS,
  READ_AHEAD,
  ROTATION,
  ROUND,
  TOTALS,
  type Totals,
} from '../../domain/layouts.js';
import type { LedgerEntry } from '../../domain/ledgerColumns.js';
import { entryOfCode } from '../../domain/ledgerEntry.js';
import type { PlayerStatus } from '../../domain/playerStatus.js';

/** The id of a cell's newest ledger entry, from the field `last` of its hash. */
export const newestEntryId = (last: Buffer, cell: number): bigint =>
  makeEntryId({ ...MOMENT.read(last), cell });

export const NO_TOTALS: Totals = { entries: 0, bytes: 0 };

/** TOTALS of the field `last`. */
export const totalsOfLast = (last: Buffer): Totals => TOTALS.read(last, MOMENT.bytes);

/** TOTALS before an outbox entry, from its fields. */
export const totalsBefore = ([, , , totals]: readonly Buffer[]): Totals => TOTALS.read(totals!);

/** The field `booked` of a cell's hash: the newest entry that is known to be in the ledger, and the totals up to it. */
export interface Booked {
  readonly id: bigint;
  readonly totals: Totals;
}

export const readBooked = (buffer: Buffer): Booked => {
  const { id, ...totals } = BOOKED.read(buffer);
  return { id, totals };
};

export const writeBooked = ({ id, totals }: Booked): Buffer => BOOKED.make({ id, ...totals });

/** What is not known to be in the ledger, by the fields `last` and `booked` of a cell's hash. */
export function waitingTotals(last: Buffer | null, booked: Buffer | null): Totals {
  if (last === null) return NO_TOTALS;
  const all = totalsOfLast(last);
  const done = booked === null ? NO_TOTALS : readBooked(booked).totals;
  return { entries: all.entries - done.entries, bytes: all.bytes - done.bytes };
}

/**
 * The field `epoch` of a cell's hash: the epoch, and the run of the server for which a worker has found that the cell
 * holds what the ledger knows. A server that was started again on an older copy can't have it. `segments` names how the cell keeps its
 * request ids.
 */
export const cellToken = (epoch: string, serverId: string): string => `${epoch}:${serverId}:segments`;

/** The field `last` of a cell that begins: its next entry comes after this moment. */
export const writeLast = (timeMs: number): Buffer =>
  LAST.make({ timeMs, sequence: SEQUENCE_MAX, ...NO_TOTALS });

export type GameRecord = RecordOf<typeof GAME>;
export const readGame = (record: Buffer): GameRecord => GAME.read(record);

/** The record of a game has a length that it can have. */
export const isGame = ({ length }: Buffer): boolean =>
  length >= GAME.bytes && length <= GAME.bytes + 2 * READ_AHEAD && length % 2 === 0;

/** Outcomes from the next index on that the script has read ahead, packed as in a block; often none. */
export const readAhead = (record: Buffer): Buffer => record.subarray(GAME.bytes);

/** Where shares that wait for a player are behind PLAYER. */
export const PLAYER_SHARES_AT = PLAYER.bytes + PLAYER_STATUS.bytes;

/** The record of a player has a length that it can have. */
export const isPlayer = ({ length }: Buffer): boolean =>
  length === PLAYER.bytes || length >= PLAYER_SHARES_AT;

/** What is behind PLAYER; undefined: nothing. */
const statusOf = (record: Buffer): RecordOf<typeof PLAYER_STATUS> | undefined =>
  record.length > PLAYER.bytes ? PLAYER_STATUS.read(record, PLAYER.bytes) : undefined;
const hasFlag = (record: Buffer, flag: number): boolean => ((statusOf(record)?.flags ?? 0) & flag) !== 0;

/** PLAYER_STATUS. */
const makeStatus = (status: PlayerStatus, change: number, isListed: boolean): Buffer =>
  PLAYER_STATUS.make({
    flags: (status === 'BLOCKED' ? PLAYER_FLAGS.isBlocked : 0) | (isListed ? PLAYER_FLAGS.hasListed : 0),
    change,
  });

/** The record of a player with its newest status; the same record where it has a status of that change or a later one. */
export function withStatus(
  record: Buffer,
  { status, change }: { readonly status: PlayerStatus; readonly change: number },
): Buffer {
  const known = statusOf(record);
  if (known !== undefined && known.change >= change) return record;
  const tail = makeStatus(status, change, hasListedShares(record));
  return Buffer.concat([record.subarray(0, PLAYER.bytes), tail, record.subarray(PLAYER_SHARES_AT)]);
}

/** The player's status was changed once. */
export const hasStatus = (record: Buffer): boolean => (statusOf(record)?.change ?? 0) > 0;

/** The player has shares that wait in its list. */
const hasListedShares = (record: Buffer): boolean => hasFlag(record, PLAYER_FLAGS.hasListed);

export interface PlayerRecord {
  readonly balanceMicros: number;
  readonly newestEntryId: bigint;
  /** Ledger entries of the player, the opening included. */
  readonly entries: number;
  readonly createdAtMs: number;
  readonly status: PlayerStatus;
}

export function readPlayer(record: Buffer): PlayerRecord {
  const { id, balanceMicros, entries, createdAtMs } = PLAYER.read(record);
  const status = hasFlag(record, PLAYER_FLAGS.isBlocked) ? 'BLOCKED' : 'ACTIVE';
  return { newestEntryId: id, balanceMicros, entries, createdAtMs, status };
}

/** One entry of the ledger as the outbox carries it. Game, wager, index and code are 0 where it is not a spin. */
export interface OutboxRecord extends LedgerEntry {
  /** When it was made, milliseconds since the epoch; also in the id. */
  timeMs: number;
  /** Of a rotation: the index up to which outcomes are voided, exclusive. */
  voidedTo?: number;
}

/** Where the members of an outbox record are, from its first byte. */
export const OUTBOX = { ...ENTRY.at, player: ENTRY.bytes };

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
    const { kind: code, playerLength, requestLength, ...values } = ENTRY.read(batch, at);
    const { kind, requestIds } = entryOfCode(code);
    const playerAt = at + OUTBOX.player;
    const requestAt = playerAt + playerLength;
    const end = requestAt + requestLength;
    const colon = batch.indexOf(0x3a, playerAt);
    records.push({
      ...values,
      kind,
      timeMs: entryTimeMs(values.id),
      partnerId: Number(batch.toString('latin1', playerAt, colon)),
      playerId: batch.toString('utf8', colon + 1, requestAt),
      requestId:
        requestIds === undefined || requestAt === end ? null : batch.toString('utf8', requestAt, end),
      ...(kind === 'rotation' && { voidedTo: ROTATION.read(batch, requestAt).toIndex }),
    });
    at = end;
  }
  return records;
}

// Rounds ------------------------------------------------------------------------------------------------------------

export type OpenRound = RecordOf<typeof ROUND>;

/** Undefined where the record has another length than it can have. */
export const readRound = (record: Buffer): OpenRound | undefined =>
  record.length === ROUND.bytes ? ROUND.read(record) : undefined;

// Writers, for a rebuild ---------------------------------------------------------------------------------------------

/** PLAYER. */
export function writePlayer(player: {
  entryId: bigint;
  outcomeCode: number;
  balanceMicros: number;
  entryNumber: number;
  firstId: bigint;
  /** Undefined: it was never changed. */
  status?: { readonly status: PlayerStatus; readonly change: number } | undefined;
  /** Shares that wait for the player; undefined: none. */
  untold?: { readonly shares: Buffer; readonly hasListed: boolean } | undefined;
}): Buffer {
  const { status, untold } = player;
  const hasTail = status !== undefined || untold !== undefined;
  const buffer = Buffer.alloc((hasTail ? PLAYER_SHARES_AT : PLAYER.bytes) + (untold?.shares.length ?? 0));
  PLAYER.write(buffer, 0, {
    id: player.entryId,
    outcomeCode: player.outcomeCode,
    balanceMicros: player.balanceMicros,
    entries: player.entryNumber,
    createdAtMs: entryTimeMs(player.firstId),
  });
  if (!hasTail) return buffer;
  const { status: name, change } = status ?? { status: 'ACTIVE', change: 0 };
  makeStatus(name, change, untold?.hasListed === true).copy(buffer, PLAYER.bytes);
  untold?.shares.copy(buffer, PLAYER_SHARES_AT);
  return buffer;
}

/** BOUND. */
export const writeBound = (
  id: bigint,
  outcomeCode: number,
  balanceMicros: number,
  fingerprint: Buffer,
): Buffer => BOUND.make({ core: { id, outcomeCode, balanceMicros }, fingerprint });

/** PARTNER whose windows begin anew. @param netMicros payouts − wagers */
export function writePartner(netMicros: bigint): Buffer {
  let net = netMicros;
  if (net > NET_MAX_MICROS) net = NET_MAX_MICROS;
  else if (net < -NET_MAX_MICROS) net = -NET_MAX_MICROS;
  return PARTNER.make({ spinMinute: 0, spins: 0, apiMinute: 0, apiRequests: 0, netMicros: net });
}

/**
 * GAME that goes on at an index, with an empty queue.
 * @param queueEnd where the block that is loaded next begins
 */
export const writeGame = (nextIndex: number, queueEnd: number): Buffer =>
  GAME.make({ nextIndex, queueEnd, blockFrom: queueEnd, blockEnd: queueEnd, readyBlocks: 0 });
