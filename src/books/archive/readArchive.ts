/**
 * Reads and verifies archives: totals and order of a day's entries, hashes of files, manifests, and the chain
 * of manifests.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { entryCell } from '../../domain/entryId.js';
import {
  ARCHIVE_FILES,
  ARCHIVE_SCHEMA,
  differingTotals,
  type EntryTotal,
  fileName,
  MANIFEST,
  type Manifest,
  manifestText,
  sha256,
} from '../../domain/ledgerDay.js';
import { type Group, readGroups } from './parquetFile.js';

/** @param total number of rows to read, or 0 if unknown */
export type ArchiveProgress = (what: string, rows: number, total: number) => void;

const SUMMED = ['entry_id', 'partner_id', 'game_id', 'kind', 'wager_micros', 'credit_micros'];

interface Sums {
  entries: number;
  wagered: bigint;
  credited: bigint;
}

/**
 * Reads a ledger.parquet file and returns its totals and any errors in the order of entries. Memory use is
 * one row group.
 */
export async function readTotals(
  path: string,
  { fromId, toId }: Pick<Manifest, 'fromId' | 'toId'>,
  onProgress?: ArchiveProgress,
  total = 0,
): Promise<{ totals: EntryTotal[]; rows: number; faults: string[] }> {
  const sums = new Map<string, Sums>();
  const faults: string[] = [];
  const [from, to] = [BigInt(fromId), BigInt(toId)];
  let last: { cell: number; id: bigint } | undefined;
  let done = 0;
  const rows = await readGroups(path, SUMMED, (group, count) => {
    const [ids, partners, games, kinds, wagers, credits] = columnsOf(group);
    for (let i = 0; i < count; i++) {
      const id = ids[i]!;
      const cell = entryCell(id);
      const isInOrder = last === undefined || cell > last.cell || (cell === last.cell && id > last.id);
      if (!isInOrder) faults.push(`entry ${id} is out of order; entries must be ordered by cell and id`);
      if (id < from || id >= to) faults.push(`entry ${id} belongs to another day`);
      last = { cell, id };
      const key = `${partners[i]}/${games[i]}/${kinds[i]}`;
      let sum = sums.get(key);
      if (sum === undefined) {
        sum = { entries: 0, wagered: 0n, credited: 0n };
        sums.set(key, sum);
      }
      sum.entries++;
      sum.wagered += wagers[i]!;
      sum.credited += credits[i]!;
    }
    done += count;
    onProgress?.('read back', done, total);
  });
  const totals = [...sums].map(([key, { entries, wagered, credited }]): EntryTotal => {
    const [partnerId, gameId, kind] = key.split('/').map(Number) as [number, number, number];
    return {
      partnerId,
      gameId,
      kind,
      entries,
      wageredMicros: String(wagered),
      creditedMicros: String(credited),
    };
  });
  totals.sort((a, b) => a.partnerId - b.partnerId || a.gameId - b.gameId || a.kind - b.kind);
  return { totals, rows, faults: faults.slice(0, FAULTS_MAX) };
}

/** Maximum number of faults reported for one file, because later faults usually repeat the first. */
const FAULTS_MAX = 10;

function columnsOf(group: Group) {
  const [ids, partners, games, kinds, wagers, credits] = SUMMED.map((name) => group.get(name));
  return [ids, partners, games, kinds, wagers, credits] as unknown as [
    ArrayLike<bigint>,
    ArrayLike<number>,
    ArrayLike<number>,
    ArrayLike<number>,
    ArrayLike<bigint>,
    ArrayLike<bigint>,
  ];
}

/** Fault of an archive: a difference between its present files and the archive as it was made. */
export interface ArchiveFault {
  readonly day: string;
  /** Name of the faulty file; absent if the fault concerns the whole day. */
  readonly file?: string;
  readonly problem: string;
}

export interface ArchiveCheck {
  readonly days: readonly { readonly day: string; readonly manifestHash: string; readonly entries: number }[];
  readonly entries: number;
  readonly bytes: number;
  readonly faults: readonly ArchiveFault[];
}

const DAY = /^\d{4}-\d{2}-\d{2}$/;

/**
 * Returns the days that have a folder in the archive directory, oldest first.
 * @throws Error if the directory can't be read
 */
async function archivedFolders(directory: string): Promise<string[]> {
  const names = await readdir(directory, { withFileTypes: true });
  return names
    .filter((each) => each.isDirectory() && DAY.test(each.name))
    .map(({ name }) => name)
    .sort();
}

/**
 * Verifies archives without the database: manifests and their chain, sizes and hashes of files, order and
 * totals of entries.
 * @param options.only reads only the files of this day; for all other days only the chain of manifests is
 * checked
 */
