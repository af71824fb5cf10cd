/**
 * The scripts that requests of partners and operators call: the commands of cells, and the counter of failed
 * authentications. The scripts of a cell's owner are in cellStore.ts.
 */

import { cellToken } from './cellRecords.js';
import { cellKey, gamesKey, outboxKey, partnersKey, playersKey } from './keys.js';
import type { RedisNodes } from './nodes.js';
import type { ReplicatedReply } from './replicatedCalls.js';

/** A call of a script that begins with lua/include/cell.lua. */
export interface CellCall {
  readonly cell: number;
  /** Dataset and number of the epoch that the caller expects. */
  readonly epoch: string;
  /**
   * Watermark of the caller's request-id filters: the id of a ledger entry, 8 bytes little endian. Absent or
   * empty if the caller has no filters.
   */
  readonly reach?: Buffer;
  /** Field of the caller's newest operation, `op:<slot>`; empty if the reply is not stored. */
  readonly operationField: string;
  /**
   * Operation id, 8 bytes little endian, higher than every earlier id in the field. Empty if the reply is not
   * stored.
   */
  readonly operationId: Buffer;
  /**
   * Newest entry of the cell that the caller has answered under this epoch (AnsweredIds); absent if there is
   * none.
   */
  readonly answered?: Buffer;
  /**
   * Number of the newest move of the command's partner that the caller knows of. Absent if it knows of none,
   * or if the operation itself passes the number.
   */
  readonly newestMove?: number | undefined;
  readonly args: readonly (string | number | Buffer)[];
}

export class Scripts {
  constructor(
    private readonly nodes: RedisNodes,
    private readonly options: {
      /** Maximum backlog of a cell's outbox. Dealing stops when it is reached. */
      readonly outboxMax: { readonly entries: number; readonly bytes: number };
      /** Clock that scripts compare with the clock of Redis. Absent if clocks are not compared. */
      readonly clock?: {
        /** Clock of this process, in ms since the Unix epoch. */
        readonly now: () => number;
        /**
         * Maximum difference of this process's clock from the clock of Redis and from a cell's newest entry,
         * in ms.
         */
        readonly skewMaxMs: number;
      };
    },
  ) {}

  /** Calls a script that begins with lua/include/cell.lua, and returns its binary reply. */
  async command(operation: string, call: CellCall): Promise<Buffer> {
    const node = this.nodes.of(call.cell);
    const script = node.script(operation);
    return node.run(script, this.#keys(call), this.#args(call, node.knownServerId())) as Promise<Buffer>;
  }

  /** Calls a script like {@link command}, and reports whether every replica of the node has its writes. */
  async replicated(operation: string, call: CellCall): Promise<ReplicatedReply> {
    const node = this.nodes.of(call.cell);
    return node.runReplicated(node.script(operation), this.#keys(call), (serverId) =>
      this.#args(call, serverId),
    );
  }

  #keys({ cell }: CellCall): string[] {
    const name = this.nodes.nameOf(cell);
    return [cellKey(name), partnersKey(name), playersKey(name), gamesKey(name), outboxKey(name)];
  }

  #args(call: CellCall, serverId: string): (string | number | Buffer)[] {
    const { cell, epoch, operationField, operationId, args, answered, reach, newestMove } = call;
    const { outboxMax, clock } = this.options;
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

  /**
   * Counts a failed authentication of a client address. The count never exceeds the limit by more than one.
   */
  async countFailure(address: string, limit: number): Promise<{ count: number; timeMs: number }> {
    const { node, key } = this.nodes.failuresOf(address);
    const reply = await node.run(node.script('countFailure'), [key], [limit]);
    const [count, second] = reply as [number, number];
    return { count, timeMs: second * 1000 };
  }
}
