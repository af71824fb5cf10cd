/**
 * Encodes and decodes those records in Redis that have defaults or parts of variable length in addition to a
 * fixed layout (domain/layouts.ts). Amounts of money are read as safe integers of JavaScript, since the
 * scripts keep balances within ±9e15 micro-USD.
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

/** Reads the id of a cell's newest ledger entry from the field `last` of its hash. */
export const newestEntryId = (last: Buffer, cell: number): bigint =>
  makeEntryId({ ...MOMENT.read(last), cell });

export const NO_TOTALS: Totals = { entries: 0, bytes: 0 };

export const totalsOfLast = (last: Buffer): Totals => TOTALS.read(last, MOMENT.bytes);

/** Reads the totals that preceded an outbox entry from the fields of that entry. */
export const totalsBefore = ([, , , totals]: readonly Buffer[]): Totals => TOTALS.read(totals!);

/**
 * The field `booked` of a cell's hash: the newest entry that Redis knows to be committed, and the totals up
 * to it.
 */
export interface Booked {
  readonly id: bigint;
  readonly totals: Totals;
}

export const readBooked = (buffer: Buffer): Booked => {
  const { id, ...totals } = BOOKED.read(buffer);
  return { id, totals };
};

export const writeBooked = ({ id, totals }: Booked): Buffer => BOOKED.make({ id, ...totals });

/**
 * Returns the size of the backlog that Redis does not know to be committed, from the fields `last` and
 * `booked` of a cell's hash.
 */
export function waitingTotals(last: Buffer | null, booked: Buffer | null): Totals {
  if (last === null) return NO_TOTALS;
  const all = totalsOfLast(last);
  const done = booked === null ? NO_TOTALS : readBooked(booked).totals;
  return { entries: all.entries - done.entries, bytes: all.bytes - done.bytes };
}

/**
 * Returns the value of the field `epoch` in a cell's hash: the epoch, and the server run for which a worker
 * has verified that the cell has everything the ledger knows. If a server was restarted on an older copy of
 * its data, its token differs. The suffix `segments` names the way in which the cell stores request ids.
 */
export const cellToken = (epoch: string, serverId: string): string => `${epoch}:${serverId}:segments`;

/** Returns the field `last` of a new cell. The cell's next entry must be after the given time. */
export const writeLast = (timeMs: number): Buffer =>
  LAST.make({ timeMs, sequence: SEQUENCE_MAX, ...NO_TOTALS });

export type GameRecord = RecordOf<typeof GAME>;
export const readGame = (record: Buffer): GameRecord => GAME.read(record);

/** True if the length of a game's record is valid. */
export const isGame = ({ length }: Buffer): boolean =>
  length >= GAME.bytes && length <= GAME.bytes + 2 * READ_AHEAD && length % 2 === 0;

/**
 * Returns the outcomes that the script has read ahead from the game's block, packed as in a block. The result
 * is often empty.
 */
export const readAhead = (record: Buffer): Buffer => record.subarray(GAME.bytes);

/**
 * Offset, in a player's record after PLAYER and PLAYER_STATUS, of the shares that the player has not been
 * notified of.
 */
export const PLAYER_SHARES_AT = PLAYER.bytes + PLAYER_STATUS.bytes;

/** True if the length of a player's record is valid. */
export const isPlayer = ({ length }: Buffer): boolean =>
  length === PLAYER.bytes || length >= PLAYER_SHARES_AT;

/** Reads the PLAYER_STATUS that follows PLAYER in a player's record; undefined if there is none. */
const statusOf = (record: Buffer): RecordOf<typeof PLAYER_STATUS> | undefined =>
  record.length > PLAYER.bytes ? PLAYER_STATUS.read(record, PLAYER.bytes) : undefined;
const hasFlag = (record: Buffer, flag: number): boolean => ((statusOf(record)?.flags ?? 0) & flag) !== 0;

const makeStatus = (status: PlayerStatus, change: number, isListed: boolean): Buffer =>
  PLAYER_STATUS.make({
    flags: (status === 'BLOCKED' ? PLAYER_FLAGS.isBlocked : 0) | (isListed ? PLAYER_FLAGS.hasListed : 0),
    change,
  });

/**
 * Returns a player's record with a new status. If the record already has this change of status or a later
 * one, it is returned unchanged.
 */
