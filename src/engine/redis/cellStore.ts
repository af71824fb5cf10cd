/**
 * Access to the data of one cell in Redis. Any process may read the data; only the cell's owner writes
 * blocks, outbox and epoch. Spins go through scripts.ts instead, and the audit's reads through auditReads.ts.
 */
import type { PotRecord } from '../../domain/communal.js';
import { entryTimeMs, streamIdOf } from '../../domain/entryId.js';
import type { Totals } from '../../domain/layouts.js';
import { REQUEST_KEY_BYTES, requestKey } from '../../domain/requestKey.js';
import {
  type CellHead,
  type CellOwner,
  fenceText,
  isTurnedAway,
  type NewCellHead,
  writeAway,
} from './cellHead.js';
import {
  type Booked,
  boundEntryId,
  cellToken,
  type GameRecord,
  NO_TOTALS,
  newestEntryId,
  type OutboxRecord,
  type PlayerRecord,
  readBooked,
  readGame,
  readOutbox,
  readPlayer,
  totalsBefore,
  totalsOfLast,
  waitingTotals,
  writeBooked,
  writeLast,
} from './cellRecords.js';
import { readPot, writeRecent } from './communalRecords.js';
import {
  blockKey,
  type CellName,
  cellKey,
  cellKeysPattern,
  communalKey,
  gamesKey,
  idempotencyKey,
  outboxKey,
  playerField,
  playersKey,
  recentKey,
  waitingSharesKey,
} from './keys.js';
import type { RedisNode } from './node.js';
import { CLIENT, type RedisClient } from './redisClient.js';
import { NotSentError } from './scriptErrors.js';
import type { Script } from './scriptLoader.js';
import { readSegments, segmentNumbers, writeSegments } from './segmentRecords.js';
import { closedName } from './serverIdentity.js';

export type { CellHead, CellOwner, NewCellHead } from './cellHead.js';

/** Fields of a hash. Each name is followed by its value. */
export type Fields = readonly (string | Buffer)[];

/**
 * Stream entries in the form of the client library. The field b of an entry has its records, and the field t
 * has the totals.
 */
type StreamEntries = [id: Buffer, fields: Buffer[]][];

const SCAN_COUNT = 1000;
/** Number of stream entries that are read at once. */
const BATCHES_AT_ONCE = 500;
/** Prefix of the field that holds the newest stored reply of a front end's slot. */
const OPERATION_PREFIX = 'op:';
/** Offset in a stored reply of the time of its batch: ms since the Unix epoch, in 6 bytes. */
const OPERATION_TIME_AT = 8;

/** A cell with the fence and the epoch under which its owner has claimed it. */
export interface ClaimedCell {
  readonly fence: bigint;
  readonly token: string;
}

export class CellStore {
  readonly #loadBlock: Script;
  readonly #freeBlocks: Script;
  readonly #claimCell: Script;
  readonly #fencedSet: Script;
  readonly #fencedMark: Script;
  readonly #fencedAdd: Script;

  /** @param writtenFormat returns the data format that an owner in this process writes */
  constructor(
    private readonly locate: () => RedisNode,
    readonly cell: number,
    readonly name: CellName,
    private readonly writtenFormat: () => number,
  ) {
    const node = locate();
    this.#loadBlock = node.script('loadBlock');
    // The freeBlocks script may run when Redis is out of memory, because it frees memory.
    this.#freeBlocks = node.script('freeBlocks', 'allow-oom');
    this.#claimCell = node.script('claimCell', 'allow-oom');
    this.#fencedSet = node.script('fencedSet');
    this.#fencedAdd = node.script('fencedAdd');
    // The fencedSet script may run when Redis is out of memory if it writes the few bytes that are needed
    // before memory can be freed.
    this.#fencedMark = node.script('fencedSet', 'allow-oom');
  }

  get node(): RedisNode {
    return this.locate();
  }

