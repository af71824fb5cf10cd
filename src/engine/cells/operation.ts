/**
 * What an operation of a cell is: one Lua file, one codec, one kind of command. CellClient runs it.
 * To add one: lua/<name>.lua (lua/include/cell.lua has the head of its arguments), a file here with its codec.
 */

/** Where something was done: under which epoch, by which run of the store's server. */
export interface Origin {
  readonly epoch: string;
  readonly serverId: string | undefined;
}

/**
 * Why a command has no reply. `refused`: nothing was done. `unknown`: it may have been done. `epochMoved`: the cell is at
 * another epoch, or holds requestIds no more that it must; whether it was done before is `mayHaveRun`.
 */
export interface CellFailure {
  readonly kind: 'refused' | 'unknown' | 'epochMoved';
  readonly mayHaveRun: boolean;
}

/** What CellClient must know of a command; the codec knows the rest. */
export interface CellRequest {
  readonly cell: number;
  /** Number of the newest move that its caller knows of the partner whose command it is; undefined or 0: none. */
  readonly newestMove: number | undefined;
  /** It is answered only once the ledger has what it booked. */
  readonly waitsForLedger: boolean;
  /** Nobody waits for its reply any more: it is refused where it has not been sent. */
  readonly isGone?: boolean;
  /** It may be done under this epoch only; undefined: under the one that this process believes in. */
  readonly epoch?: string;
  /**
   * It may be done only while Redis holds what requestIds of entries after this one are bound to; undefined: filters say
   * which ids Redis holds no more (requestIds/requestIds.ts).
   */
  readonly runsReachId?: bigint;
  /** When it is given up, as performance.now() counts; undefined: after the client's deadline, from its first try on. */
  readonly deadline?: number;
}

/** A command on its way. Exactly one of `resolve` and `fail` is called, once, after `submit` returned or within it. */
export interface CellCommand<Reply> extends CellRequest {
  resolve(reply: Reply): void;
  fail(failure: CellFailure): void;
}

export type CellArgument = string | number | Buffer;

/** Writes the arguments of a call, and reads its reply. A slot of a queue has one of its own, so it may keep buffers. */
export interface CellCodec<Request, Reply> {
  /** The arguments behind the head. Views in them hold until the next call. */
  encode(requests: readonly Request[]): CellArgument[];
  /** The replies to what was encoded last, in its order. @throws Error where the reply is not one of this operation. */
  decode(reply: Buffer, requests: readonly Request[]): CellReplies<Reply>;
}

export interface CellReplies<Reply> {
  /** Undefined: the call has left the command undone; it goes again, with those that wait. */
  readonly replies: readonly (Reply | undefined)[];
  /** Id of the ledger entry that a reply is about; 0: none. */
  entryId(place: number): bigint;
  /** The place of the newest entry that the call made; undefined: it made none, or the last one that a reply is about. */
  readonly newestPlace?: number | undefined;
  /** A row of the ledger that has the id of the reply's entry is that entry; absent: ids say enough. */
  isEntry?(place: number, row: BookedIdentity): boolean;
}

/** What distinguishes one entry from another that has the same id. */
export interface BookedIdentity {
  readonly partnerId: number;
  readonly playerId: string;
  readonly gameId: number;
  readonly outcomeCode: number;
  readonly balanceMicros: number;
}

export interface CellOperation<Request, Reply> {
  /** lua/<name>.lua */
  readonly name: string;
  /** Commands in one call at the most; 1: the operation is not batched. */
  readonly batchMax: number;
  /** Calls under way for one cell at the most (cellQueue.ts says why that is correct). */
  readonly slots: number;
  /** While a call is under way, another one leaves once so many commands wait; from 1. */
  readonly overlapMin: number;
  /** The cell keeps the newest reply of each slot: a repetition is answered with it. */
  readonly isStored: boolean;
  /** A command waits for a store that is away, until its deadline, where it would be refused otherwise. */
  readonly waitsForStore: boolean;
  /** Whose command it is: partners take turns. */
  partnerOf(request: Request): number;
  codec(): CellCodec<Request, Reply>;
  /** Called with a call's replies before they are answered; not with those that the replicas lack, which wait for the ledger. */
  onReplies?(cell: number, epoch: string, requests: readonly Request[], replies: CellReplies<Reply>): void;
}
