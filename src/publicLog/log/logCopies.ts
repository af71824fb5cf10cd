/**
 * Keeps evidence of signed trees outside Postgres after each publication: the newest note in Redis, and all
 * published files in LOG_COPY_DIR, named as in C2SP tlog-tiles.
 *
 * The folder advances from one published checkpoint to a later one. The file with the checkpoint is written
 * after all others, so even after an interruption the folder has every file that its checkpoint covers.
 * Several workers may share a folder.
 */
import { rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { BUNDLES } from '../../domain/publicLog/growth.js';
import {
  cutTile,
  newTiles,
  TILE_WIDTH,
  type TilePlace,
  tilePath,
  widthAt,
} from '../../domain/publicLog/tiles.js';
import { type EventEmitter, taskFailed } from '../../engine/processEvents.js';
import { noteCopy } from '../../engine/recovery/outsideCopies.store.js';
import type { RedisNodes } from '../../engine/redis/nodes.js';
import {
  closeFolder,
  makePrivateFolder,
  readIfThere,
  replaceFile,
  writeDurably,
} from '../../platform/files.js';
import { IDLE, PeriodicService, WOKEN_MS } from '../../platform/runtime/periodicService.js';
import type { Sql } from '../../postgres/connection.js';
import { checkpointOf } from './evidenceWatch.js';
import { hashOfOrigin } from './forkEvidence.js';
import { checkpointAfter, logOrigins, logState } from './publicLog.store.js';
import { PublicLogReads, type Published, readTiles } from './publicLogReads.store.js';

/** Interval between attempts to write the copies after a failure, in ms. */
const EVERY_MS = 2000;
/** Interval between two updates of the copy's record in Postgres, in ms. */
const RECORDED_EVERY_MS = 10_000;
/** Number of files read and written concurrently. */
const AT_ONCE = 8;

export class LogCopies extends PeriodicService {
  readonly name = 'public log copy';
  readonly #reads: PublicLogReads;
  /** Newest note that this process has stored in Redis. */
  #noted: string | undefined;
  /** Newest note that this process has stored in the folder. */
  #copied: string | undefined;
  /**
   * Origin of the log whose copy this process has recorded in Postgres. `#recordAt` is the time of the next
   * update of this record, as a value of performance.now().
   */
  #recorded: string | undefined;
  #recordAt = 0;
  /**
   * Time since which a published checkpoint is missing in Redis or in the folder, as a value of
   * performance.now().
   */
  #behindSince: number | undefined;

  constructor(
    private readonly options: {
      readonly sql: Sql;
      readonly nodes: Pick<RedisNodes, 'keepLogNote'>;
      /** Folder LOG_COPY_DIR; undefined if not set. */
      readonly folder: string | undefined;
      /** Returns the reason why nothing may be written yet, or undefined. */
      readonly problem: () => string | undefined;
      /**
       * Checks a checkpoint of another process.
       * @returns whether it is evidence of a fork
       */
      readonly judge: (source: { readonly from: string; readonly note: string }) => Promise<boolean>;
      readonly events: EventEmitter;
    },
  ) {
    super(
      { everyMs: EVERY_MS, firstAfterMs: 0, idleMs: WOKEN_MS },
      taskFailed(options.events, 'public log copy'),
    );
    this.#reads = new PublicLogReads(options.sql);
  }

  /**
   * Number of seconds for which a published checkpoint has been missing in Redis or in the folder; 0 if
   * neither lacks one.
   */
  get behindSeconds(): number {
    return this.#behindSince === undefined ? 0 : (performance.now() - this.#behindSince) / 1000;
  }

  /** Updates the copies of the public log now, because a new checkpoint may have been published. */
  wake(): void {
    this.hurry();
  }

  protected async turn(): Promise<typeof IDLE | undefined> {
    const { sql, folder, problem } = this.options;
    if (problem() !== undefined || (await logState(sql))?.halt !== null) return;
    const published = await this.#reads.published();
    if (published === undefined) return IDLE;
    this.#behindSince ??= performance.now();
    const results = await Promise.allSettled([
      this.#note(published),
      folder === undefined ? true : this.#copy(folder, published),
    ]);
    const failed = results.find((each) => each.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    const isWhole = results.every((each) => each.status === 'fulfilled' && each.value);
    if (!isWhole) {
      this.hurry();
      return;
    }
    this.#behindSince = undefined;
    return IDLE;
  }

  async #note({ origin, size, note }: Published): Promise<boolean> {
    if (note !== this.#noted) await this.options.nodes.keepLogNote(hashOfOrigin(origin), size, note);
    this.#noted = note;
    return true;
  }

  /**
   * Writes the next published checkpoint and its tiles to the folder.
   * @returns whether the folder is complete
   */
  async #copy(folder: string, published: Published): Promise<boolean> {
    const { sql } = this.options;
    // Earlier versions of the service left the folder readable by everybody.
    if (this.#copied === undefined) await closeFolder(folder);
    const have = await this.#sizeIn(folder, published.origin);
    const isLast = have >= published.size;
    const next = isLast ? published : ((await checkpointAfter(sql, published.logId, have)) ?? published);
    // The notes are compared and not the sizes of their trees, because the same tree may have received
    // further cosignatures.
    if (have <= next.size && next.note !== this.#copied) {
      await this.#write(folder, published.logId, have, next);
      this.#copied = next.note;
    }
    await this.#record(folder, published.origin, Math.max(have, next.size));
    return next.size >= published.size;
  }

  async #record(folder: string, origin: string, size: number): Promise<void> {
    const isBegun = this.#recorded !== origin;
    if (!isBegun && performance.now() < this.#recordAt) return;
    const copy = { setting: 'LOG_COPY_DIR', path: folder, copyId: origin, newest: BigInt(size) } as const;
    await noteCopy(this.options.sql, copy, isBegun);
    this.#recorded = origin;
    this.#recordAt = performance.now() + RECORDED_EVERY_MS;
  }

  /**
   * Returns the number of records of this log in the folder.
   * @throws Error if the folder is not a copy of this log
   */
  async #sizeIn(folder: string, origin: string): Promise<number> {
    const note = (await readIfThere(join(folder, 'checkpoint')))?.toString('utf8');
    const found = note === undefined ? undefined : checkpointOf(note);
    if (note === undefined || found === undefined) {
      if (this.#copied !== undefined) {
        const damage = note === undefined ? undefined : 'its checkpoint is cut off';
        this.options.events.emit('OutsideCopyVanished', { setting: 'LOG_COPY_DIR', path: folder, damage });
        this.#copied = undefined;
      }
      return 0;
    }
    if (found.origin !== origin) {
      await this.#setAside(folder, found.origin);
      return 0;
    }
    if (note !== this.#copied && (await this.options.judge({ from: 'LOG_COPY_DIR', note })))
      throw new Error(`LOG_COPY_DIR ${folder} has a different tree of the public log`);
    return found.size;
  }

  /**
   * Moves the copy of a replaced log to a subfolder that has the hash of the log's origin as its name, like
   * the path under which the log is served.
   * @throws Error if the log does not belong to this database
   */
  async #setAside(folder: string, origin: string): Promise<void> {
    if (!(await logOrigins(this.options.sql)).includes(origin))
      throw new Error(`LOG_COPY_DIR ${folder} has the log ${origin}, which does not belong to this database`);
    const aside = join(folder, hashOfOrigin(origin));
    await makePrivateFolder(aside);
    for (const name of ['tile', 'checkpoint'])
      await rename(join(folder, name), join(aside, name)).catch((error: unknown) => {
        // Another worker, or an earlier attempt that was interrupted, has already moved the file.
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      });
  }

  async #write(
    folder: string,
    logId: number,
    have: number,
    { size, note }: { readonly size: number; readonly note: string },
  ): Promise<void> {
    const places = newTiles(have, size);
    for (let at = 0; at < places.length; at += AT_ONCE) {
      const some = places.slice(at, at + AT_ONCE);
      const levelOf = ({ level }: TilePlace): number => (level === 'entries' ? BUNDLES : level);
      const wanted = some.map((place) => ({ level: levelOf(place), index: place.index }));
      const tiles = await readTiles(this.options.sql, logId, wanted);
      await Promise.all(
        some.map(async (place) => {
          const bytes = cutTile(place, tiles.get(`${levelOf(place)}/${place.index}`) ?? Buffer.alloc(0));
          if (bytes === undefined) throw new Error(`The public log lacks ${tilePath(place)}`);
          await writeDurably(join(folder, tilePath(place)), bytes);
        }),
      );
    }
    await replaceFile(join(folder, 'checkpoint'), (now) => {
      // Another worker may have written a later checkpoint while this process was paused.
      const kept = now === undefined ? undefined : checkpointOf(now.toString('utf8'));
      return kept !== undefined && kept.origin === checkpointOf(note)?.origin && kept.size > size
        ? undefined
        : note;
    });
    // Removes partial tiles that are now full.
    for (const { level, index, width } of places) {
      const before = widthAt(level, index, have);
      if (width < TILE_WIDTH || before === 0) continue;
      const partial = `${join(folder, tilePath({ level, index, width }))}.p`;
      if ((await stat(partial).catch(() => undefined)) !== undefined) await rm(partial, { recursive: true });
    }
  }
}
