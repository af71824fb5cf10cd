/** What is known and written of a cell as a whole: its owner, how far it is, what holds once it is opened. */
import type { MoveStep } from '../../domain/partnerMove.js';
import type { Booked } from './cellRecords.js';
import type { Segments } from './segmentRecords.js';

/** Who writes a cell besides the spin script. */
export interface CellOwner {
  readonly fence: bigint;
  /** Only this run of the server is to be written; undefined: whichever there is. */
  readonly serverId?: string;
  /** It writes as a part of this step of a partner's move: refused once the cell has seen a later step of the partner. */
  readonly step?: MoveStep;
}

/** How an owner names itself to scripts (lua/include/ownerFence.lua). */
export const fenceText = ({ fence, step }: CellOwner): string =>
  step === undefined ? String(fence) : `${fence} ${step.partnerId} ${step.number}`;

/** How far a cell is. */
export interface CellHead {
  /** `<dataset>:<number>:<run of the server>`; undefined: nobody can deal from it. */
  readonly token: string | undefined;
  /** Undefined: it never had one. After a rebuild it may be above every entry that there is. */
  readonly newestEntryId: bigint | undefined;
  /** How far it is known to be booked. */
  readonly booked: Booked | undefined;
  /** Which request ids it holds; undefined: no owner of this version has prepared it. */
  readonly segments: Segments | undefined;
}

/** What is written down of a cell that is opened. */
export interface NewCellHead {
  /** Of one that was used before. */
  readonly booked?: Booked;
  /** Of one that was rebuilt: its next entry comes after this moment, milliseconds since the epoch. */
  readonly lastMs?: number;
  /** Of one that has none: which request ids it holds. */
  readonly segments?: Segments;
  /** The partners that have left it: nothing is dealt for them here, or, where they have come back, for who knows of that move only. */
  readonly away: readonly AwayPartner[];
}

export interface AwayPartner {
  readonly partnerId: number;
  /** The move by which it has come back; undefined: it has not. */
  readonly backBy: number | undefined;
}

/** The field `away` of a cell, as lua/include/away.lua reads it. */
export const writeAway = (partners: readonly AwayPartner[]): string =>
  `;${partners.map(({ partnerId, backBy }) => (backBy === undefined ? `${partnerId};` : `${partnerId}:${backBy};`)).join('')}`;

/** As lua/include/away.lua decides it: the partner has left, or has come back by a move that the caller does not know of. */
export function isTurnedAway(away: string, partnerId: number, knownMove: number): boolean {
  if (away.includes(`;${partnerId};`)) return true;
  const backBy = new RegExp(`;${partnerId}:(\\d+);`).exec(away)?.[1];
  return backBy !== undefined && Number(backBy) > knownMove;
}