  get #redis(): RedisClient {
    return this.node[CLIENT];
  }

  /** Returns a player as of its last spin, or undefined if it has never spun. */
  async findPlayer(partnerId: number, playerId: string): Promise<PlayerRecord | undefined> {
    const record = await this.#redis.hgetBuffer(playersKey(this.name), playerField(partnerId, playerId));
    return record === null ? undefined : readPlayer(record);
  }

  /**
   * Returns the entry that a spin's request id is bound to in the segments that Redis still holds.
   * @returns undefined if Redis does not bind the id, because it was never sent or has been released
   */
  async findBound(partnerId: number, requestId: string): Promise<bigint | undefined> {
    const segments = await this.#redis.hgetBuffer(cellKey(this.name), 'segments');
    if (segments === null) return undefined;
    const key = Buffer.from(requestKey(partnerId, requestId).slice(0, REQUEST_KEY_BYTES), 'latin1');
    const bound = await Promise.all(
      segmentNumbers(readSegments(segments)).map((segment) =>
        this.#redis.hgetBuffer(idempotencyKey(this.name, segment), key),
      ),
    );
    const newest = bound.findLast((each) => each !== null);
    return newest === undefined || newest === null ? undefined : boundEntryId(newest);
  }

  /** Returns the counter and queue of a game, or undefined before the game's first block is loaded. */
  async findGame(gameId: number): Promise<GameRecord | undefined> {
    const record = await this.#redis.hgetBuffer(gamesKey(this.name), String(gameId));
    return record === null ? undefined : readGame(record);
  }

  /**
   * Does the same as {@link findGame} for several games, in the order of the ids.
   * @param gameIds at least one id
   */
  async findGames(gameIds: readonly number[]): Promise<(GameRecord | undefined)[]> {
    const records = await this.#redis.hmgetBuffer(gamesKey(this.name), ...gameIds.map(String));
    return records.map((record) => (record ? readGame(record) : undefined));
  }

  /** Returns the communal progressive of a game, or undefined if it has none. */
  async findPot(gameId: number): Promise<PotRecord | undefined> {
    const record = await this.#redis.hgetBuffer(communalKey(this.name), String(gameId));
    return record === null ? undefined : readPot(record);
  }

  /**
   * True if the cell rejects commands for a partner because of a move.
   * @param knownMove number of the newest move that the caller knows of; 0 if it knows of none
   */
  async isTurnedAway(partnerId: number, knownMove: number): Promise<boolean> {
    const away = await this.#redis.hget(cellKey(this.name), 'away');
    return away !== null && isTurnedAway(away, partnerId, knownMove);
  }

  /**
   * Returns the id of the newest ledger entry in the outbox, committed or not, or 0 if the outbox is empty.
   */
  async newestInOutbox(): Promise<bigint> {
    // The field `last` of the cell can't be used, because after a rebuild it is higher than every existing
    // entry.
    const key = outboxKey(this.name);
    const [newest] = (await this.#redis.xrevrangeBuffer(key, '+', '-', 'COUNT', 1)) as StreamEntries;
    return newest === undefined ? 0n : (readOutbox(newest[1][1]!).at(-1)?.id ?? 0n);
  }

  /** Returns the oldest ledger entries that have not been trimmed from the outbox. */
  async outbox(limit: number): Promise<OutboxRecord[]> {
    const batches = await this.#redis.xrangeBuffer(outboxKey(this.name), '-', '+', 'COUNT', limit);
    return (batches as StreamEntries).flatMap(([, fields]) => readOutbox(fields[1]!)).slice(0, limit);
  }

  /** Reads the entries of the outbox after an id, oldest first. */
  async *outboxAfter(id: bigint): AsyncGenerator<OutboxRecord> {
    for (let after = streamIdOf(id); ; ) {
      const batches = (await this.#redis.xrangeBuffer(
        outboxKey(this.name),
        `(${after}`,
        '+',
        'COUNT',
        BATCHES_AT_ONCE,
      )) as StreamEntries;
      for (const [streamId, fields] of batches) {
        after = streamId.toString();
        yield* readOutbox(fields[1]!);
      }
      if (batches.length < BATCHES_AT_ONCE) return;
    }
  }

  /** Returns the number and size of the entries that Redis does not know to be committed. */
  async outboxTotals(): Promise<Totals> {
    const [last, booked] = await this.#redis.hmgetBuffer(cellKey(this.name), 'last', 'booked');
    return waitingTotals(last ?? null, booked ?? null);
  }

  /** Returns the age of the oldest outbox entry in seconds, or 0 if the outbox is empty. */
  async outboxAgeSeconds(): Promise<number> {
    const [oldest] = await this.#redis.xrange(outboxKey(this.name), '-', '+', 'COUNT', 1);
    return oldest === undefined ? 0 : Math.max(0, Date.now() - Number.parseInt(oldest[0], 10)) / 1000;
  }

  /** Reads {@link CellHead.token}. */
  async token(): Promise<string | undefined> {
    return (await this.#redis.hget(cellKey(this.name), 'epoch')) ?? undefined;
  }

  /**
   * True if the cell can be dealt from under the given epoch.
   * @param epoch dataset and number
   * @throws NotSentError if the node is not connected
   */
  async isOpen(epoch: string): Promise<boolean> {
    const serverId = this.node.knownServerId();
    return (await this.token()) === cellToken(epoch, serverId);
  }

  /**
   * True if the text is the value of the cell's field `epoch` for the given epoch and the current server run.
   */
  isTokenOf(epoch: string, token: string): boolean {
    const { serverId } = this.node;
    return serverId !== undefined && token === cellToken(epoch, serverId);
  }

  async head(): Promise<CellHead> {
    const key = cellKey(this.name);
    const names = ['epoch', 'last', 'booked', 'segments'];
    const [token, last, booked, segments] = await this.#redis.hmgetBuffer(key, ...names);
    return {
      token: token?.toString(),
      newestEntryId: last ? newestEntryId(last, this.cell) : undefined,
      booked: booked ? readBooked(booked) : undefined,
      segments: segments ? readSegments(segments) : undefined,
    };
  }

  /** Returns the fence of the owner that has claimed the cell, or 0 if no owner has. */
  async fence(): Promise<bigint> {
    return BigInt((await this.#redis.hget(cellKey(this.name), 'fence')) ?? 0);
  }

  /** Claims the cell for its owner (lua/claimCell.lua). */
  claim(owner: CellOwner): Promise<void> {
    return this.#claim(owner, 0);
  }

  /** Claims the cell and removes all its data from Redis. */
  async clear(owner: CellOwner): Promise<void> {
    await this.#claim(owner, 1, await this.otherKeys());
  }

  /** Claims the cell and removes the given keys. */
  removeKeys(owner: CellOwner, keys: readonly string[]): Promise<void> {
    return this.#claim(owner, 2, keys);
  }

  /**
   * @param removal ARGV[2] of lua/claimCell.lua: 0 removes nothing, 1 empties the cell, 2 removes the given
   * keys
   */
  async #claim(owner: CellOwner, removal: 0 | 1 | 2, keys: readonly string[] = []): Promise<void> {
    this.assertServer(owner);
    const values = [String(owner.fence), removal, this.writtenFormat()];
    await this.node.run(this.#claimCell, [cellKey(this.name), ...keys], values);
  }

  /**
   * Opens the cell: front ends may deal from it under the given epoch, as long as the server run is the one
   * that the owner has examined.
   * @param epoch dataset and number
   */
  async open(
    owner: CellOwner & { readonly serverId: string },
    epoch: string,
    marks: NewCellHead,
  ): Promise<void> {
    const fields: (string | Buffer)[] = ['away', writeAway(marks.away)];
    if (marks.lastMs !== undefined) fields.push('last', writeLast(marks.lastMs));
    if (marks.booked !== undefined) fields.push('booked', writeBooked(marks.booked));
    if (marks.segments !== undefined) fields.push('segments', writeSegments(marks.segments));
    await this.#mark(owner, [...fields, 'epoch', cellToken(epoch, owner.serverId)]);
  }

  /** Claims the cell and stops dealing from it. All its data is kept. */
  async close(owner: CellOwner, epoch: string): Promise<void> {
    await this.claim(owner);
    // The cell keeps the server run that it names. A later handshake must still be able to find out whether
    // this server may lack entries.
    const [, , serverId = ''] = ((await this.token()) ?? '').split(':');
    await this.#mark(owner, ['epoch', cellToken(epoch, closedName(serverId))]);
  }

  /**
   * Records the committed watermark of the outbox. From this watermark the deal script computes the size of
   * the backlog, and a handshake finds out whether the ledger has lost entries.
   * @throws OutrunError if a later owner has written
   */
  async markBooked(owner: CellOwner, booked: Booked): Promise<void> {
    await this.#mark(owner, ['booked', writeBooked(booked)]);
  }

  /**
   * Returns the totals up to a cursor. They are stored with the first entry after the cursor, or with the
   * newest entry if none follows.
   */
  async totalsAt(cursor: bigint): Promise<Totals> {
    // The field `last` is read first. If an entry is added between the two reads, it is thus found as an
    // entry after the cursor.
    const last = await this.#redis.hgetBuffer(cellKey(this.name), 'last');
    const after = `(${streamIdOf(cursor)}`;
    const [next] = (await this.#redis.xrangeBuffer(
      outboxKey(this.name),
      after,
      '+',
      'COUNT',
      1,
    )) as StreamEntries;
    if (next !== undefined) return totalsBefore(next[1]);
    return last === null ? NO_TOTALS : totalsOfLast(last);
  }

  /**
   * Trims committed entries from the outbox, up to and including the cursor. If a trim fails, the next one
   * removes its entries as well.
   */
  async trimOutbox(cursor: bigint): Promise<void> {
    await this.#redis.call('XTRIM', outboxKey(this.name), 'MINID', streamIdOf(cursor + 1n));
  }

  /** Writes fields of one of the cell's hashes, after the owner has claimed the cell (lua/fencedSet.lua). */
  async fencedSet(owner: CellOwner, key: string, fields: Fields): Promise<void> {
    this.assertServer(owner);
    await this.node.run(this.#fencedSet, [cellKey(this.name), key], [fenceText(owner), ...fields]);
  }

  /**
   * Appends to the list of shares that a player has not been notified of. Makes the same checks and throws
   * the same errors as {@link fencedSet}.
   */
  async listWaitingShares(owner: CellOwner, player: string, shares: readonly Buffer[]): Promise<void> {
    this.assertServer(owner);
    const keys = [cellKey(this.name), waitingSharesKey(this.name, player)];
    await this.node.run(this.#fencedAdd, keys, [fenceText(owner), ...shares]);
  }

  /**
   * Writes the recent players of a game, after the owner has claimed the cell (lua/fencedAdd.lua).
   * @param recent players with the time of their newest spin, most recent first
   */
  async rememberPlayers(
    owner: CellOwner,
    gameId: number,
    partnerId: number,
    recent: readonly { readonly playerId: string; readonly spinId: bigint }[],
  ): Promise<void> {
    if (recent.length === 0) return;
    this.assertServer(owner);
    const players = recent.map(({ playerId, spinId }) => ({
      name: playerField(partnerId, playerId),
      spunMs: entryTimeMs(spinId),
    }));
    const keys = [cellKey(this.name), recentKey(this.name, gameId)];
    await this.node.run(this.#fencedAdd, keys, [fenceText(owner), writeRecent(players)]);
  }

  /**
   * Appends a sealed block to a game's queue (lua/loadBlock.lua). Repeating the call is safe.
   * @param lease the lease under which the caller has claimed the cell; its token is the dataset and number
   * of the epoch
   * @throws EpochError, OutrunError, GapError, RefusedError or NotSentError; nothing was done
   */
  async loadBlock(
    { fence, token: epoch }: ClaimedCell,
    gameId: number,
    fromIndex: number,
    outcomes: Buffer,
  ): Promise<void> {
    await this.node.run(
      this.#loadBlock,
      [cellKey(this.name), gamesKey(this.name), blockKey(this.name, gameId, fromIndex)],
      [cellToken(epoch, this.node.knownServerId()), gameId, fromIndex, outcomes, String(fence)],
    );
  }

  /**
   * Frees the queue of a game, whose blocks can be loaded again later (lua/freeBlocks.lua).
   * @param lease the lease under which the caller has claimed the cell; its token is the dataset and number
   * of the epoch
   * @param fromIndices first index of each loaded block
   * @returns false if the queue's end has changed; nothing was done
   * @throws EpochError, OutrunError, RefusedError or NotSentError; nothing was done
   */
  async freeBlocks(
    { fence, token: epoch }: ClaimedCell,
    gameId: number,
    queueEnd: number,
    fromIndices: readonly number[],
  ): Promise<boolean> {
    const blocks = fromIndices.map((fromIndex) => blockKey(this.name, gameId, fromIndex));
    const freed = await this.node.run(
      this.#freeBlocks,
      [cellKey(this.name), gamesKey(this.name), ...blocks],
      [cellToken(epoch, this.node.knownServerId()), gameId, queueEnd, String(fence)],
    );
    return freed === 1;
  }

  /**
   * Removes blocks of a game whose outcomes have all been committed.
   * @param fromIndices at least one index
   */
  async unlinkBlocks(gameId: number, fromIndices: readonly number[]): Promise<void> {
    await this.#redis.unlink(...fromIndices.map((fromIndex) => blockKey(this.name, gameId, fromIndex)));
  }

  /**
   * Removes the stored replies of front ends that have sent no batch since the given time, in ms since the
   * Unix epoch.
   */
  async forgetOperationsBefore(timeMs: number): Promise<void> {
    const fields = await this.#redis.hgetallBuffer(cellKey(this.name));
    const gone = Object.entries(fields)
      .filter(([name]) => name.startsWith(OPERATION_PREFIX))
      .filter(([, reply]) => reply.readUIntLE(OPERATION_TIME_AT, 6) < timeMs)
      .map(([name]) => name);
    if (gone.length > 0) await this.#redis.hdel(cellKey(this.name), ...gone);
  }

  async #mark(owner: CellOwner, fields: Fields): Promise<void> {
    this.assertServer(owner);
    const key = cellKey(this.name);
    await this.node.run(this.#fencedMark, [key, key], [fenceText(owner), ...fields]);
  }

  /** @throws NotSentError if the connected server run differs from the owner's */
  assertServer({ serverId }: CellOwner): void {
    if (serverId !== undefined && serverId !== this.node.serverId) {
      throw new NotSentError('Redis is not connected or was restarted');
    }
  }

  /** Returns all keys of the cell except {@link cellKey}. */
  async otherKeys(): Promise<string[]> {
    const keys = new Set<string>();
    let cursor = '0';
    do {
      const pattern = cellKeysPattern(this.name);
      const [next, found] = await this.#redis.scan(cursor, 'MATCH', pattern, 'COUNT', SCAN_COUNT);
      for (const key of found) keys.add(key);
      cursor = next;
    } while (cursor !== '0');
    keys.delete(cellKey(this.name));
    return [...keys];
  }
}
