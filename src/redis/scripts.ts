/**
 * The Lua scripts, as one typed function each. Loads lua/*.lua with their includes, calls them by SHA-1, and turns
 * their error replies into the errors below. Nothing else calls EVALSHA.
 */
import type { RedisClient } from './client.js';
import {
  authFailuresKey,
  blockKey,
  cellKey,
  gamesKey,
  outboxKey,
  partnersKey,
  playerField,
  playersKey,
} from './keys.js';
import { adjustmentFingerprint, adjustmentKey, readId, readSafeInt64 } from './records.js';
import { loadScript, type Script, withPlaces } from './scriptLoader.js';

/** The cell is at another epoch than the caller believes, or Redis has lost it. Nothing was done. */
export class EpochError extends Error {}
/** A block was to be loaded that does not begin where the queue ends. Nothing was done. */
export class GapError extends Error {
  readonly queueEnd: number;
  constructor(queueEnd: number) {
    super(`The queue ends at ${queueEnd}`);
    this.queueEnd = queueEnd;
  }
}
/** The connection took nothing: the call never left this process. */
export class NotSentError extends Error {}
/** The store has a newer batch of the same front end; nothing was done now. Whether it was done before can't be told. */
export class StaleError extends Error {}
/** A later owner of the cell has written to it. Nothing was done. */
export class OutrunError extends Error {}
/** Redis refused the script before it ran (out of memory, loading, read only, …). Nothing was done. */
export class RefusedError extends Error {}

/**
 * The field `epoch` of a cell's hash: the epoch, and the run of the server for which a worker has found that the cell
 * holds what the ledger knows. A server that was started again on an older copy can't have it.
 */
export const cellToken = (epoch: string, serverId: string): string => `${epoch}:${serverId}`;

/** Error replies that Redis gives before it runs anything of a script. */
const REFUSED =
  /^(OOM|LOADING|READONLY|MISCONF|MASTERDOWN|BUSY|NOREPLICAS|NOPERM|NOAUTH|WRONGPASS|CLUSTERDOWN)/;

/** What the client library says of a call that it did not write. */
const NOT_SENT = /^Stream isn't writeable/;

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
  readonly luaDir: string;
  readonly idempotencyPeriodSeconds: number;
  /** What may wait in a cell's outbox before nothing more is dealt. */
  readonly outboxMax: { readonly entries: number; readonly bytes: number };
}

/** Who writes a cell besides the spin script. */
export interface CellOwner {
  readonly cell: number;
  readonly fence: bigint;
  /** Only this run of the server is to be written; undefined: whichever there is. */
  readonly serverId?: string;
}

/** Fields of a hash, names and values by turns. */
export type Fields = readonly (string | Buffer)[];

export class Scripts {
  readonly #client: RedisClient;
  readonly #options: ScriptOptions;
  readonly #spin: Script;
  readonly #adjust: Script;
  readonly #loadBlock: Script;
  readonly #countFailure: Script;
  readonly #fencedSet: Script;
  readonly #fencedMark: Script;
  readonly #claimCell: Script;

  constructor(client: RedisClient, options: ScriptOptions) {
    this.#client = client;
    this.#options = options;
    const load = (name: string, flags?: string): Script => loadScript(options.luaDir, name, flags);
    this.#spin = load('deal');
    this.#adjust = load('adjust');
    this.#loadBlock = load('loadBlock');
    this.#countFailure = load('countFailure');
    this.#fencedSet = load('fencedSet');
    // Few bytes, on which it depends that memory becomes free again: taken also where there is none.
    this.#fencedMark = load('fencedSet', 'allow-oom');
    this.#claimCell = load('claimCell', 'allow-oom');
  }

