/**
 * Reads the outboxes of the cells of one node, over a connection of its own: a read waits for what there is to come.
 *
 * A read is bounded in bytes. After each read to the end, little can wait for the next one. Before any other (the first, one
 * after a pause, one after a failure) it is asked how much waits, and only as many cells are read as fit, in turn.
 */
import { streamIdOf } from '../domain/entryId.js';
import { CLIENT, RedisClient } from './client.js';
import { cellKey, outboxKey } from './keys.js';
import type { RedisNode } from './node.js';
import { cellToken, type Totals, totalsBefore, waitingTotals } from './records.js';

/** One entry of an outbox: what one call of a script added. */
export interface OutboxBatch {
  /** The records, as `readOutbox` reads them. */
  readonly records: Buffer;
  /** What was added before it; undefined: version 1.0.0 wrote it, and it is not counted. */
  readonly before: Totals | undefined;
}

/** How far an outbox was read before: the ledger entry after which it goes on. */
export interface OutboxPosition {
  readonly cell: number;
  readonly cursor: bigint;
  /** Dataset and number of the epoch that the cell is believed to be at. */
  readonly epoch: string;
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
/** For so long after a read to the end it is known that little waits. */
const KNOWN_MS = 1000;

interface Choice {
  readonly positions: readonly OutboxPosition[];
  readonly entriesMax: number;
}

export class OutboxReader {
  readonly node: RedisNode;
  readonly #client: RedisClient;
  /** The cells that were read to their end at a time, as performance.now() counts. */
  #short: { readonly cells: ReadonlySet<number>; readonly at: number } | undefined;
  /** The cell that was read last where not all fitted: the next ones come first then. */
  #newestCell = -1;

  private constructor(node: RedisNode, client: RedisClient) {
    this.node = node;
    this.#client = client;
  }

  /** Opens a connection to the node. @throws where the server can't be reached. */
  static async open(node: RedisNode, onError: (error: Error) => void): Promise<OutboxReader> {
    const client = new RedisClient(node[CLIENT].url, onError);
    try {
      await client.open();
    } catch (error) {
      client.disconnect();
      throw error;
    }
    return new OutboxReader(node, client);
  }

  /** This connection leads to the same run of the server as the node's. After a restart it may differ for a moment. */
  get isAtNode(): boolean {
    return this.#client.serverId === this.node.serverId;
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

  async #readEntries({ positions, entriesMax }: Choice, waitMs: number): Promise<CellRead[]> {
    const keys = positions.map(({ cell }) => outboxKey(cell));
    const { serverId } = this.#client;
    const asked: Promise<unknown>[] = [];
    // In one write: the epochs are read at once when the wait for entries ends.
    this.#client.pipelined(() => {
      asked.push(
        this.#client.callBuffer(
          'XREAD',
          'COUNT',
          entriesMax,
          ...(waitMs > 0 ? ['BLOCK', waitMs] : []),
          'STREAMS',
          ...keys,
          ...positions.map(({ cursor }) => streamIdOf(cursor)),
        ),
        Promise.all(positions.map(({ cell }) => this.#client.hget(cellKey(cell), 'epoch'))),
      );
    });
    const [answer, tokens] = (await Promise.all(asked)) as [
      [key: Buffer, entries: [id: Buffer, fields: Buffer[]][]][] | null,
      (string | null)[],
    ];
    return (answer ?? []).map(([key, entries]) => {
      const place = keys.indexOf(key.toString());
      const { cell, epoch } = positions[place]!;
      return {
        cell,
        batches: entries.map(([, fields]) => ({ records: fields[1]!, before: totalsBefore(fields) })),
        isOfEpoch: serverId !== undefined && tokens[place] === cellToken(epoch, serverId),
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
        const [last, booked] = await this.#client.hmgetBuffer(cellKey(position.cell), 'last', 'booked');
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
