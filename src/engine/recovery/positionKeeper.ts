/**
 * Keeps the position file: compares it with the stores before any cell is prepared and every ten seconds, and writes it then, at each
 * lease of blocks before they are loaded, and at a stop.
 *
 *   the file is not ahead of Postgres, and names it ──> written: how far the stores are
 *   it is ahead, or names another one ──> the stores were restored: noted in Postgres, and nothing is dealt by any worker
 *   … and `spindle recover --restored` has run since ──> a new file
 *   it is missing at the start, and Postgres has it on record ──> nothing is dealt by this worker until an operator decides
 *   it vanishes while the worker runs ──> reported, and written again from memory
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
/** While nothing is dealt for it: the command may have been run. */
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
  #problem: string | undefined = 'The position file is not compared with Postgres yet';
  #nextAt = 0;
  /** The file is there, and on record in Postgres. */
  #isNoted = false;
  /** performance.now() of the newest write, at first of the start. */
  #writtenAt = performance.now();

  constructor(options: PositionKeeperOptions) {
    super({ everyMs: HELD_EVERY_MS, firstAfterMs: HELD_EVERY_MS });
    this.#options = options;
    const { path, events } = options;
    this.#file = new PositionFile(path, () => events.emit('OutsideCopyVanished', { setting: SETTING, path }));
  }

  /** Before any cell is prepared. */
  override async start(): Promise<void> {
    await this.takeTurn();
    await super.start();
  }

  override async stop(): Promise<void> {
    await super.stop();
    this.#nextAt = 0;
    await withTimeout(this.turn(), STOPPED_WITHIN_MS).catch((error: unknown) => this.onTurnFailed(error));
  }

  /** Why nothing may be dealt; undefined: the file and Postgres agree. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Seconds since this process wrote the file, or since its start. */
  get ageSeconds(): number {
    return (performance.now() - this.#writtenAt) / 1000;
  }

  /** The newest entry that Redis had of a cell under the epoch; 0 where none is known. */
  newestId(cell: number, epoch: bigint): bigint {
    const known = this.#position?.cells[cell];
    return known !== undefined && BigInt(known.epoch) === epoch ? BigInt(known.newestId) : 0n;
  }

  /** A game is leased up to an index: what is leased is loaded once this is written. @throws where it can't be. */
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
    // What this process wrote before stands in for a file that has vanished.
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
    const leased = { ...file?.leases, ...this.#position?.leases };
    const now: Position = {
      id: isOver ? randomUUID() : file.id,
      dataset: datasetId,
      postgres,
      writtenAt: new Date().toISOString(),
      cells,
      leases: leased,
    };
    // Redis may have less than the file says: that stays known until the cell is rebuilt.
    this.#position = isOver ? now : mergePositions(file, now);
    this.#nextAt = performance.now() + EVERY_MS;
    try {
      await this.#write(file?.id);
    } catch (error) {
      // Another worker was faster: its file is compared next.
      if (error instanceof OtherHistoryError) return;
      throw error;
    }
    await this.#note(isOver);
    this.#problem = undefined;
  }

  /** Reports a file that Postgres has on record and that is not there. @returns whether nothing may be dealt without it */
  async #isMissing(): Promise<boolean> {
    const { sql, path, events } = this.#options;
    const reason = await missingCopy(sql, SETTING, path);
    if (reason === undefined) return false;
    if (this.#problem !== reason) events.emit('OutsideCopyMissing', { setting: SETTING, reason });
    this.#problem = reason;
    return true;
  }

  /** Has Postgres remember that the file exists. @param isOver another file was begun */
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

  /** @param replaced id of the history that the position may take the place of, beside its own */
  async #write(replaced?: string): Promise<void> {
    await this.#file
      .write(() => this.#position, replaced)
      .catch((error: unknown) => {
        this.#nextAt = 0;
        throw error;
      });
    this.#writtenAt = performance.now();
  }

  /** What Redis has of a cell under an epoch; 0 where it does not say. */
  async #newestIn(cell: number, epoch: string): Promise<bigint> {
    const head = withTimeout(this.#options.nodes.cell(cell).head(), REDIS_WITHIN_MS);
    const { token, newestEntryId } = await head.catch(() => ({ token: undefined, newestEntryId: undefined }));
    return token?.startsWith(`${epoch}:`) ? (newestEntryId ?? 0n) : 0n;
  }

  /** How the file differs from Postgres; undefined: Postgres is the one, and has what the file says. */
  async #difference(file: Position, postgres: Position['postgres']): Promise<string | undefined> {
    const { sql, datasetId, path } = this.#options;
    if (file.dataset !== datasetId) return `${path} is of another database`;
    const names = {
      systemIdentifier: 'system identifier',
      timeline: 'timeline',
      databaseOid: 'database',
      database: 'database',
    };
    for (const [field, name] of Object.entries(names) as [keyof typeof names, string][]) {
      const [before, now] = [file.postgres[field], postgres[field]];
      if (before !== null && now !== null && before !== now)
        return `Postgres has another ${name} than ${path} remembers (${before}, now ${now}): it was restored, or a standby has taken over`;
    }
    // Read after the file: what the file says was in Postgres before.
    for (const { cell, epoch, cursorId } of await cellLeases(sql)) {
      const known = file.cells[cell];
      if (known !== undefined && (BigInt(known.epoch) > epoch || BigInt(known.bookedId) > cursorId))
        return `Postgres was restored from an older copy: cell ${cell} is booked up to ${cursorId} in epoch ${epoch}, and ${path} says ${known.bookedId} in epoch ${known.epoch}`;
    }
    const games = Object.keys(file.leases).map(Number);
    const ends = await leasedEnds(sql, games);
    const behind = games.find((gameId) => (ends.get(gameId) ?? 0) < file.leases[gameId]!);
    if (behind === undefined) return undefined;
    return `Postgres was restored from an older copy: game ${behind} is leased up to ${ends.get(behind)}, and ${path} says ${file.leases[behind]}`;
  }
}
