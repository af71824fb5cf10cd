/**
 * Archives one day of the ledger. The files are written under temporary names, read back and compared with
 * the database. Only after that are they renamed, and the day is recorded as archived.
 *
 *   files as .part ──> read back ──> totals equal the database's ──> files renamed ──> manifest renamed
 *     ──> recorded (ledger_days, audit log)
 *
 * A folder that holds a different archive of the same day is never overwritten (earlierArchive.ts).
 *
 * An interrupted run can be repeated and produces the same bytes. Rows have a fixed order, and values that
 * may change later (thresholds, reports) are taken from the recorded manifest if the day has one.
 */
import { open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { dayOf } from '../../domain/days.js';
import {
  ARCHIVE_FILES,
  ARCHIVE_SCHEMA,
  type ArchiveFile,
  differingTotals,
  type FileSeal,
  fileName,
  MANIFEST,
  type Manifest,
  manifestText,
  sha256,
} from '../../domain/ledgerDay.js';
import { overAfterMs } from '../../domain/settlement.js';
import { makePrivateFolder, openPrivate } from '../../platform/files.js';
import { DutyCycle } from '../../platform/runtime/dutyCycle.js';
import { databaseTimeMs } from '../../postgres/clock.js';
import type { Sql } from '../../postgres/connection.js';
import { COLUMNS } from './columns.js';
import { DayRefused, makeWay, refuseOtherDataset } from './earlierArchive.js';
import { type DaySource, idsOfDay, recordArchive, withDay } from './ledgerDays.store.js';
import { ParquetFile } from './parquetFile.js';
import { type ArchiveProgress, readTotals } from './readArchive.js';

export type ArchiveStep = 'archive.written' | 'archive.read-back' | 'archive.renamed' | 'archive.recorded';

export interface ArchiveOptions {
  readonly day: string;
  /** Each day has its own folder in this directory. */
  readonly directory: string;
  /** Name of the person or process that archives the day, for the audit log. */
  readonly actor: string;
  /**
   * Current UTC day, YYYY-MM-DD; only earlier days are complete. Default: the earlier of the days by the
   * clocks of this process and of Postgres.
   */
  readonly today?: string;
  /** Maximum difference between the clocks of two machines, in ms. */
  readonly clockSkewMaxMs?: number;
  /**
   * If true, a different archive of the same day in the directory is moved aside and kept. If false, such a
   * day is refused with DayRefused.
   */
  readonly isToReplace?: boolean;
  readonly onProgress?: ArchiveProgress;
  readonly onFailpoint?: (step: ArchiveStep) => void;
}

export interface Archived {
  readonly day: string;
  readonly entries: number;
  readonly bytes: number;
  readonly manifestHash: string;
  /**
   * True if the day had already been archived. The new files are then byte-for-byte the same as the earlier
   * ones.
   */
  readonly isRepeated: boolean;
  /**
   * Folder to which a different archive of the day, made earlier, was moved; null if the directory had no
   * such archive.
   */
  readonly replaced: string | null;
}

export async function archiveDay(sql: Sql, options: ArchiveOptions): Promise<Archived> {
  const { day, directory, actor, onFailpoint = () => {} } = options;
  const folder = join(directory, day);
  const nowMs = Math.min(Date.now(), await databaseTimeMs(sql));
  const today = options.today ?? dayOf(nowMs - overAfterMs(options.clockSkewMaxMs ?? 0));
  const { manifest, isRepeated } = await withDay(sql, { day, today }, async (source) => {
    const earlier = checkArchivable(day, source);
    await refuseOtherDataset(directory, day, source.datasetId);
    await makePrivateFolder(folder);
    const largeWins =
      earlier === undefined
        ? source.largeWinMicros
        : new Map(Object.entries(earlier.largeWinMicros).map(([id, micros]) => [Number(id), micros]));
    const files = await writeFiles(source, folder, largeWins, options);
    onFailpoint('archive.written');
    const made = earlier ?? (await manifestOf(day, source, files));
    await compare(made, files, source, folder, options);
    onFailpoint('archive.read-back');
    return { manifest: made, isRepeated: earlier !== undefined };
  });
  const replaced = await makeWay(folder, manifest, options.isToReplace ?? false).catch(async (error) => {
    for (const name of ARCHIVE_FILES) await rm(part(folder, name), { force: true });
    throw error;
  });
  await putInPlace(folder, manifest);
  onFailpoint('archive.renamed');
  const text = manifestText(manifest);
  const bytes = ARCHIVE_FILES.reduce((sum, file) => sum + manifest.files[file].bytes, 0);
  const archived = {
    day,
    entries: manifest.files.ledger.rows,
    archiveBytes: bytes,
    manifest: text,
    manifestHash: sha256(text),
  };
  await recordArchive(sql, actor, archived);
  onFailpoint('archive.recorded');
  const { entries, manifestHash } = archived;
  return { day, entries, bytes, manifestHash, isRepeated, replaced: replaced ?? null };
}

/**
 * Returns the recorded manifest of the day, or undefined if the day has not been archived yet.
 * @throws DayRefused if the day can't be archived
 */
function checkArchivable(day: string, source: DaySource): Manifest | undefined {
  if (source.archived?.isDropped)
    throw new DayRefused(`${day} is dropped, so the ledger no longer has its entries`);
  if (source.archived !== undefined) return JSON.parse(source.archived.text) as Manifest;
  if (source.firstToArchive !== undefined)
    throw new DayRefused(
      `${source.firstToArchive} must be archived before ${day}, because each manifest names the previous one`,
    );
  if (!source.isBooked) {
    throw new DayRefused(
      `${day} is OPEN. It can be archived once each partner has a complete settlement report of the day and every round dealt on that day has ended`,
    );
  }
  return undefined;
}

/**
 * Maximum fraction of time that an archive run spends reading, so that the service and other queries to
 * Postgres have priority.
 */
const SHARE = 0.5;

const part = (folder: string, file: ArchiveFile): string => join(folder, `${fileName(file)}.part`);

async function writeFiles(
  source: DaySource,
  folder: string,
  largeWins: ReadonlyMap<number, number>,
  { onProgress }: ArchiveOptions,
): Promise<Manifest['files']> {
  const seals: Partial<Record<ArchiveFile, FileSeal>> = {};
  const pace = new DutyCycle(SHARE);
  for (const name of ARCHIVE_FILES) {
    const file = await ParquetFile.create(part(folder, name), COLUMNS[name]);
    let rows = 0;
    try {
      await source.read(
        name,
        largeWins,
        (row) => {
          file.add(row);
          rows++;
        },
        async () => {
          await file.flushFull();
          onProgress?.(name, rows, 0);
          await pace.pieceEnded();
        },
      );
      seals[name] = await file.end();
    } catch (error) {
      await file.abandon();
      throw error;
    }
  }
  return seals as Manifest['files'];
}

async function manifestOf(day: string, source: DaySource, files: Manifest['files']): Promise<Manifest> {
  const { from, to } = idsOfDay(day);
  return {
    schema: ARCHIVE_SCHEMA,
    day,
    datasetId: source.datasetId,
    fromId: String(from),
    toId: String(to),
    files,
    totals: await source.totals(),
    largeWinMicros: Object.fromEntries(source.largeWinMicros),
    reports: source.reports,
    previous: source.previous,
  };
}

/** Verifies that the written files, when read back, match the database and the manifest. */
async function compare(
  manifest: Manifest,
  files: Manifest['files'],
  source: DaySource,
  folder: string,
  { day, onProgress }: ArchiveOptions,
): Promise<void> {
  for (const name of ARCHIVE_FILES) {
    if (files[name].sha256 === manifest.files[name].sha256) continue;
    throw new DayRefused(
      `${day}: ${fileName(name)} differs from the file that was first archived, because the ledger has changed`,
    );
  }
  const found = await readTotals(part(folder, 'ledger'), manifest, onProgress);
  const expected = await source.totals();
  const [first] = [...found.faults, ...differingTotals(expected, found.totals).map(describe)];
  if (first !== undefined)
    throw new DayRefused(`${day}: the written archive differs from the database: ${first}`);
}

const describe = ({ expected, found }: { expected: string; found: string }): string =>
  `expected ${expected}, found ${found}`;

/**
 * Moves the files of an archive into place, the manifest last, so that a folder with a manifest is always
 * complete.
 */
async function putInPlace(folder: string, manifest: Manifest): Promise<void> {
  for (const name of ARCHIVE_FILES) await rename(part(folder, name), join(folder, fileName(name)));
  const path = join(folder, MANIFEST);
  const handle = await openPrivate(`${path}.part`, 'w');
  await handle.writeFile(manifestText(manifest));
  await handle.sync();
  await handle.close();
  await rename(`${path}.part`, path);
  const directory = await open(folder, 'r');
  await directory.sync();
  await directory.close();
}
