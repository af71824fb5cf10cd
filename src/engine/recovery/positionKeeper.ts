/**
 * Maintains the position file. It is compared with the stores before any cell is prepared and every ten
 * seconds. It is written after each comparison, at each lease of blocks before they are loaded, and at
 * shutdown.
 *
 * - If the file belongs to this Postgres and is not ahead of it, the current watermarks are written.
 * - If the file is ahead, or belongs to another Postgres, the stores were restored. This is recorded in
 *   Postgres, and all workers stop dealing. After `spindle recover --restored` a new file is begun.
 * - If the file is missing at the start although Postgres has it on record, this worker does not deal until
 *   an operator decides.
 * - If the file vanishes while the worker runs, this is reported, and the file is written again from
 *   memory.
 */
import { randomUUID } from 'node:crypto';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import { withTimeout } from '../../platform/runtime/withTimeout.js';
import type { Sql } from '../../postgres/connection.js';
import { cellLeases } from '../cells/cells.store.js';
import type { EventEmitter } from '../processEvents.js';
import type { RedisNodes } from '../redis/nodes.js';
import { missingCopy, noteCopy } from './outsideCopies.store.js';
import {
  type CellPosition,
  mergePositions,
  OtherHistoryError,
  type Position,
  PositionFile,
} from './positionFile.js';
import { holdForRestore, identityOf, isAccepted, leasedEnds } from './positions.store.js';

const EVERY_MS = 10_000;
/**
 * Poll interval while dealing is on hold, in ms, because the operator may have run `spindle recover
 * --restored`.
 */
const HELD_EVERY_MS = 1000;
const REDIS_WITHIN_MS = 1500;
const STOPPED_WITHIN_MS = 3000;

const SETTING = 'POSITION_FILE';

const RESTORED_COMMAND = 'run `spindle recover --restored`';

export interface PositionKeeperOptions {
  readonly path: string;
  readonly sql: Sql;
  readonly nodes: RedisNodes;
  readonly datasetId: string;
  readonly events: EventEmitter;
}

export class PositionKeeper extends PeriodicService {
  readonly name = 'position file';
  readonly #options: PositionKeeperOptions;
  readonly #file: PositionFile;
  #position: Position | undefined;
  #problem: string | undefined = 'The position file has not been compared with Postgres yet';
  #nextAt = 0;
  /** True if the position file exists and is on record in Postgres. */
  #isNoted = false;
  /**
   * Time of the newest write of the position file, on the scale of performance.now(); initially the time of
   * the start.
   */
  #writtenAt = performance.now();

  constructor(options: PositionKeeperOptions) {
    super({ everyMs: HELD_EVERY_MS, firstAfterMs: HELD_EVERY_MS });
    this.#options = options;
    const { path, events } = options;
    this.#file = new PositionFile(path, () => events.emit('OutsideCopyVanished', { setting: SETTING, path }));
  }

  /** Compares the position file for the first time, before any cell is prepared. */
  override async start(): Promise<void> {
    await this.takeTurn();
    await super.start();
  }

  override async stop(): Promise<void> {
    await super.stop();
    this.#nextAt = 0;
    await withTimeout(this.turn(), STOPPED_WITHIN_MS).catch((error: unknown) => this.onTurnFailed(error));
  }

