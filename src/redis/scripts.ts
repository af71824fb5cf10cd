/** The scripts that partners' and operators' requests call, as one typed function each. A cell's owner: cellStore.ts. */
import {
  authFailuresKey,
  cellKey,
  gamesKey,
  outboxKey,
  partnersKey,
  playerField,
  playersKey,
} from './keys.js';
import type { RedisNodes } from './nodes.js';
import { adjustmentFingerprint, adjustmentKey, cellToken, readId, readSafeInt64 } from './records.js';

export interface SpinCall {
  readonly cell: number;
  /** Dataset and number of the epoch that the caller believes in. */
  readonly epoch: string;
  /** Field of this front end's newest batch, `op:<front end>`. */
  readonly operationField: string;
  /** 8 bytes, a number (little endian) greater than that of any batch before. */
  readonly operationId: Buffer;
  readonly batch: Buffer;
}

export interface AdjustCall {
  readonly cell: number;
  /** Dataset and number of the epoch that the intent was read under. */
  readonly epoch: string;
  /** Greater than that of every intent before with this requestId. */
  readonly intentId: number;
  readonly partnerId: number;
  readonly playerId: string;
  readonly requestId: string;
  /** Of either sign, within ±9e15. */
  readonly amountMicros: number;
  readonly openingBalanceMicros: number;
  /** A debit below zero is refused. */
  readonly enforcesBalance: boolean;
}

export interface AdjustReply {
  /** SPIN_STATUS: dealt (it is done), conflict, insufficientBalance, overflow, outboxFull. */
  readonly status: number;
  /** An earlier call decided it. */
  readonly isEarlier: boolean;
  /** Of the adjustment; 0 where nothing was booked. */
  readonly entryId: bigint;
  /** After it. */
  readonly balanceMicros: number;
}

export interface ScriptOptions {
  readonly idempotencyPeriodSeconds: number;
  /** What may wait in a cell's outbox before nothing more is dealt. */
  readonly outboxMax: { readonly entries: number; readonly bytes: number };
}

export class Scripts {
  readonly #nodes: RedisNodes;
  readonly #options: ScriptOptions;

  constructor(nodes: RedisNodes, options: ScriptOptions) {
    this.#nodes = nodes;
    this.#options = options;
  }

  /**
   * Deals a batch (lua/deal.lua); gives its binary reply.
   * @throws EpochError, RefusedError: nothing was done. Any other error: it may have been done.
   */
  async spin(call: SpinCall): Promise<Buffer> {
    const { cell } = call;
    const { idempotencyPeriodSeconds, outboxMax } = this.#options;
    const node = this.#nodes.of(cell);
    return node.run(
      node.script('deal'),
      [cellKey(cell), partnersKey(cell), playersKey(cell), gamesKey(cell), outboxKey(cell)],
      [
        cellToken(call.epoch, node.knownServerId()),
        cell,
        idempotencyPeriodSeconds,
        outboxMax.entries,
        outboxMax.bytes,
        call.operationField,
        call.operationId,
        call.batch,
      ],
    ) as Promise<Buffer>;
  }

  /**
   * Books an adjustment (lua/adjust.lua), once however often it is called.
   * @throws EpochError, RefusedError, NotSentError: this call did nothing. Any other error: it may have been done.
   */
  async adjust(call: AdjustCall): Promise<AdjustReply> {
    const { cell, partnerId, playerId, requestId, amountMicros } = call;
    const { idempotencyPeriodSeconds, outboxMax } = this.#options;
    const node = this.#nodes.of(cell);
    const reply = (await node.run(
      node.script('adjust'),
      [cellKey(cell), partnersKey(cell), playersKey(cell), gamesKey(cell), outboxKey(cell)],
      [
        cellToken(call.epoch, node.knownServerId()),
        cell,
        idempotencyPeriodSeconds,
        outboxMax.entries,
        outboxMax.bytes,
        '',
        '',
        call.intentId,
        playerField(partnerId, playerId),
        amountMicros,
        call.openingBalanceMicros,
        call.enforcesBalance ? 1 : 0,
        adjustmentKey(partnerId, requestId),
        adjustmentFingerprint(playerId, amountMicros),
        requestId,
      ],
    )) as Buffer;
    return {
      status: reply[0]!,
      isEarlier: reply[1] === 1,
      entryId: readId(reply, 2),
      balanceMicros: readSafeInt64(reply, 12),
    };
  }

  /** Counts a failed authentication of a client address; the count never goes further than one over the limit. */
  async countFailure(address: string, limit: number): Promise<{ count: number; timeMs: number }> {
    const node = this.#nodes.all[0]!;
    const reply = await node.run(node.script('countFailure'), [authFailuresKey(address)], [limit]);
    const [count, second] = reply as [number, number];
    return { count, timeMs: second * 1000 };
  }
}
