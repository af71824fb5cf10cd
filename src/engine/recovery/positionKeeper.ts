/**
 * Maintains the position file. It is compared with the stores before any cell is prepared and every ten
 * seconds. It is written after each comparison, at each lease of blocks before they are loaded, and at
 * shutdown.
 *
 * - If the file belongs to this Postgres and is not ahead of it, the current watermarks are written.
 * - If the file is ahead, or belongs to another Postgres, the stores were restored. This is recorded in
 *   Postgres, and all workers stop dealing. After `spindle recover --restored`, or `--without POSITION_FILE`,
 *   a new file is begun.
 * - If the file is missing or unreadable at the start although Postgres has it on record, this worker does
 *   not deal until an operator decides.
 * - If the file vanishes or is damaged while the worker runs, this is reported, and the file is written again
 *   from memory.
 */
import { randomUUID } from 'node:crypto';
import { UnreadableFileError } from '../../platform/files.js';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import { withTimeout } from '../../platform/runtime/withTimeout.js';
import { lineOf } from '../../platform/secretsInLogs.js';
import type { Sql } from '../../postgres/connection.js';
import { cellLeases } from '../cells/cells.store.js';
import type { Finding } from '../problems.js';
import type { EventEmitter } from '../processEvents.js';
import type { RedisNodes } from '../redis/nodes.js';
import { missingCopy, noteCopy } from './outsideCopies.store.js';
import { differenceOf } from './positionDifference.js';
import {
  type CellPosition,
  mergePositions,
  OtherHistoryError,
  type Position,
  PositionFile,
} from './positionFile.js';
import { holdForRestore, isAccepted, type PositionDifference } from './positionFindings.store.js';
import { identityOf, leasedEnds } from './positions.store.js';
import { choicesText, restoreCosts } from './restoreCosts.js';

const EVERY_MS = 10_000;
/**
 * Poll interval while dealing is on hold, in ms, because the operator may have run `spindle recover
 * --restored`.
 */
const HELD_EVERY_MS = 1000;
const REDIS_WITHIN_MS = 1500;
const STOPPED_WITHIN_MS = 3000;

const SETTING = 'POSITION_FILE';
/** Time to count what waits in Redis, in ms. */
const COUNTED_WITHIN_MS = 10_000;

export class PositionKeeper extends PeriodicService {
  readonly name = 'position file';
  readonly #file: PositionFile;
  #position: Position | undefined;
  #problem: string | undefined = 'The position file has not been compared with Postgres yet';
  #nextAt = 0;
  /** The difference that is on record, with its reason. */
  #found: { readonly difference: string; readonly reason: string } | undefined;
  /** Why the file could not be written or read in the last turn. */
  #failure: string | undefined;
  /** True if the position file exists and is on record in Postgres. */
  #isNoted = false;
  /**
   * Time of the newest write of the position file, on the scale of performance.now(); initially the time of
   * the start.
   */
  #writtenAt = performance.now();

  constructor(
    private readonly options: {
      readonly path: string;
      readonly sql: Sql;
      readonly nodes: RedisNodes;
      readonly datasetId: string;
      readonly events: EventEmitter;
    },
  ) {
    super({ everyMs: HELD_EVERY_MS });
    const { path, events } = options;
    this.#file = new PositionFile(path, (damage) =>
      events.emit('OutsideCopyVanished', { setting: SETTING, path, damage }),
    );
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

  /** Problems of the file that Postgres does not have on record. */
  findings(): readonly Finding[] {
    if (this.#failure === undefined) return [];
    const message = `POSITION_FILE can't be written: ${this.#failure}`;
    return [{ name: 'copy-unwritable', message, effect: this.#problem ? 'SPINS_REFUSED' : 'WORK_WAITS' }];
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
    const { sql, datasetId } = this.options;
    const [postgres, leases] = [await identityOf(sql), await cellLeases(sql)];
    const read = await this.#read();
    // If the position file has vanished or is damaged, the position that this process last wrote is used.
    const file = read.file ?? (this.#isNoted ? this.#position : undefined);
    if (file === undefined && (await this.#isMissing(read.damage))) return;
    const found = file === undefined ? undefined : await differenceOf(sql, this.options, file);
    if (file !== undefined && found !== undefined && !(await isAccepted(sql, file.id))) {
      await this.#hold(file.id, found);
      return;
    }
    this.#found = undefined;
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
    this.#failure = undefined;
  }

  async #read(): Promise<{ readonly file?: Position | undefined; readonly damage?: string }> {
    try {
      return { file: await this.#file.read() };
    } catch (error) {
      if (error instanceof UnreadableFileError) return { damage: error.reason };
      throw error;
    }
  }

  /** Records that the stores were restored, with what each way out costs. */
  async #hold(id: string, found: PositionDifference): Promise<void> {
    const { sql, nodes, events } = this.options;
    let known = this.#found;
    if (known === undefined || known.difference !== found.text) {
      const reason = choicesText(found, await restoreCosts(sql, nodes, COUNTED_WITHIN_MS));
      events.emit('StoresRestored', { reason });
      known = { difference: found.text, reason };
      this.#found = known;
    }
    const { reason } = known;
    await holdForRestore(sql, id, { reason, mayBeNewest: found.mayBeNewest });
    this.#problem = reason;
  }

  /**
   * Returns the ends of the leases that Postgres has, for a new history. The recovery has resolved all leases
   * beyond them, among them those of games that were created after the restored state.
   */
  async #leasesNow(known: Position['leases']): Promise<Position['leases']> {
    const ends = await leasedEnds(this.options.sql, Object.keys(known).map(Number));
    return Object.fromEntries([...ends].filter(([, end]) => end > 0));
  }

  /**
   * Reports a missing or damaged position file that Postgres has on record.
   * @returns true if dealing is not allowed without it
   */
  async #isMissing(damage: string | undefined): Promise<boolean> {
    const { sql, path, events } = this.options;
    const reason = await missingCopy(sql, SETTING, path, damage);
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
    const { sql, path } = this.options;
    const { id, cells } = this.#position!;
    const newest = Object.values(cells).reduce(
      (most, { bookedId }) => (BigInt(bookedId) > most ? BigInt(bookedId) : most),
      0n,
    );
    await noteCopy(sql, { setting: SETTING, path, copyId: id, newest }, isOver || !this.#isNoted);
    this.#isNoted = true;
  }

  protected override onTurnFailed(error: unknown): void {
    // Errors of files have a path. Those of Postgres are reported elsewhere.
    if ((error as NodeJS.ErrnoException).path !== undefined) this.#failure = lineOf(error);
    this.options.events.emit('TaskFailed', { task: 'position file', error });
  }

  /** @param replaced id of another history whose file may be replaced, too */
  async #write(replaced?: string): Promise<void> {
    await this.#file
      .write(() => this.#position, replaced)
      .catch((error: unknown) => {
        this.#nextAt = 0;
        throw error;
      });
    this.#failure = undefined;
    this.#writtenAt = performance.now();
  }

  /**
   * Returns the newest entry that Redis has of a cell under an epoch, or 0 if Redis does not respond or has
   * another epoch.
   */
  async #newestIn(cell: number, epoch: string): Promise<bigint> {
    const head = withTimeout(this.options.nodes.cell(cell).head(), REDIS_WITHIN_MS);
    const { token, newestEntryId } = await head.catch(() => ({ token: undefined, newestEntryId: undefined }));
    return token?.startsWith(`${epoch}:`) ? (newestEntryId ?? 0n) : 0n;
  }
}
