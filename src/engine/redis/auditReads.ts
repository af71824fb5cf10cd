/** The audit's read access to Redis. Every read is limited in size, and none writes. */

import { BOOKED, LAST, TOTALS, type Totals } from '../../domain/layouts.js';
import type { PlayerStatus } from '../../domain/playerStatus.js';
import {
  type Booked,
  type GameRecord,
  isGame,
  newestEntryId,
  type OutboxRecord,
  PLAYER_SHARES_AT,
  readAhead,
  readBooked,
  readGame,
  readOutbox,
  readPlayer,
  totalsOfLast,
} from './cellRecords.js';
import {
  BLOCK_KEYS_PATTERN,
  blockKey,
  type CellName,
  cellKey,
  gamesKey,
  idempotencyKey,
  type LoadedBlock,
  outboxKey,
  playersKey,
  readBlockKey,
  roundsKey,
  waitingSharesKey,
} from './keys.js';
import type { RedisNodes } from './nodes.js';
import { CLIENT, type RedisClient } from './redisClient.js';
import { readSegments, type Segments } from './segmentRecords.js';

export type Field = readonly [field: Buffer, value: Buffer];

export interface CellRecord {
  readonly epoch: string | undefined;
  readonly newestEntryId: bigint | undefined;
  /** Totals of all ledger entries of the cell up to the newest one. */
  readonly added: Totals | undefined;
  /** Watermark of the entries that Redis knows to be committed. */
  readonly booked: Booked | undefined;
}

/** One stream entry of the outbox, which holds the ledger entries of one call. */
export interface OutboxPage {
  readonly streamId: string;
  /** The decoded records of the outbox entry; undefined if they can't be decoded. */
  readonly records: readonly OutboxRecord[] | undefined;
  /** Size of the outbox entry's encoded records in bytes. */
  readonly bytes: number;
  /** Totals of the outbox before this entry; undefined if they can't be decoded. */
  readonly before: Totals | undefined;
}

export interface RedisAuditReads {
  /**
   * Returns the clock of Redis in ms since the Unix epoch. If the clocks of the nodes differ, returns the one
   * that is furthest ahead.
   */
  timeMs(): Promise<number>;
  serverId(cell: number): Promise<string>;
  cell(cell: number): Promise<CellRecord>;
  game(cell: number, gameId: number): Promise<GameRecord | undefined>;
  /**
   * Returns a game's record together with the outcomes that are dealt next. These were already read from the
   * game's block into the record.
   */
  ahead(cell: number, gameId: number): Promise<(GameRecord & { readonly outcomes: Buffer }) | undefined>;
  /** Iterates over the games of a cell. A field whose value is not a valid record yields undefined. */
  games(cell: number): AsyncIterable<readonly [gameId: string, game: GameRecord | undefined]>;
  counts(cell: number, segment: number): Promise<{ players: number; bound: number }>;
  /** Returns the request-id segments of a cell, or undefined if no owner has prepared the cell. */
  segments(cell: number): Promise<Segments | undefined>;
  players(cell: number): AsyncIterable<readonly Field[]>;
  /** A player without a record is active. */
  playerStatus(cell: number, field: string): Promise<PlayerStatus>;
  /**
   * Returns the shares that a player has not been notified of: first those in the player's list, then those
   * stored after the player's record.
   */
  untold(cell: number, field: string): Promise<readonly Buffer[]>;
  bound(cell: number, segment: number): AsyncIterable<readonly Field[]>;
  rounds(cell: number): AsyncIterable<readonly Field[]>;
  loadedBlocks(): AsyncIterable<readonly LoadedBlock[]>;
  /** Returns the outcomes of a block, or null if the block is not loaded. */
  block(cell: number, gameId: number, fromIndex: number): Promise<Buffer | null>;
  /** Returns the stream id of the newest outbox entry, or undefined if the outbox is empty. */
  outboxEnd(cell: number): Promise<string | undefined>;
  /**
   * Returns the outbox entries after one stream id and up to another stream id, oldest first, as many as one
   * read returns. The result is empty if there are no more entries.
   */
  outbox(cell: number, after: string, end: string): Promise<OutboxPage[]>;
}

const SCAN_COUNT = 500;
const SCAN_KEYS_COUNT = 1000;
/** Number of outbox entries in one read. Each holds up to 512 spins. */
const OUTBOX_ENTRIES = 32;

