/**
 * Reads the outboxes of the cells of one node, over a connection of its own: a read waits for what there is to come.
 *
 * A read is bounded in bytes. After each read to the end, little can wait for the next one. Before any other (the first, one
 * after a pause, one after a failure) it is asked how much waits, and only as many cells are read as fit, in turn.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { streamIdOf } from '../../domain/entryId.js';
import type { Totals } from '../../domain/layouts.js';
import { cellToken, totalsBefore, waitingTotals } from './cellRecords.js';
import { cellKey, outboxKey } from './keys.js';
import type { RedisNode } from './node.js';
import type { RedisNodes } from './nodes.js';
import { CLIENT, RedisClient } from './redisClient.js';
import { runOf } from './serverIdentity.js';

/** One entry of an outbox: what one call of a script added. */
export interface OutboxBatch {
  /** The records, as `readOutbox` reads them. */
  readonly records: Buffer;
  /** Totals of the entries that were added before it. */
  readonly before: Totals;
  /** The keys of the requestIds of a batch's spins, in the order of the records; empty: they are made of the records. */
  readonly requestKeys: Buffer;
}

/** How far an outbox was read before: the ledger entry after which it goes on. */
export interface OutboxPosition {
  readonly cell: number;
  readonly cursor: bigint;
  /** Dataset and number of the epoch that the cell is believed to be at. */
  readonly epoch: string;
  /** Of a cell that nobody deals from any more: its token. Absent: the one that lets front ends deal. */
  readonly token?: string | undefined;
}

/** The entries of a cell that were read. */
export interface CellRead {
  readonly cell: number;
  readonly batches: readonly OutboxBatch[];
  /** After they were read the cell was at the epoch still: they are of this epoch. */
  readonly isOfEpoch: boolean;
}

/** What a read gave. */
export interface OutboxRead {
  /** Those that have none are left out. */
  readonly cells: readonly CellRead[];
  /** There is more than one read takes. */
  readonly isMore: boolean;
}

/** What one read brings into memory, bytes of entries, as far as the totals of the cells tell. */
export const READ_BYTES_MAX = 32_000_000;
/** Stream entries of a cell in one read. */
const ENTRIES_MAX = 512;
/** The same of a cell that alone has more than a read takes: an entry has up to 0.9 MB (512 spins with the longest ids). */
const LARGE_ENTRIES_MAX = 32;
/** In a cluster: rests between two looks for what there is to come, each twice as long as the one before. */
const POLL_MS_MIN = 2;
const POLL_MS_MAX = 25;
/** For so long after a read to the end it is known that little waits. */
const KNOWN_MS = 1000;

const NO_KEYS = Buffer.alloc(0);

/** What XREAD answers; null: there are none. */
type StreamsRead = [key: Buffer, entries: [id: Buffer, fields: Buffer[]][]][] | null;

interface Choice {
  readonly positions: readonly OutboxPosition[];
  readonly entriesMax: number;
}

export class OutboxReader {
  readonly node: RedisNode;
  readonly #nodes: RedisNodes;
  readonly #client: RedisClient;
  /** The cells that were read to their end at a time, as performance.now() counts. */
  #short: { readonly cells: ReadonlySet<number>; readonly at: number } | undefined;
  /** The newest read waited in vain: the epochs are asked for only once entries come. */
  #isQuiet = false;
  /** The cell that was read last where not all fitted: the next ones come first then. */
  #newestCell = -1;

  /**
   * Connects in the background.
   * @param nodes of which the node is one
   */
  constructor(node: RedisNode, nodes: RedisNodes, onError: (error: Error) => void) {
    this.node = node;
    this.#nodes = nodes;
    this.#client = new RedisClient(node[CLIENT].url, onError);
    // What fails is reported to onError, and tried again.
    this.#client.connect().catch(() => {});
  }

  /** This connection leads to the same run of the server as the node's. After a restart it may differ for a moment. */
  get isAtNode(): boolean {
    const { serverId } = this.node;
    return this.#client.serverId === (serverId === undefined ? undefined : runOf(serverId));
  }

  /**
   * Reads the entries that follow the positions, oldest first; cells of this node only.
   * @param waitMs how long to wait while there are none; 0: not at all
   */
  async read(positions: readonly OutboxPosition[], waitMs: number): Promise<OutboxRead> {
    const choice = this.#isShort(positions)
      ? { positions, entriesMax: ENTRIES_MAX }
      : await this.#choose(positions);
    const isAll = choice.positions.length === positions.length;
    const cells = await this.#readEntries(choice, isAll ? waitMs : 0);
    const isMore = !isAll || cells.some(({ batches }) => batches.length === choice.entriesMax);
    const bytes = cells.reduce((sum, { batches }) => sum + bytesOf(batches), 0);
    this.#short =
      isMore || bytes > READ_BYTES_MAX / 4
        ? undefined
        : { cells: new Set(positions.map(({ cell }) => cell)), at: performance.now() };
    return { cells, isMore };
  }