export async function checkArchives(
  directory: string,
  options: { readonly only?: string; readonly onProgress?: ArchiveProgress } = {},
): Promise<ArchiveCheck> {
  const faults: ArchiveFault[] = [];
  const days: { day: string; manifestHash: string; entries: number }[] = [];
  let [entries, bytes] = [0, 0];
  for (const day of await archivedFolders(directory)) {
    const found = await readManifest(directory, day, faults);
    if (found === undefined) continue;
    const { manifest, hash } = found;
    checkChain(manifest, days, faults);
    days.push({ day, manifestHash: hash, entries: manifest.files.ledger.rows });
    if (options.only !== undefined && options.only !== day) continue;
    await checkFiles(join(directory, day), manifest, faults, options.onProgress);
    entries += manifest.files.ledger.rows;
    for (const file of ARCHIVE_FILES) bytes += manifest.files[file].bytes;
  }
  if (options.only !== undefined && !days.some(({ day }) => day === options.only))
    faults.push({ day: options.only, problem: 'the day has no archive' });
  return { days, entries, bytes, faults };
}

/**
 * Returns a function that reads the totals of a day from its archive. The function throws if the archive is
 * incomplete or damaged.
 */
export const archiveTotals =
  (directory: string, onProgress?: ArchiveProgress) =>
  async (day: string): Promise<readonly EntryTotal[]> => {
    const { faults } = await checkArchives(directory, { only: day, ...(onProgress && { onProgress }) });
    const [fault] = faults.filter((each) => each.day === day);
    if (fault !== undefined)
      throw new Error(`The archive of ${day} is incomplete or damaged: ${fault.file ?? ''} ${fault.problem}`);
    // The totals of the manifest can be trusted here, because checkArchives has compared them with the files.
    return (JSON.parse(await readFile(join(directory, day, MANIFEST), 'utf8')) as Manifest).totals;
  };

async function readManifest(
  directory: string,
  day: string,
  faults: ArchiveFault[],
): Promise<{ manifest: Manifest; hash: string } | undefined> {
  const fault = (problem: string): undefined => {
    faults.push({ day, file: MANIFEST, problem });
  };
  let text: string;
  try {
    text = await readFile(join(directory, day, MANIFEST), 'utf8');
  } catch {
    return fault("the file is missing or can't be read");
  }
  try {
    const manifest = JSON.parse(text) as Manifest;
    if (manifest.schema !== ARCHIVE_SCHEMA)
      return fault(`schema ${manifest.schema} is not supported by this version`);
    if (manifest.day !== day) return fault(`the manifest belongs to ${manifest.day}`);
    if (manifestText(manifest) !== text) return fault('the manifest is not in its canonical form');
    return { manifest, hash: sha256(text) };
  } catch {
    return fault('the file is not a manifest');
  }
}

function checkChain(
  { day, previous }: Manifest,
  earlier: readonly { day: string; manifestHash: string }[],
  faults: ArchiveFault[],
): void {
  const before = earlier.at(-1);
  const fault = (problem: string): void => void faults.push({ day, file: MANIFEST, problem });
  if (previous === null) {
    if (before !== undefined)
      fault(`the manifest names no previous day, although there is an archive of ${before.day}`);
    return;
  }
  if (before?.day !== previous.day) fault(`the previous archive (${previous.day}) is missing`);
  else if (before.manifestHash !== previous.manifestHash)
    fault(
      `the previous manifest (${previous.day}) was replaced, because its hash differs from the hash in this manifest`,
    );
}

async function checkFiles(
  folder: string,
  manifest: Manifest,
  faults: ArchiveFault[],
  onProgress?: ArchiveProgress,
): Promise<void> {
  const { day } = manifest;
  for (const name of ARCHIVE_FILES) {
    const file = fileName(name);
    const fault = (problem: string): void => void faults.push({ day, file, problem });
    const seal = manifest.files[name];
    let found: { bytes: number; sha256: string };
    try {
      found = await sealOf(join(folder, file));
    } catch {
      fault("the file is missing or can't be read");
      continue;
    }
    if (found.bytes !== seal.bytes) fault(`the file has ${found.bytes} bytes instead of ${seal.bytes}`);
    else if (found.sha256 !== seal.sha256)
      fault('the file was changed, because its SHA-256 differs from the manifest');
    else if (name === 'ledger') {
      const {
        totals,
        rows,
        faults: wrong,
      } = await readTotals(join(folder, file), manifest, onProgress, seal.rows);
      for (const problem of wrong) fault(problem);
      if (rows !== seal.rows) fault(`the file has ${rows} rows instead of ${seal.rows}`);
      for (const differing of differingTotals(manifest.totals, totals))
        fault(`totals: expected ${differing.expected}, found ${differing.found}`);
    } else {
      const rows = await readGroups(join(folder, file), [], () => {});
      if (rows !== seal.rows) fault(`the file has ${rows} rows instead of ${seal.rows}`);
    }
  }
}

async function sealOf(path: string): Promise<{ bytes: number; sha256: string }> {
  const digest = createHash('sha256');
  let bytes = 0;
  for await (const piece of createReadStream(path, { highWaterMark: 1_048_576 })) {
    digest.update(piece as Buffer);
    bytes += (piece as Buffer).length;
  }
  return { bytes, sha256: digest.digest('hex') };
}