export function openRedisAuditReads(nodes: RedisNodes): RedisAuditReads {
  const at = (cell: number): RedisClient => nodes.of(cell)[CLIENT];
  const named = (cell: number): CellName => nodes.nameOf(cell);
  return {
    async timeMs() {
      return Math.max(...(await Promise.all(nodes.all.map((node) => node.timeMs()))));
    },
    async serverId(cell) {
      return nodes.of(cell).serverId ?? 'unknown';
    },
    async cell(cell) {
      const [epoch, last, booked] = await at(cell).hmgetBuffer(
        cellKey(named(cell)),
        'epoch',
        'last',
        'booked',
      );
      return {
        epoch: epoch?.toString(),
        newestEntryId: last ? newestEntryId(last, cell) : undefined,
        added: last && last.length === LAST.bytes ? totalsOfLast(last) : undefined,
        booked: booked?.length === BOOKED.bytes ? readBooked(booked) : undefined,
      };
    },
    async game(cell, gameId) {
      const record = await at(cell).hgetBuffer(gamesKey(named(cell)), String(gameId));
      return record && isGame(record) ? readGame(record) : undefined;
    },
    async ahead(cell, gameId) {
      const record = await at(cell).hgetBuffer(gamesKey(named(cell)), String(gameId));
      if (record === null || !isGame(record)) return undefined;
      return { ...readGame(record), outcomes: readAhead(record) };
    },
    async *games(cell) {
      for await (const page of fields(at(cell), gamesKey(named(cell)))) {
        for (const [field, value] of page) {
          yield [field.toString(), isGame(value) ? readGame(value) : undefined];
        }
      }
    },
    counts: (cell, segment) => countsOf(at(cell), named(cell), segment),
    players: (cell) => fields(at(cell), playersKey(named(cell))),
    playerStatus: (cell, field) => playerStatusOf(at(cell), named(cell), field),
    rounds: (cell) => fields(at(cell), roundsKey(named(cell))),
    untold: (cell, field) => waitingSharesOf(at(cell), named(cell), field),
    bound: (cell, segment) => fields(at(cell), idempotencyKey(named(cell), segment)),
    segments: (cell) => segmentsOf(at(cell), named(cell)),
    async *loadedBlocks() {
      for (const node of nodes.all) yield* loadedBlocksOf(node[CLIENT]);
    },
    block: (cell, gameId, fromIndex) => at(cell).getBuffer(blockKey(named(cell), gameId, fromIndex)),
    async outboxEnd(cell) {
      const [newest] = await at(cell).xrevrange(outboxKey(named(cell)), '+', '-', 'COUNT', 1);
      return newest?.[0];
    },
    async outbox(cell, after, end) {
      const found = (await at(cell).xrangeBuffer(
        outboxKey(named(cell)),
        `(${after}`,
        end,
        'COUNT',
        OUTBOX_ENTRIES,
      )) as [Buffer, Buffer[]][];
      return found.map(([id, [, records, , totals]]) => ({
        streamId: id.toString(),
        records: recordsOf(records),
        bytes: records?.length ?? 0,
        before: totalsOf(totals),
      }));
    },
  };
}

async function* fields(redis: RedisClient, key: string): AsyncGenerator<Field[]> {
  let cursor = '0';
  do {
    const [next, found] = await redis.hscanBuffer(key, cursor, 'COUNT', SCAN_COUNT);
    const page: Field[] = [];
    for (let i = 0; i < found.length; i += 2) page.push([found[i]!, found[i + 1]!]);
    if (page.length > 0) yield page;
    cursor = next.toString();
  } while (cursor !== '0');
}

async function segmentsOf(redis: RedisClient, cell: CellName): Promise<Segments | undefined> {
  const segments = await redis.hgetBuffer(cellKey(cell), 'segments');
  return segments === null ? undefined : readSegments(segments);
}

async function countsOf(redis: RedisClient, cell: CellName, segment: number) {
  const keys = [playersKey(cell), idempotencyKey(cell, segment)] as const;
  const [players, bound] = await Promise.all([redis.hlen(keys[0]), redis.hlen(keys[1])]);
  return { players, bound };
}

async function playerStatusOf(redis: RedisClient, cell: CellName, field: string): Promise<PlayerStatus> {
  const record = await redis.hgetBuffer(playersKey(cell), field);
  return record === null ? 'ACTIVE' : readPlayer(record).status;
}

/**
 * The list is read before the player's record, because a script moves shares from the list to the end of the
 * record. With the opposite order, a share that moves between the two reads could be missed.
 */
async function waitingSharesOf(redis: RedisClient, cell: CellName, field: string): Promise<Buffer[]> {
  const listed = await redis.lrangeBuffer(waitingSharesKey(cell, field), 0, -1);
  const record = await redis.hgetBuffer(playersKey(cell), field);
  return [...listed, record?.subarray(PLAYER_SHARES_AT) ?? Buffer.alloc(0)];
}

async function* loadedBlocksOf(redis: RedisClient): AsyncGenerator<LoadedBlock[]> {
  let cursor = '0';
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', BLOCK_KEYS_PATTERN, 'COUNT', SCAN_KEYS_COUNT);
    yield keys.map(readBlockKey).filter((block) => block !== undefined);
    cursor = next;
  } while (cursor !== '0');
}

function totalsOf(totals: Buffer | undefined): Totals | undefined {
  return totals?.length === TOTALS.bytes ? TOTALS.read(totals) : undefined;
}

function recordsOf(batch: Buffer | undefined): OutboxRecord[] | undefined {
  if (batch === undefined || batch.length === 0) return undefined;
  try {
    return readOutbox(batch);
  } catch {
    return undefined;
  }
}
