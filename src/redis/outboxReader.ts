/** Reads the outboxes of the cells of one node, over a connection of its own: a read waits for what there is to come. */
import { streamIdOf } from '../domain/entryId.js';
import { CLIENT, RedisClient } from './client.js';
import { outboxKey } from './keys.js';
import type { RedisNode } from './node.js';
import { type Totals, totalsBefore } from './records.js';

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
}

export class OutboxReader {
  readonly node: RedisNode;
  readonly #client: RedisClient;

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
   * @param batchesMax of each cell
   * @param waitMs how long to wait while there are none; 0: not at all
   * @returns by cell; those that have none are left out.
   */
  async read(
    positions: readonly OutboxPosition[],
    batchesMax: number,
    waitMs: number,
  ): Promise<[cell: number, batches: OutboxBatch[]][]> {
    const keys = positions.map(({ cell }) => outboxKey(cell));
    const answer = (await this.#client.callBuffer(
      'XREAD',
      'COUNT',
      batchesMax,
      ...(waitMs > 0 ? ['BLOCK', waitMs] : []),
      'STREAMS',
      ...keys,
      ...positions.map(({ cursor }) => streamIdOf(cursor)),
    )) as [key: Buffer, entries: [id: Buffer, fields: Buffer[]][]][] | null;
    return (answer ?? []).map(([key, entries]) => [
      positions[keys.indexOf(key.toString())]!.cell,
      entries.map(([, fields]) => ({ records: fields[1]!, before: totalsBefore(fields) })),
    ]);
  }

  close(): void {
    this.#client.disconnect();
  }
}
