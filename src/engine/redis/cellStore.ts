/**
 * What Redis holds of one cell: looked up by anybody, written by the cell's owner (blocks, outbox, epoch). Players spin
 * through scripts.ts, the audit reads through auditReads.ts.
 */
import type { PotRecord } from '../../domain/communal.js';
import { entryTimeMs, streamIdOf } from '../../domain/entryId.js';
import type { Totals } from '../../domain/layouts.js';
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
import { readSegments, writeSegments } from './segmentRecords.js';
import { closedName } from './serverIdentity.js';

export type { CellHead, CellOwner, NewCellHead } from './cellHead.js';

/** Fields of a hash, names and values by turns. */
export type Fields = readonly (string | Buffer)[];

/** Entries of a stream as the client library gives them: each entry has the fields b, its records, and t, its totals. */
type StreamEntries = [id: Buffer, fields: Buffer[]][];

const SCAN_COUNT = 1000;
/** What the field of a front end's newest batch begins with. */
const OPERATION_PREFIX = 'op:';
/** Where the reply that it holds has the time of the batch, milliseconds in 6 bytes. */
const OPERATION_TIME_AT = 8;

/** A cell as its owner has claimed it. */
export interface ClaimedCell {
  readonly fence: bigint;
  /** Dataset and number of the epoch. */
  readonly token: string;
}

export class CellStore {
  readonly cell: number;
  /** How its keys name it. */
  readonly name: CellName;
  readonly #locate: () => RedisNode;
  readonly #writtenFormat: () => number;
  readonly #loadBlock: Script;
  readonly #freeBlocks: Script;
  readonly #claimCell: Script;
  readonly #fencedSet: Script;
  readonly #fencedMark: Script;
  readonly #fencedAdd: Script;

  /** @param locate the node that holds the cell now. @param writtenFormat that an owner has the cell written in */
  constructor(locate: () => RedisNode, cell: number, name: CellName, writtenFormat: () => number) {
    this.#locate = locate;
    this.#writtenFormat = writtenFormat;
    this.cell = cell;
    this.name = name;
    const node = locate();
    this.#loadBlock = node.script('loadBlock');
    // Taken also where memory is full: it makes room.
    this.#freeBlocks = node.script('freeBlocks', 'allow-oom');
    this.#claimCell = node.script('claimCell', 'allow-oom');
    this.#fencedSet = node.script('fencedSet');
    this.#fencedAdd = node.script('fencedAdd');
    // Few bytes, on which it depends that memory becomes free again: taken also where there is none.
    this.#fencedMark = node.script('fencedSet', 'allow-oom');
  }

  /** The node that holds the cell now. */
  get node(): RedisNode {
    return this.#locate();
  }