  /**
   * Deals a batch (lua/deal.lua); gives its binary reply.
   * @throws EpochError, RefusedError: nothing was done. Any other error: it may have been done.
   */
  async spin(call: SpinCall): Promise<Buffer> {
    const { cell } = call;
    const { idempotencyPeriodSeconds, outboxMax } = this.#options;
    return this.#call(
      this.#spin,
      [cellKey(cell), partnersKey(cell), playersKey(cell), gamesKey(cell), outboxKey(cell)],
      [
        this.#token(call.epoch),
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
    const reply = (await this.#call(
      this.#adjust,
      [cellKey(cell), partnersKey(cell), playersKey(cell), gamesKey(cell), outboxKey(cell)],
      [
        this.#token(call.epoch),
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

  /**
   * Appends a sealed block to a game's queue (lua/loadBlock.lua); repeatable.
   * @throws EpochError, GapError, RefusedError: nothing was done.
   */
  async loadBlock(
    cell: number,
    epoch: string,
    gameId: number,
    fromIndex: number,
    outcomes: Buffer,
  ): Promise<void> {
    await this.#call(
      this.#loadBlock,
      [cellKey(cell), gamesKey(cell), blockKey(cell, gameId, fromIndex)],
      [this.#token(epoch), gameId, fromIndex, outcomes],
    );
  }

  /** Counts a failed authentication of a client address; the count never goes further than one over the limit. */
  async countFailure(address: string, limit: number): Promise<{ count: number; timeMs: number }> {
    const [count, second] = (await this.#call(this.#countFailure, [authFailuresKey(address)], [limit])) as [
      number,
      number,
    ];
    return { count, timeMs: second * 1000 };
  }

  /**
   * Claims a cell for its owner (lua/claimCell.lua); with `keys`, empties it: `{cN}:cell` and these.
   * @throws OutrunError, RefusedError, NotSentError: nothing was done.
   */
  async claimCell(owner: CellOwner, keys?: readonly string[]): Promise<void> {
    this.#assertServer(owner);
    const args = [String(owner.fence), keys === undefined ? 0 : 1];
    await this.#call(this.#claimCell, [cellKey(owner.cell), ...(keys ?? [])], args);
  }

  /**
   * Writes fields of a hash of a cell that its owner has claimed (lua/fencedSet.lua).
   * @throws OutrunError, RefusedError, NotSentError: nothing was done.
   */
  async fencedSet(owner: CellOwner, key: string, fields: Fields): Promise<void> {
    this.#assertServer(owner);
    const script = key === cellKey(owner.cell) ? this.#fencedMark : this.#fencedSet;
    await this.#call(script, [cellKey(owner.cell), key], [String(owner.fence), ...fields]);
  }

  #assertServer({ serverId }: CellOwner): void {
    if (serverId !== undefined && serverId !== this.#client.serverId) {
      throw new NotSentError('Redis is not connected, or was started again');
    }
  }

  /** What a cell's hash must have as its epoch to be written over this connection. */
  #token(epoch: string): string {
    const { serverId } = this.#client;
    if (serverId === undefined) throw new NotSentError('Redis is not connected');
    return cellToken(epoch, serverId);
  }

  async #call(script: Script, keys: string[], args: (string | number | Buffer)[]): Promise<unknown> {
    try {
      return await this.#client.callBuffer('EVALSHA', script.sha, keys.length, ...keys, ...args);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      // The server doesn't know the script yet: it has not run, so it may be sent whole.
      if (message.startsWith('NOSCRIPT')) {
        try {
          return await this.#client.callBuffer('EVAL', script.source, keys.length, ...keys, ...args);
        } catch (again) {
          throw asScriptError(again, script);
        }
      }
      throw asScriptError(error, script);
    }
  }
}

function asScriptError(error: unknown, script: Script): unknown {
  const message = error instanceof Error ? error.message : String(error);
  if (message.startsWith('EPOCH')) return new EpochError(`The cell is at epoch ${message.slice(6)}`);
  if (message.startsWith('STALE')) return new StaleError('A newer batch of this front end is known');
  if (message.startsWith('FENCED')) return new OutrunError('A later owner of the cell has written to it');
  if (NOT_SENT.test(message)) return new NotSentError(message, { cause: error });
  if (message.startsWith('GAP')) return new GapError(Number(message.slice(4)));
  if (REFUSED.test(message)) return new RefusedError(message, { cause: error });
  if (message.includes('user_script')) return new Error(withPlaces(message, script), { cause: error });
  return error;
}
