/**
 * Defines the operations of a cell. Each consists of one Lua file, one codec and one type of command, and is
 * run by CellClient.
 *
 * To add an operation, write lua/<name>.lua (lua/include/cell.lua describes its leading arguments) and a file
 * with its codec in this folder.
 */

/** The epoch and the server run under which a command was executed. */
export interface Origin {
  readonly epoch: string;
  readonly serverId: string | undefined;
}

/**
 * Reason why a command has no reply.
 * - `refused`: nothing was done.
 * - `unknown`: the command may have been executed.
 * - `epochMoved`: the cell has another epoch, or has released request ids that it must hold. `mayHaveRun`
 *   tells whether an earlier attempt may have been executed.
 */
export interface CellFailure {
  readonly kind: 'refused' | 'unknown' | 'epochMoved';
  readonly mayHaveRun: boolean;
}

/** Fields of a command that CellClient uses. All further fields are for the codec. */
export interface CellRequest {
  readonly cell: number;
  /**
   * Number of the newest move of the command's partner that the caller knows of; undefined or 0 if it knows
   * of none.
   */
  readonly newestMove: number | undefined;
  readonly waitsForLedger: boolean;
  /**
   * Returns true if the command must not be sent any more: its caller has left, or has lost its permission
   * while the command waited. Asked before each attempt that would be the first to have an effect.
   */
  isGone?(): boolean;
  /**
   * The only epoch under which the command may be executed; undefined for the current epoch in this process's
   * catalog.
   */
  readonly epoch?: string;
  /**
   * The command may be executed only while Redis still has the request ids of all entries after this one. If
   * undefined, the filters tell which ids Redis has released (requestIds/requestIds.ts).
   */
  readonly runsReachId?: bigint;
  /**
   * Deadline of the command, on the scale of performance.now(). For a partner's request it counts from the
   * arrival, so the time in the waiting list is part of it. If undefined, the client's deadline applies,
   * counted from the first attempt.
   */
  readonly deadline?: number;
}

/** A submitted command. Exactly one of `resolve` and `fail` is called, once, during or after `submit`. */
export interface CellCommand<Reply> extends CellRequest {
  resolve(reply: Reply): void;
  fail(failure: CellFailure): void;
}

export type CellArgument = string | number | Buffer;

/**
 * Encodes the arguments of a call and decodes its reply. Each slot of a queue has its own codec, so a codec
 * may reuse buffers.
 */
export interface CellCodec<Request, Reply> {
  /** Encodes the arguments that follow the head. Views in the result are valid until the next call. */
  encode(requests: readonly Request[]): CellArgument[];
  /**
   * Decodes the replies to the requests that were encoded last. The replies have the order of the requests.
   * @throws Error if the bytes are not a reply of this operation
   */
  decode(reply: Buffer, requests: readonly Request[]): CellReplies<Reply>;
}

export interface CellReplies<Reply> {
  /**
   * Replies by position of the command. A reply is undefined if the call did not execute its command, which
   * is then sent again with the waiting commands.
   */
  readonly replies: readonly (Reply | undefined)[];
  /** Id of the ledger entry that a reply refers to; 0 if there is none. */
  entryId(place: number): bigint;
  /**
   * Position of the command whose entry is the newest that the call made. If undefined, the call made no
   * entry, or the last reply has the newest entry.
   */
  readonly newestPlace?: number | undefined;
  /**
   * Returns whether the given ledger row is the entry that a reply refers to. The row has the id of that
   * entry. Absent if a comparison of the ids is sufficient.
   */
  isEntry?(place: number, row: BookedIdentity): boolean;
}

/** Fields that distinguish two entries with the same id. */
export interface BookedIdentity {
  readonly partnerId: number;
  readonly playerId: string;
  readonly gameId: number;
  readonly outcomeCode: number;
  readonly balanceMicros: number;
}

export interface CellOperation<Request, Reply> {
  /** Name of the operation and of its script, lua/<name>.lua. */
  readonly name: string;
  /** Maximum number of commands in one call; 1 if the operation is not batched. */
  readonly batchMax: number;
  /** Maximum number of concurrent calls to one cell (cellQueue.ts explains why several are safe). */
  readonly slots: number;
  /** Number of waiting commands that start a further call while another call is under way; at least 1. */
  readonly overlapMin: number;
  /**
   * True if the cell stores the newest reply of each slot, so that a repeated call is answered with the
   * stored reply.
   */
  readonly isStored: boolean;
  /** True if a command waits until its deadline while Redis is unreachable. Otherwise it is refused. */
  readonly waitsForStore: boolean;
  /** Returns the partner of a command. Partners take turns in the queue. */
  partnerOf(request: Request): number;
  codec(): CellCodec<Request, Reply>;
  /**
   * Called with the replies of a call before its commands are answered. The function is not called if the
   * replicas lack the call's writes, because such replies wait for the ledger.
   */
  onReplies?(cell: number, epoch: string, requests: readonly Request[], replies: CellReplies<Reply>): void;
}