  /** Reason why dealing is not allowed; undefined if the position file and Postgres agree. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Seconds since this process last wrote the position file, or since its start. */
  get ageSeconds(): number {
    return (performance.now() - this.#writtenAt) / 1000;
  }

  /**
   * Returns the newest entry that Redis is known to have had of a cell under the epoch, or 0 if none is
   * known.
   */
  newestId(cell: number, epoch: bigint): bigint {
    const known = this.#position?.cells[cell];
    return known !== undefined && BigInt(known.epoch) === epoch ? BigInt(known.newestId) : 0n;
  }

  /**
   * Records that a game is leased up to an index. The leased block may be loaded once the write of the
   * position file has completed.
   * @throws Error if the file can't be written
   */
  async leased(gameId: number, toIndex: number): Promise<void> {
    if (this.#problem !== undefined || this.#position === undefined) throw new Error(this.#problem);
    if ((this.#position.leases[gameId] ?? 0) >= toIndex) return;
    this.#position = { ...this.#position, leases: { ...this.#position.leases, [gameId]: toIndex } };
    await this.#write();
  }

  protected async turn(): Promise<void> {
    if (this.#problem === undefined && performance.now() < this.#nextAt) return;
    const { sql, datasetId } = this.#options;
    const [postgres, leases] = [await identityOf(sql), await cellLeases(sql)];
    // If the position file has vanished, the position that this process last wrote is used instead.
    const file = (await this.#file.read()) ?? (this.#isNoted ? this.#position : undefined);
    if (file === undefined && (await this.#isMissing())) return;
    const found = file === undefined ? undefined : await this.#difference(file, postgres);
    if (file !== undefined && found !== undefined && !(await isAccepted(sql, file.id))) {
      const reason = `${found}: ${RESTORED_COMMAND}`;
      await holdForRestore(sql, file.id, reason);
      if (this.#problem !== reason) this.#options.events.emit('StoresRestored', { reason });
      this.#problem = reason;
      return;
    }
    const cells: Record<string, CellPosition> = {};
    for (const { cell, epoch, cursorId } of leases) {
      const newestId = await this.#newestIn(cell, `${datasetId}:${epoch}`);
      cells[cell] = { epoch: `${epoch}`, bookedId: `${cursorId}`, newestId: `${newestId}` };
    }
    const isOver = file === undefined || found !== undefined;
    const isOwn = file === undefined || this.#position?.id === file.id;
    const known = { ...file?.leases, ...(isOwn && this.#position?.leases) };
    const now: Position = {
      id: isOver ? randomUUID() : file.id,
      dataset: datasetId,
      postgres,
      writtenAt: new Date().toISOString(),
      cells,
      leases: found === undefined ? known : await this.#leasesNow(known),
    };
    // Redis may have fewer entries than the position file records. The file keeps the higher watermark until
    // the cell is rebuilt.
    this.#position = isOver ? now : mergePositions(file, now);
    this.#nextAt = performance.now() + EVERY_MS;
    try {
      await this.#write(file?.id);
    } catch (error) {
      // Another worker has written the position file first. The next turn of this task compares that worker's
      // file with the stores.
      if (error instanceof OtherHistoryError) return;
      throw error;
    }
    await this.#note(isOver);
    this.#problem = undefined;
  }

  /**
   * Returns the ends of the leases that Postgres has, for a new history. The recovery has resolved all leases
   * beyond them, among them those of games that were created after the restored state.
   */
  async #leasesNow(known: Position['leases']): Promise<Position['leases']> {
    const ends = await leasedEnds(this.#options.sql, Object.keys(known).map(Number));
    return Object.fromEntries([...ends].filter(([, end]) => end > 0));
  }

  /**
   * Reports a missing position file that Postgres has on record.
   * @returns true if dealing is not allowed without it
   */
  async #isMissing(): Promise<boolean> {
    const { sql, path, events } = this.#options;
    const reason = await missingCopy(sql, SETTING, path);
    if (reason === undefined) return false;
    if (this.#problem !== reason) events.emit('OutsideCopyMissing', { setting: SETTING, reason });
    this.#problem = reason;
    return true;
  }

  /**
   * Records in Postgres that the position file exists.
   * @param isOver true if a new file was begun
   */
  async #note(isOver: boolean): Promise<void> {
    const { sql, path } = this.#options;
    const { id, cells } = this.#position!;
    const newest = Object.values(cells).reduce(
      (most, { bookedId }) => (BigInt(bookedId) > most ? BigInt(bookedId) : most),
      0n,
    );
    await noteCopy(sql, { setting: SETTING, path, copyId: id, newest }, isOver || !this.#isNoted);
    this.#isNoted = true;
  }

  protected onTurnFailed(error: unknown): void {
    this.#options.events.emit('TaskFailed', { task: 'position file', error });
  }

  /** @param replaced id of another history whose file may be replaced, too */
  async #write(replaced?: string): Promise<void> {
    await this.#file
      .write(() => this.#position, replaced)
      .catch((error: unknown) => {
        this.#nextAt = 0;
        throw error;
      });
    this.#writtenAt = performance.now();
  }

  /**
   * Returns the newest entry that Redis has of a cell under an epoch, or 0 if Redis does not respond or has
   * another epoch.
   */
  async #newestIn(cell: number, epoch: string): Promise<bigint> {
    const head = withTimeout(this.#options.nodes.cell(cell).head(), REDIS_WITHIN_MS);
    const { token, newestEntryId } = await head.catch(() => ({ token: undefined, newestEntryId: undefined }));
    return token?.startsWith(`${epoch}:`) ? (newestEntryId ?? 0n) : 0n;
  }

  /**
   * Describes how the position file differs from Postgres. Undefined if the file belongs to this Postgres,
   * and Postgres has everything that the file records.
   */
  async #difference(file: Position, postgres: Position['postgres']): Promise<string | undefined> {
    const { sql, datasetId, path } = this.#options;
    if (file.dataset !== datasetId) return `${path} belongs to another database`;
    const names = {
      systemIdentifier: 'system identifier',
      timeline: 'timeline',
      databaseOid: 'database',
      database: 'database',
    };
    for (const [field, name] of Object.entries(names) as [keyof typeof names, string][]) {
      const [before, now] = [file.postgres[field], postgres[field]];
      if (before !== null && now !== null && before !== now)
        return `The ${name} of Postgres is ${now}, but ${path} has ${before}, so Postgres was restored or a standby has taken over`;
    }
    // The cells are read from Postgres after the position file, because everything in the file was in
    // Postgres before it was written to the file.
    for (const { cell, epoch, cursorId } of await cellLeases(sql)) {
      const known = file.cells[cell];
      if (known !== undefined && (BigInt(known.epoch) > epoch || BigInt(known.bookedId) > cursorId))
        return `Postgres was restored from an older copy: it has cell ${cell} up to entry ${cursorId} in epoch ${epoch}, but ${path} has entry ${known.bookedId} in epoch ${known.epoch}`;
    }
    const games = Object.keys(file.leases).map(Number);
    const ends = await leasedEnds(sql, games);
    const behind = games.find((gameId) => (ends.get(gameId) ?? 0) < file.leases[gameId]!);
    if (behind === undefined) return undefined;
    return `Postgres was restored from an older copy: game ${behind} is leased up to ${ends.get(behind)}, but up to ${file.leases[behind]} in ${path}`;
  }
}
