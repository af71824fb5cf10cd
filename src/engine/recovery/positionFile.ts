/**
 * The file outside both stores that says how far they are (POSITION_FILE). Several workers may share it: each write reads it, takes the
 * greater of both, and puts a new file in its place. A lock file lets them wait for each other; a process that was paused for so long
 * that others have taken its lock replaces nothing (replaceFile). Writes that are asked for together are one.
 */
import { open, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { makePrivateFolder, readIfThere, replaceFile } from '../../platform/files.js';
import type { Identity } from './positions.store.js';

export interface CellPosition {
  /** Number of its epoch. */
  readonly epoch: string;
  /** The newest entry that is booked. */
  readonly bookedId: string;
  /** The newest entry that Redis has under the epoch. */
  readonly newestId: string;
}

/** What was dealt from stores, and may have been shown. */
export interface Position {
  /** Of this history: another one after each `spindle recover --restored`. */
  readonly id: string;
  readonly dataset: string;
  readonly postgres: Identity;
  readonly writtenAt: string;
  readonly cells: Readonly<Record<string, CellPosition>>;
  /** By game: up to where its outcomes are leased. */
  readonly leases: Readonly<Record<string, number>>;
}

/** What is in the file; undefined: there is none. @throws where it can't be read. */
export async function readPosition(path: string): Promise<Position | undefined> {
  const bytes = await readIfThere(path);
  return bytes === undefined ? undefined : parsePosition(path, bytes.toString('utf8'));
}

function parsePosition(path: string, text: string): Position {
  const position = JSON.parse(text) as Position;
  if (typeof position.id !== 'string' || typeof position.cells !== 'object') {
    throw new Error(`${path} is not a position file`);
  }
  return position;
}

/** The greater of both, as of the second. */
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
  // What Redis had under an epoch that is over says nothing of the one that follows.
  const newestId = older.epoch === newer.epoch ? greater(a.newestId, b.newestId) : newer.newestId;
  return { epoch: newer.epoch, bookedId, newestId };
}

const greater = (a: string, b: string): string => (BigInt(a) >= BigInt(b) ? a : b);

/** A lock that is older is of a process that ended while it held it, or that was paused. */
const LOCK_STALE_MS = 10_000;
const LOCK_WAIT_MS = 20;
const LOCKED_WITHIN_MS = 15_000;

/** The file is of another history than what would be written: another worker has gone on after a restore. */
export class OtherHistoryError extends Error {}

export class PositionFile {
  readonly path: string;
  #writing: Promise<void> = Promise.resolve();
  /** Asked for, and not begun. */
  #next: Promise<void> | undefined;

  /** This process has written it. */
  #isWritten = false;
  readonly #onVanished: () => void;

  /** @param onVanished called where a write finds that what this process wrote before is gone */
  constructor(path: string, onVanished: () => void = () => {}) {
    this.path = path;
    this.#onVanished = onVanished;
  }

  read(): Promise<Position | undefined> {
    return readPosition(this.path);
  }

  /**
   * Resolves once the file has at least what `position` gives when the write begins.
   * @param position undefined: there is nothing to be written
   * @param replaced id of the history that it may take the place of, beside its own
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
      await replaceFile(this.path, (now) => {
        if (now === undefined && this.#isWritten) {
          this.#isWritten = false;
          this.#onVanished();
        }
        const before = now === undefined ? undefined : parsePosition(this.path, now.toString('utf8'));
        if (before !== undefined && before.id !== ours.id && before.id !== replaced)
          throw new OtherHistoryError(`${this.path} is of another history than before`);
        return `${JSON.stringify(before?.id === ours.id ? mergePositions(before, ours) : ours)}\n`;
      });
      this.#isWritten = true;
    } finally {
      await unlock();
    }
  }

  /** @throws where another process holds it for long. */
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
