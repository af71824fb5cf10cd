/**
 * Fields that describe a cell as a whole: its owner, its watermarks, and the values that are set when it is
 * opened.
 */
import type { MoveStep } from '../../domain/partnerMove.js';
import type { Booked } from './cellRecords.js';
import type { Segments } from './segmentRecords.js';

/** The owner of a cell, whose writes are checked by its fence. */
export interface CellOwner {
  readonly fence: bigint;
  /**
   * `run_id` of the Redis server to which the owner may write; undefined if the owner may write to any run of
   * the server.
   */
  readonly serverId?: string;
  /**
   * Step of a partner's move that the owner's write belongs to. The write is refused once the cell has seen a
   * later step for the partner.
   */
  readonly step?: MoveStep;
}

/**
 * The owner's argument to scripts: its fence. If the write belongs to a partner's move, the step of the move
 * follows (lua/include/ownerFence.lua).
 */
export const fenceText = ({ fence, step }: CellOwner): string =>
  step === undefined ? String(fence) : `${fence} ${step.partnerId} ${step.number}`;

export interface CellHead {
  /** `<dataset>:<number>:<server run>`; undefined if the cell can't be dealt from. */
  readonly token: string | undefined;
  /**
   * Id of the cell's newest entry; undefined if the cell has never had one. After a rebuild the id may be
   * higher than that of any existing entry.
   */
  readonly newestEntryId: bigint | undefined;
  /** Watermark of the entries that Redis knows to be committed. */
  readonly booked: Booked | undefined;
  /** Request ids that the cell holds; undefined if no owner of this version has prepared the cell. */
  readonly segments: Segments | undefined;
}

export interface NewCellHead {
  /** Watermark of committed entries, for a cell that was used before. */
  readonly booked?: Booked;
  /** For a rebuilt cell: the time that its next entry must be after, in ms since the Unix epoch. */
  readonly lastMs?: number;
  /** Initial request-id segments, for a cell that has none. */
  readonly segments?: Segments;
  /**
   * Partners that have left the cell. Commands for them are rejected. If a partner has come back, a command
   * is rejected only if its caller does not know of the move back.
   */
  readonly away: readonly AwayPartner[];
}

export interface AwayPartner {
  readonly partnerId: number;
  /** Number of the move by which the partner came back to the cell; undefined if it has not come back. */
  readonly backBy: number | undefined;
}

/** Encodes the field `away` of a cell in the format of lua/include/away.lua. */
export const writeAway = (partners: readonly AwayPartner[]): string =>
  `;${partners.map(({ partnerId, backBy }) => (backBy === undefined ? `${partnerId};` : `${partnerId}:${backBy};`)).join('')}`;

/**
 * Makes the same decision as lua/include/away.lua: true if the partner has left, or came back by a move that
 * the caller does not know of.
 */
export function isTurnedAway(away: string, partnerId: number, knownMove: number): boolean {
  if (away.includes(`;${partnerId};`)) return true;
  const backBy = new RegExp(`;${partnerId}:(\\d+);`).exec(away)?.[1];
  return backBy !== undefined && Number(backBy) > knownMove;
}
