/**
 * Reads the outboxes of the cells of one node over a dedicated connection, because a read blocks until
 * entries arrive.
 *
 * Every read is limited in bytes. If the previous read has just reached the end of the outboxes, few new
 * entries can have gathered. In any other case (the first read, a read after a pause or a failure) the reader
 * asks for the size of each backlog. It then reads only as many cells as the limit allows, and the other
 * cells in later reads.
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

/** One stream entry of an outbox, which one script call has added. */
export interface OutboxBatch {
  /** Encoded ledger entries, in the format of `readOutbox`. */
  readonly records: Buffer;
  /** Totals of the outbox as they were before this stream entry. */
  readonly before: Totals;
  /**
   * Keys of the requestIds of a batch's spins, in the order of the records. If empty, the keys are computed
   * from the records.
   */
  readonly requestKeys: Buffer;
}

/** Position of a reader in an outbox: the ledger entry after which the next read begins. */
export interface OutboxPosition {
  readonly cell: number;
  readonly cursor: bigint;
  /** Dataset and number of the epoch that the cell is expected to have. */
  readonly epoch: string;
  /**
   * Token that a cell has while it is closed for dealing. Absent if the cell has the token that allows
   * dealing.
   */
  readonly token?: string | undefined;
}

export interface CellRead {
  readonly cell: number;
  readonly batches: readonly OutboxBatch[];
  /**
   * True if the cell still had the expected epoch after the read, so that the entries belong to this epoch.
   */
  readonly isOfEpoch: boolean;
}

export interface OutboxRead {
  /** Cells with new outbox entries. Cells without any are omitted. */
  readonly cells: readonly CellRead[];
  /** True if the outboxes have more entries than one read can return. */
  readonly isMore: boolean;
}

/**
 * Maximum size of the entries that one read loads, in bytes. It is kept as far as the cells' totals are
 * accurate.
 */
export const READ_BYTES_MAX = 32_000_000;
/** Maximum number of stream entries of one cell in one read. */
const ENTRIES_MAX = 512;
/**
 * Maximum number of stream entries to read of a single cell that has more bytes than one read may load. A
 * stream entry can have 0.9 MB (512 spins with the longest ids).
 */
const LARGE_ENTRIES_MAX = 32;
/**
 * Poll interval for new entries in a cluster, in ms. The interval doubles with each poll up to the maximum.
 */
const POLL_MS_MIN = 2;
const POLL_MS_MAX = 25;
/** Time, in ms, for which the backlog is assumed to be small after the outboxes were read to their end. */
const KNOWN_MS = 1000;

const NO_KEYS = Buffer.alloc(0);

/** Reply of XREAD; null if there are no entries. */
type StreamsRead = [key: Buffer, entries: [id: Buffer, fields: Buffer[]][]][] | null;

interface Choice {
  readonly positions: readonly OutboxPosition[];
  readonly entriesMax: number;
}

export class OutboxReader {
  readonly #client: RedisClient;
  readonly #endFollowing: () => void;
  /**
   * Cells whose outboxes were all read to their end, with the time of that read on the scale of
   * performance.now().
   */
  #short: { readonly cells: ReadonlySet<number>; readonly at: number } | undefined;
  /**
   * True if the newest read returned no entries. In that case the epochs are not read before entries arrive.
   */
  #isQuiet = false;
  /**
   * Cell that was read last when not all cells fitted into one read. The next read begins with the cell after
   * it.
   */
  #newestCell = -1;

  /**
   * Connects in the background.
   * @param nodes all nodes, including this one
   */
  constructor(
    readonly node: RedisNode,
    private readonly nodes: RedisNodes,
    onError: (error: Error) => void,
  ) {
    this.#client = new RedisClient(node[CLIENT].url, onError);
    // Connection errors are reported to onError, and the connection is retried.
    this.#client.connect().catch(() => {});
    // A name that leads to another server leads this connection there, too.
    this.#endFollowing = node.onIdentified(() => {
      if (!this.isAtNode && this.#client.serverId !== undefined) this.#client.disconnect(true);
    });
  }

  /**
   * True if this connection leads to the same server run as the node's own connection. The two may differ for
   * a moment after a restart.
   */
  get isAtNode(): boolean {
    const { serverId } = this.node;
    return this.#client.serverId === (serverId === undefined ? undefined : runOf(serverId));
  }

  /**
   * Reads the entries after the given positions, oldest first. All cells must be on this node.
   * @param waitMs maximum time to wait for entries, in ms; 0 to return immediately
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
    if (!this.nodes.isCluster) return this.#readTogether(choice, waitMs);
    // In a cluster one command can read keys of a single slot only. A blocking read of one cell would delay
    // the reads of the other cells, so the cells are polled.
    const deadline = performance.now() + waitMs;
    for (let restMs = POLL_MS_MIN; ; restMs = Math.min(2 * restMs, POLL_MS_MAX)) {
      const cells = await this.#readEach(choice);
      if (cells.length > 0 || performance.now() + restMs > deadline) return cells;
      await pause(restMs);
    }
  }

  /**
   * Reads cells of several slots. A cell that can't be read because it is moving to another node is omitted.
   * @throws Error if no cell can be read
   */
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

  /** @param waitMs maximum time to wait for entries, in ms; 0 to return immediately */
  async #readTogether({ positions, entriesMax }: Choice, waitMs: number): Promise<CellRead[]> {
    const names = positions.map(({ cell }) => this.nodes.nameOf(cell));
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
      // Both reads are sent in one write, so that the epochs are read as soon as the wait for entries ends.
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

  /**
   * Reads the size of each cell's backlog. Chooses all cells if the sum fits into one read, otherwise as many
   * cells as fit.
   */
  async #choose(positions: readonly OutboxPosition[]): Promise<Choice> {
    const waiting = await Promise.all(
      positions.map(async (position) => {
        const [last, booked] = await this.#client.hmgetBuffer(
          cellKey(this.nodes.nameOf(position.cell)),
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
    this.#endFollowing();
    this.#client.disconnect();
  }
}

const bytesOf = (batches: readonly OutboxBatch[]): number =>
  batches.reduce((sum, { records }) => sum + records.length, 0);
