/** The scripts that partners' and operators' requests call: commands of cells, and the count of failures. A cell's owner: cellStore.ts. */

import { cellToken } from './cellRecords.js';
import { cellKey, gamesKey, outboxKey, partnersKey, playersKey } from './keys.js';
import type { RedisNodes } from './nodes.js';
import type { ReplicatedReply } from './replicatedCalls.js';

/** A call of an operation that begins with lua/include/cell.lua. */
export interface CellCall {
  readonly cell: number;
  /** Dataset and number of the epoch that the caller believes in. */
  readonly epoch: string;
  /** The entry up to which the caller's filters of request ids reach, 8 bytes little endian; absent or empty: none. */
  readonly reach?: Buffer;
  /** Field of the caller's newest operation, `op:<front end>`; empty where the reply is not stored. */
  readonly operationField: string;
  /** 8 bytes, a number (little endian) greater than that of any operation before in the field; or empty. */
  readonly operationId: Buffer;
  /** The newest entry of the cell that the caller has answered under this epoch (AnsweredIds); absent: none. */
  readonly answered?: Buffer;
  /** Number of the newest move that the caller knows of the partner whose command it is; absent: none, or the operation names it itself. */
  readonly newestMove?: number | undefined;
  /** What the operation has beside the head. */
  readonly args: readonly (string | number | Buffer)[];
}

export interface ScriptOptions {
  /** What may wait in a cell's outbox before nothing more is dealt. */
  readonly outboxMax: { readonly entries: number; readonly bytes: number };
  /** Absent: clocks are not compared. */
  readonly clock?: {
    /** Milliseconds since the epoch. */
    readonly now: () => number;
    /** By how many milliseconds the server's clock and a cell's newest entry may differ from it. */
    readonly skewMaxMs: number;
  };
}

export class Scripts {
  readonly #nodes: RedisNodes;
  readonly #options: ScriptOptions;

  constructor(nodes: RedisNodes, options: ScriptOptions) {
    this.#nodes = nodes;
    this.#options = options;
  }

  /**
   * Calls an operation that begins with lua/include/cell.lua; gives its binary reply.
   * @throws EpochError, ClockError, RefusedError, NotSentError: this call did nothing. Any other error: it may have been done.
   */
  async command(operation: string, call: CellCall): Promise<Buffer> {
    const node = this.#nodes.of(call.cell);
    const script = node.script(operation);
    return node.run(script, this.#keys(call), this.#args(call, node.knownServerId())) as Promise<Buffer>;
  }

  /** The same, and says whether every replica of the node has what it wrote. */
  async replicated(operation: string, call: CellCall): Promise<ReplicatedReply> {
    const node = this.#nodes.of(call.cell);
    return node.runReplicated(node.script(operation), this.#keys(call), (serverId) =>
      this.#args(call, serverId),
    );
  }

  #keys({ cell }: CellCall): string[] {
    const name = this.#nodes.nameOf(cell);
    return [cellKey(name), partnersKey(name), playersKey(name), gamesKey(name), outboxKey(name)];
  }

  #args(call: CellCall, serverId: string): (string | number | Buffer)[] {
    const { cell, epoch, operationField, operationId, args, answered, reach, newestMove } = call;
    const { outboxMax, clock } = this.#options;
    return [
      cellToken(epoch, serverId),
      cell,
      reach ?? '',
      outboxMax.entries,
      outboxMax.bytes,
      operationField,
      operationId,
      ...args,
      newestMove ?? 0,
      answered ?? '',
      clock?.now() ?? 0,
      clock?.skewMaxMs ?? 0,
    ];
  }

  /** Counts a failed authentication of a client address; the count never goes further than one over the limit. */
  async countFailure(address: string, limit: number): Promise<{ count: number; timeMs: number }> {
    const { node, key } = this.#nodes.failuresOf(address);
    const reply = await node.run(node.script('countFailure'), [key], [limit]);
    const [count, second] = reply as [number, number];
    return { count, timeMs: second * 1000 };
  }
}
