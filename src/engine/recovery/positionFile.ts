/**
 * The position file outside both stores (POSITION_FILE), which records the watermarks of the stores. Several
 * workers may share the file. To write its position, a worker reads the file, takes the greater of each
 * watermark, and replaces the file.
 *
 * Writers wait for each other by means of a lock file. A process whose lock was taken over while it was
 * paused replaces nothing (replaceFile). Concurrent requests to write share one write.
 */
import { open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Type } from '#typebox';
import { Compile } from '#typebox/compile';
import { makePrivateFolder, readIfThere, replaceFile, UnreadableFileError } from '../../platform/files.js';
import type { Identity } from './positions.store.js';

const Id = Type.String({ pattern: '^[0-9]{1,19}$' });
const OrNull = Type.Union([Type.String(), Type.Null()]);
/** What this version needs of a position file. Other versions may have added members. */
const FORM = Compile(
  Type.Object({
    // The id becomes a uuid in Postgres.
    id: Type.String({ pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' }),
    dataset: Type.String(),
    postgres: Type.Object({
      systemIdentifier: OrNull,
      timeline: OrNull,
      databaseOid: Type.String(),
      database: Type.String(),
    }),
    writtenAt: Type.String(),
    cells: Type.Record(Type.String(), Type.Object({ epoch: Id, bookedId: Id, newestId: Id })),
    leases: Type.Record(Type.String(), Type.Number({ minimum: 0 })),
  }),
);

export interface CellPosition {
  readonly epoch: string;
  /** The newest committed entry of the cell. */
  readonly bookedId: string;
  /** The newest entry of the cell that Redis has under the epoch. */
  readonly newestId: string;
}

/** Watermarks of everything that was dealt from the stores and may have been revealed to players. */
export interface Position {
  /**
   * Id of the history that the position belongs to. Each `spindle recover --restored` begins a new history.
   */
  readonly id: string;
  readonly dataset: string;
  readonly postgres: Identity;
  readonly writtenAt: string;
  readonly cells: Readonly<Record<string, CellPosition>>;
  /** End of the leased outcomes, by game. */
  readonly leases: Readonly<Record<string, number>>;
}

/**
 * Reads the position file; undefined if it does not exist.
 * @throws UnreadableFileError if it is damaged, or this process may not read it
 */
export async function readPosition(path: string): Promise<Position | undefined> {
  const bytes = await readIfThere(path);
  return bytes === undefined ? undefined : parsePosition(path, bytes.toString('utf8'));
}

function parsePosition(path: string, text: string): Position {
  if (text.trim() === '') throw new UnreadableFileError(path, 'it is empty');
  let position: unknown;
  try {
    position = JSON.parse(text);
  } catch {
    throw new UnreadableFileError(path, 'it is cut off or damaged');
  }
  if (!FORM.Check(position))
    throw new UnreadableFileError(path, "it isn't a position file, or another version has written it");
  return position;
}

/**
 * Merges two positions: takes the greater watermark of each cell and game, and all other fields from the
 * second position.
 */
export function mergePositions(one: Position, other: Position): Position {
  const cells: Record<string, CellPosition> = { ...one.cells };
  for (const [cell, theirs] of Object.entries(other.cells)) {
    const ours = cells[cell];
    cells[cell] = ours === undefined ? theirs : furtherCell(ours, theirs);
  }
  const leases: Record<string, number> = { ...one.leases };
  for (const [game, end] of Object.entries(other.leases)) leases[game] = Math.max(end, leases[game] ?? 0);
  return { ...other, cells, leases };
}

function furtherCell(a: CellPosition, b: CellPosition): CellPosition {
  const [older, newer] = BigInt(a.epoch) <= BigInt(b.epoch) ? [a, b] : [b, a];
  const bookedId = greater(a.bookedId, b.bookedId);
  // The newest entry under an epoch that has ended is not comparable with the newest entry under the next
  // epoch.
  const newestId = older.epoch === newer.epoch ? greater(a.newestId, b.newestId) : newer.newestId;
  return { epoch: newer.epoch, bookedId, newestId };
}

const greater = (a: string, b: string): string => (BigInt(a) >= BigInt(b) ? a : b);

/**
 * Age at which a lock file is considered abandoned, in ms. The process that made it has ended or was paused.
 */
const LOCK_STALE_MS = 10_000;
const LOCK_WAIT_MS = 20;
const LOCKED_WITHIN_MS = 15_000;

/**
 * The position file belongs to another history than the position to be written, because another worker has
 * continued after a restore.
 */
export class OtherHistoryError extends Error {}

export class PositionFile {
  #writing: Promise<void> = Promise.resolve();
  /** A write of the position file that was requested but has not begun. */
  #next: Promise<void> | undefined;

  #isWritten = false;

  /**
   * @param onVanished called if a write finds that the file, which this process wrote before, no longer
   * exists or can't be read any more
   */
  constructor(
    readonly path: string,
    private readonly onVanished: (damage?: string) => void = () => {},
  ) {}

  read(): Promise<Position | undefined> {
    return readPosition(this.path);
  }

  /**
   * Resolves once the file contains at least the position that `position` returns. The function `position` is
   * called when the write begins.
   * @param position returns undefined if there is nothing to write
   * @param replaced id of another history whose file may be replaced, too
   * @throws OtherHistoryError
   */
  write(position: () => Position | undefined, replaced?: string): Promise<void> {
    this.#next ??= this.#writing
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        this.#writing = this.#write(position, replaced);
        return this.#writing;
      });
    return this.#next;
  }

  async #write(position: () => Position | undefined, replaced: string | undefined): Promise<void> {
    const ours = position();
    if (ours === undefined) return;
    await makePrivateFolder(dirname(this.path));
    const unlock = await this.#lock();
    try {
      await this.#setAside();
      await replaceFile(this.path, (now) => {
        const before = this.#parse(now);
        if (before !== undefined && before.id !== ours.id && before.id !== replaced)
          throw new OtherHistoryError(`${this.path} has another history than before`);
        return `${JSON.stringify(before?.id === ours.id ? mergePositions(before, ours) : ours)}\n`;
      });
      this.#isWritten = true;
    } finally {
      await unlock();
    }
  }

  /** Renames what can't even be opened, so that it doesn't keep a new file from being written. */
  async #setAside(): Promise<void> {
    try {
      await readIfThere(this.path);
    } catch (error) {
      if (!(error instanceof UnreadableFileError)) throw error;
      await rename(this.path, `${this.path}.damaged`);
      this.#tellVanished(error.reason);
    }
  }

  /** @param damage why the file can't be read; undefined if there is none */
  #tellVanished(damage?: string): void {
    if (this.#isWritten) this.onVanished(damage);
    this.#isWritten = false;
  }

  #parse(now: Buffer | undefined): Position | undefined {
    if (now === undefined) {
      this.#tellVanished();
      return undefined;
    }
    try {
      return parsePosition(this.path, now.toString('utf8'));
    } catch (error) {
      if (!(error instanceof UnreadableFileError)) throw error;
      this.#tellVanished(error.reason);
      return undefined;
    }
  }

  /** @throws Error if another process holds the lock file for too long */
  async #lock(): Promise<() => Promise<void>> {
    const path = `${this.path}.lock`;
    const deadline = performance.now() + LOCKED_WITHIN_MS;
    for (;;) {
      try {
        await (await open(path, 'wx', 0o600)).close();
        return () => rm(path, { force: true });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || performance.now() > deadline) throw error;
      }
      const held = await stat(path).catch(() => undefined);
      if (held !== undefined && Date.now() - held.mtimeMs > LOCK_STALE_MS) await rm(path, { force: true });
      await pause(LOCK_WAIT_MS);
    }
  }
}