export function withStatus(
  record: Buffer,
  { status, change }: { readonly status: PlayerStatus; readonly change: number },
): Buffer {
  const known = statusOf(record);
  if (known !== undefined && known.change >= change) return record;
  const tail = makeStatus(status, change, hasListedShares(record));
  return Buffer.concat([record.subarray(0, PLAYER.bytes), tail, record.subarray(PLAYER_SHARES_AT)]);
}

/** True if the player's status has ever been changed. */
export const hasStatus = (record: Buffer): boolean => (statusOf(record)?.change ?? 0) > 0;

/** True if the player has shares in its list that it has not been notified of. */
const hasListedShares = (record: Buffer): boolean => hasFlag(record, PLAYER_FLAGS.hasListed);

export interface PlayerRecord {
  readonly balanceMicros: number;
  readonly newestEntryId: bigint;
  /** Number of the player's ledger entries, including the opening. */
  readonly entries: number;
  readonly createdAtMs: number;
  readonly status: PlayerStatus;
}

export function readPlayer(record: Buffer): PlayerRecord {
  const { id, balanceMicros, entries, createdAtMs } = PLAYER.read(record);
  const status = hasFlag(record, PLAYER_FLAGS.isBlocked) ? 'BLOCKED' : 'ACTIVE';
  return { newestEntryId: id, balanceMicros, entries, createdAtMs, status };
}

/**
 * One ledger entry in the form of the outbox. Game, wager, index and outcome code are 0 if the entry is not a
 * spin.
 */
export interface OutboxRecord extends LedgerEntry {
  /** Time of the entry, in ms since the Unix epoch. The entry's id contains the same time. */
  timeMs: number;
  /** End of the outcomes that a rotation voided, exclusive. Absent for other kinds of entries. */
  voidedTo?: number;
}

export const OUTBOX = { ...ENTRY.at, player: ENTRY.bytes };

/** Returns the time of the entry whose record begins at `at`, in ms since the Unix epoch. */
export const outboxTimeMs = (batch: Buffer, at: number): number =>
  entryTimeMsOfWords(batch.readUInt32LE(at + OUTBOX.id + 4), batch.readUInt32LE(at + OUTBOX.id));

/**
 * Decodes all entries of one outbox stream entry, oldest first. The function serves displays, tests and
 * raffle tickets; the flusher has faster code.
 * @throws RangeError if an entry has an unknown kind
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

export type OpenRound = RecordOf<typeof ROUND>;

/** Decodes an open round; undefined if the length of the record is invalid. */
export const readRound = (record: Buffer): OpenRound | undefined =>
  record.length === ROUND.bytes ? ROUND.read(record) : undefined;

/** Encodes a player's record: PLAYER, and the optional parts after it. */
export function writePlayer(player: {
  entryId: bigint;
  outcomeCode: number;
  balanceMicros: number;
  entryNumber: number;
  firstId: bigint;
  /** Newest status of the player; undefined if it has never been changed. */
  status?: { readonly status: PlayerStatus; readonly change: number } | undefined;
  /** Shares that the player has not been notified of; undefined if there are none. */
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

export const writeBound = (
  id: bigint,
  outcomeCode: number,
  balanceMicros: number,
  fingerprint: Buffer,
): Buffer => BOUND.make({ core: { id, outcomeCode, balanceMicros }, fingerprint });

export const boundEntryId = (bound: Buffer): bigint => BOUND.read(bound).core.id;

/**
 * Encodes a PARTNER record with new rate limit windows.
 * @param netMicros payouts minus wagers, in micro-USD
 */
export function writePartner(netMicros: bigint): Buffer {
  let net = netMicros;
  if (net > NET_MAX_MICROS) net = NET_MAX_MICROS;
  else if (net < -NET_MAX_MICROS) net = -NET_MAX_MICROS;
  return PARTNER.make({ spinMinute: 0, spins: 0, apiMinute: 0, apiRequests: 0, netMicros: net });
}

/**
 * Encodes a GAME record with an empty queue.
 * @param queueEnd first index of the block that is loaded next
 */
export const writeGame = (nextIndex: number, queueEnd: number): Buffer =>
  GAME.make({ nextIndex, queueEnd, blockFrom: queueEnd, blockEnd: queueEnd, readyBlocks: 0 });
