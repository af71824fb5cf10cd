/** Compares a position file with Postgres. */

import { UnreadableFileError } from '../../platform/files.js';
import type { Sql } from '../../postgres/connection.js';
import { cellLeases } from '../cells/cells.store.js';
import { installation } from './installation.store.js';
import { recordedCopies } from './outsideCopies.store.js';
import { type Position, readPosition } from './positionFile.js';
import type { PositionDifference } from './positionFindings.store.js';
import { identityOf, leasedEnds } from './positions.store.js';

const NAMES = {
  systemIdentifier: 'system identifier',
  timeline: 'timeline',
  databaseOid: 'database',
  database: 'database',
} as const;

/**
 * Describes how a position file differs from Postgres. Undefined if the file belongs to this Postgres, and
 * Postgres has everything that the file records.
 */
export async function differenceOf(
  sql: Sql,
  { path, datasetId }: { readonly path: string; readonly datasetId: string },
  file: Position,
): Promise<PositionDifference | undefined> {
  const postgres = await identityOf(sql);
  if (file.dataset !== datasetId) return { text: `${path} belongs to another database`, mayBeNewest: true };
  const older = (text: string): PositionDifference => ({
    text: `Postgres was restored from an older copy: ${text}`,
    mayBeNewest: false,
  });
  // The cells are read from Postgres after the position file, because everything in the file was in Postgres
  // before it was written to the file.
  for (const { cell, epoch, cursorId } of await cellLeases(sql)) {
    const known = file.cells[cell];
    if (known !== undefined && (BigInt(known.epoch) > epoch || BigInt(known.bookedId) > cursorId))
      return older(
        `it has cell ${cell} up to entry ${cursorId} in epoch ${epoch}, but ${path} has entry ${known.bookedId} in epoch ${known.epoch}`,
      );
  }
  const games = Object.keys(file.leases).map(Number);
  const ends = await leasedEnds(sql, games);
  const behind = games.find((gameId) => (ends.get(gameId) ?? 0) < file.leases[gameId]!);
  if (behind !== undefined)
    return older(
      `game ${behind} is leased up to ${ends.get(behind)}, but up to ${file.leases[behind]} in ${path}`,
    );
  for (const [field, name] of Object.entries(NAMES) as [keyof typeof NAMES, string][]) {
    const [before, now] = [file.postgres[field], postgres[field]];
    if (before !== null && now !== null && before !== now)
      return {
        text: `The ${name} of Postgres is ${now}, but ${path} has ${before}, so Postgres was restored or a standby has taken over`,
        mayBeNewest: true,
      };
  }
  return undefined;
}

/** A position file as a command finds it. */
export interface FoundPosition {
  readonly path: string | undefined;
  readonly position: Position | undefined;
  /** Why the file can't be read; undefined if it can, or if there is none. */
  readonly damage: string | undefined;
  readonly difference: PositionDifference | undefined;
  /** Why Postgres has the file on record and a worker would not find it; undefined if it would. */
  readonly fault: string | undefined;
}

/** @param setting POSITION_FILE of the command; by default the path that Postgres has on record */
export async function findPosition(sql: Sql, setting: string | undefined): Promise<FoundPosition> {
  const recorded = (await recordedCopies(sql)).find((copy) => copy.setting === 'POSITION_FILE');
  const path = setting ?? recorded?.path;
  const none = { path, position: undefined, damage: undefined, difference: undefined, fault: undefined };
  if (path === undefined) return none;
  try {
    const position = await readPosition(path);
    // Without the setting, the command may run on a machine that does not have the file.
    if (position === undefined)
      return recorded && setting ? { ...none, fault: `POSITION_FILE ${path} is missing` } : none;
    const { datasetId } = await installation(sql);
    return { ...none, position, difference: await differenceOf(sql, { path, datasetId }, position) };
  } catch (error) {
    if (!(error instanceof UnreadableFileError)) throw error;
    const fault = recorded && `POSITION_FILE ${path} can't be read: ${error.reason}`;
    return { ...none, damage: error.reason, fault };
  }
}