  async #readEntries(choice: Choice, waitMs: number): Promise<CellRead[]> {
    if (!this.#nodes.isCluster) return this.#readTogether(choice, waitMs);
    // One command reads keys of one slot only, and one that waits for a cell holds up those of the others.
    const deadline = performance.now() + waitMs;
    for (let restMs = POLL_MS_MIN; ; restMs = Math.min(2 * restMs, POLL_MS_MAX)) {
      const cells = await this.#readEach(choice);
      if (cells.length > 0 || performance.now() + restMs > deadline) return cells;
      await pause(restMs);
    }
  }

  /** Of several slots. A cell that can't be read, because it is moving to another node, has none. @throws where none can. */
  async #readEach({ positions, entriesMax }: Choice): Promise<CellRead[]> {
    const reads: Promise<CellRead[]>[] = [];
    this.#client.pipelined(() => {
      for (const position of positions)
        reads.push(this.#readTogether({ positions: [position], entriesMax }, 0));
    });
    const settled = await Promise.allSettled(reads);
    if (settled.every(({ status }) => status === 'rejected')) await Promise.all(reads);
    return settled.flatMap((read) => (read.status === 'fulfilled' ? read.value : []));
  }

  /** @param waitMs how long to wait while there are none; 0: not at all */
  async #readTogether({ positions, entriesMax }: Choice, waitMs: number): Promise<CellRead[]> {
    const names = positions.map(({ cell }) => this.#nodes.nameOf(cell));
    const keys = names.map(outboxKey);
    const serverId = this.isAtNode ? this.node.serverId : undefined;
    const readEntries = () =>
      this.#client.callBuffer(
        'XREAD',
        'COUNT',
        entriesMax,
        ...(waitMs > 0 ? ['BLOCK', waitMs] : []),
        'STREAMS',
        ...keys,
        ...positions.map(({ cursor }) => streamIdOf(cursor)),
      ) as Promise<StreamsRead>;
    const readTokens = () => Promise.all(names.map((name) => this.#client.hget(cellKey(name), 'epoch')));
    let answer: StreamsRead;
    let tokens: (string | null)[];
    if (this.#isQuiet) {
      answer = await readEntries();
      tokens = answer === null ? [] : await readTokens();
    } else {
      const asked: Promise<StreamsRead | (string | null)[]>[] = [];
      // In one write: the epochs are read at once when the wait for entries ends.
      this.#client.pipelined(() => asked.push(readEntries(), readTokens()));
      [answer, tokens] = (await Promise.all(asked)) as [StreamsRead, (string | null)[]];
    }
    this.#isQuiet = answer === null && waitMs > 0;
    return (answer ?? []).map(([key, entries]) => {
      const place = keys.indexOf(key.toString());
      const { cell, epoch, token } = positions[place]!;
      const expected = serverId === undefined ? undefined : (token ?? cellToken(epoch, serverId));
      return {
        cell,
        batches: entries.map(([, fields]) => ({
          records: fields[1]!,
          before: totalsBefore(fields),
          requestKeys: fields[5] ?? NO_KEYS,
        })),
        isOfEpoch: tokens[place] === expected,
      };
    });
  }

  #isShort(positions: readonly OutboxPosition[]): boolean {
    const short = this.#short;
    return (
      short !== undefined &&
      performance.now() - short.at < KNOWN_MS &&
      positions.every(({ cell }) => short.cells.has(cell))
    );
  }

  /** Asks how much waits in each cell. All cells where it is less than a read takes, else as many as fit. */
  async #choose(positions: readonly OutboxPosition[]): Promise<Choice> {
    const waiting = await Promise.all(
      positions.map(async (position) => {
        const [last, booked] = await this.#client.hmgetBuffer(
          cellKey(this.#nodes.nameOf(position.cell)),
          'last',
          'booked',
        );
        return { position, bytes: waitingTotals(last ?? null, booked ?? null).bytes };
      }),
    );
    if (waiting.reduce((sum, { bytes }) => sum + bytes, 0) <= READ_BYTES_MAX)
      return { positions, entriesMax: ENTRIES_MAX };
    const next = waiting.findIndex(({ position }) => position.cell > this.#newestCell);
    const inTurn = [...waiting.slice(Math.max(0, next)), ...waiting.slice(0, Math.max(0, next))];
    const chosen: OutboxPosition[] = [];
    let left = READ_BYTES_MAX;
    for (const { position, bytes } of inTurn.filter(({ bytes }) => bytes > 0)) {
      if (bytes > left && chosen.length > 0) break;
      this.#newestCell = position.cell;
      chosen.push(position);
      if (bytes > READ_BYTES_MAX) return { positions: chosen, entriesMax: LARGE_ENTRIES_MAX };
      left -= bytes;
    }
    return { positions: chosen, entriesMax: ENTRIES_MAX };
  }

  close(): void {
    this.#client.disconnect();
  }
}

const bytesOf = (batches: readonly OutboxBatch[]): number =>
  batches.reduce((sum, { records }) => sum + records.length, 0);