  get #redis(): RedisClient {
    return this.node[CLIENT];
  }

  /** A player as of the last spin; undefined where it never spun. */
  async findPlayer(partnerId: number, playerId: string): Promise<PlayerRecord | undefined> {
    const record = await this.#redis.hgetBuffer(playersKey(this.name), playerField(partnerId, playerId));
    return record === null ? undefined : readPlayer(record);
  }

  /** A game's counter and queue; undefined before its first block. */
  async findGame(gameId: number): Promise<GameRecord | undefined> {
    const record = await this.#redis.hgetBuffer(gamesKey(this.name), String(gameId));
    return record === null ? undefined : readGame(record);
  }

  /** As {@link findGame}, in the order of the ids. @param gameIds at least one */
  async findGames(gameIds: readonly number[]): Promise<(GameRecord | undefined)[]> {
    const records = await this.#redis.hmgetBuffer(gamesKey(this.name), ...gameIds.map(String));
    return records.map((record) => (record ? readGame(record) : undefined));
  }

  /** The communal progressive of a game; undefined where it has none. */
  async findPot(gameId: number): Promise<PotRecord | undefined> {
    const record = await this.#redis.hgetBuffer(communalKey(this.name), String(gameId));
    return record === null ? undefined : readPot(record);
  }

  /** The cell turns a partner's commands away. @param knownMove number of the newest move that the caller knows; 0: none */
  async isTurnedAway(partnerId: number, knownMove: number): Promise<boolean> {
    const away = await this.#redis.hget(cellKey(this.name), 'away');
    return away !== null && isTurnedAway(away, partnerId, knownMove);
  }

  /** Id of the newest ledger entry in the outbox, booked or not; 0 where there is none. */
  async newestInOutbox(): Promise<bigint> {
    // Not the field `last`: after a rebuild it is above every entry that there is.
    const key = outboxKey(this.name);
    const [newest] = (await this.#redis.xrevrangeBuffer(key, '+', '-', 'COUNT', 1)) as StreamEntries;
    return newest === undefined ? 0n : (readOutbox(newest[1][1]!).at(-1)?.id ?? 0n);
  }

  /** The oldest ledger entries that are not trimmed from the outbox yet. */
  async outbox(limit: number): Promise<OutboxRecord[]> {
    const batches = await this.#redis.xrangeBuffer(outboxKey(this.name), '-', '+', 'COUNT', limit);
    return (batches as StreamEntries).flatMap(([, fields]) => readOutbox(fields[1]!)).slice(0, limit);
  }

  /** Ledger entries that are not known to be in the ledger, and their bytes. */
  async outboxTotals(): Promise<Totals> {
    const [last, booked] = await this.#redis.hmgetBuffer(cellKey(this.name), 'last', 'booked');
    return waitingTotals(last ?? null, booked ?? null);
  }

  /** Age of the oldest outbox entry; 0 where there is none. */
  async outboxAgeSeconds(): Promise<number> {
    const [oldest] = await this.#redis.xrange(outboxKey(this.name), '-', '+', 'COUNT', 1);
    return oldest === undefined ? 0 : Math.max(0, Date.now() - Number.parseInt(oldest[0], 10)) / 1000;
  }

  /** {@link CellHead.token} */
  async token(): Promise<string | undefined> {
    return (await this.#redis.hget(cellKey(this.name), 'epoch')) ?? undefined;
  }

  /**
   * The cell can be dealt from at an epoch.
   * @param epoch dataset and number
   * @throws NotSentError while the node is not connected.
   */
  async isOpen(epoch: string): Promise<boolean> {
    const serverId = this.node.knownServerId();
    return (await this.token()) === cellToken(epoch, serverId);
  }

  /** Whether a text is the field `epoch` of the cell at an epoch, as this run of the server has it. */
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

  /** Fence of the owner that has claimed the cell; 0 where none has. */
  async fence(): Promise<bigint> {
    return BigInt((await this.#redis.hget(cellKey(this.name), 'fence')) ?? 0);
  }

  /**
   * Claims the cell for its owner (lua/claimCell.lua).
   * @throws OutrunError, RefusedError, NotSentError: nothing was done.
   */
  claim(owner: CellOwner): Promise<void> {
    return this.#claim(owner, 0);
  }

  /** Claims the cell and removes everything that Redis holds of it. @throws as {@link claim}. */
  async clear(owner: CellOwner): Promise<void> {
    await this.#claim(owner, 1, await this.otherKeys());
  }

  /** Claims the cell and removes some of its keys. @throws as {@link claim}. */
  removeKeys(owner: CellOwner, keys: readonly string[]): Promise<void> {
    return this.#claim(owner, 2, keys);
  }

  /** @param removal ARGV[2] of the script */
  async #claim(owner: CellOwner, removal: 0 | 1 | 2, keys: readonly string[] = []): Promise<void> {
    this.assertServer(owner);
    const values = [String(owner.fence), removal, this.#writtenFormat()];
    await this.node.run(this.#claimCell, [cellKey(this.name), ...keys], values);
  }

  /**
   * Lets the front ends deal at an epoch, over the run of the server that the owner has examined.
   * @param epoch dataset and number
   * @throws OutrunError, RefusedError, NotSentError: nothing was done.
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

  /** Claims the cell and ends dealing from it; whatever it holds is kept. @throws as {@link open}. */
  async close(owner: CellOwner, epoch: string): Promise<void> {
    await this.claim(owner);
    // The name that the cell has, not that of the server: whether this one may lack something must still be seen later.
    const [, , serverId = ''] = ((await this.token()) ?? '').split(':');
    await this.#mark(owner, ['epoch', cellToken(epoch, closedName(serverId))]);
  }

  /**
   * Notes how far the outbox is booked: from this the spin script knows how much waits, and a handshake whether the
   * ledger has lost what it had.
   * @throws OutrunError where a later owner has written.
   */
  async markBooked(owner: CellOwner, booked: Booked): Promise<void> {
    await this.#mark(owner, ['booked', writeBooked(booked)]);
  }

  /** The totals up to a cursor: those before the first entry that follows, or those of the newest where none does. */
  async totalsAt(cursor: bigint): Promise<Totals> {
    // In this order: what is added in between shows as an entry that follows.
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

  /** Removes what the ledger has, up to a cursor (with); a trim that fails is made up for by the next one. */
  async trimOutbox(cursor: bigint): Promise<void> {
    await this.#redis.call('XTRIM', outboxKey(this.name), 'MINID', streamIdOf(cursor + 1n));
  }

  /**
   * Writes fields of one of the cell's hashes, once the owner has claimed the cell (lua/fencedSet.lua).
   * @throws OutrunError, RefusedError, NotSentError: nothing was done.
   */
  async fencedSet(owner: CellOwner, key: string, fields: Fields): Promise<void> {
    this.assertServer(owner);
    await this.node.run(this.#fencedSet, [cellKey(this.name), key], [fenceText(owner), ...fields]);
  }

  /** Appends to the list of the shares that wait for a player, as {@link fencedSet} writes fields. */
  async listWaitingShares(owner: CellOwner, player: string, shares: readonly Buffer[]): Promise<void> {
    this.assertServer(owner);
    const keys = [cellKey(this.name), waitingSharesKey(this.name, player)];
    await this.node.run(this.#fencedAdd, keys, [fenceText(owner), ...shares]);
  }

  /**
   * Writes whom a game remembers, once the owner has claimed the cell (lua/fencedAdd.lua).
   * @param recent the newest spin of each player, the most recent first
   * @throws OutrunError, RefusedError, NotSentError: nothing was done.
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
   * Appends a sealed block to a game's queue (lua/loadBlock.lua); repeatable.
   * @param lease with which the caller has claimed the cell; its token is dataset and number of the epoch
   * @throws EpochError, OutrunError, GapError, RefusedError, NotSentError: nothing was done.
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
   * Frees the queue of a game (lua/freeBlocks.lua): its blocks can be loaded again.
   * @param lease with which the caller has claimed the cell; its token is dataset and number of the epoch
   * @param fromIndices where the blocks begin that are loaded
   * @returns false where the queue ends elsewhere by now: nothing was done.
   * @throws EpochError, OutrunError, RefusedError, NotSentError: nothing was done.
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

  /** Removes blocks of a game that are wholly booked. @param fromIndices at least one */
  async unlinkBlocks(gameId: number, fromIndices: readonly number[]): Promise<void> {
    await this.#redis.unlink(...fromIndices.map((fromIndex) => blockKey(this.name, gameId, fromIndex)));
  }

  /** Removes the newest reply of each front end that has sent no batch since a moment, milliseconds since the epoch. */
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

  /** @throws NotSentError where another run of the server is reached than the owner's. */
  assertServer({ serverId }: CellOwner): void {
    if (serverId !== undefined && serverId !== this.node.serverId) {
      throw new NotSentError('Redis is not connected, or was started again');
    }
  }

  /** All keys of the cell but {@link cellKey}. */
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
