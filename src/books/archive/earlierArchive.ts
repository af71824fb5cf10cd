/**
 * Checks the contents of an archive directory before a day is archived into it. Archives of another
 * installation, or of another state of the same ledger, are never overwritten. After a restore of Postgres
 * they may be the only copy of what the ledger had.
 */
import { readdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import {
  ARCHIVE_FILES,
  fileName,
  MANIFEST,
  type Manifest,
  manifestText,
  sha256,
} from '../../domain/ledgerDay.js';
import { makePrivateFolder } from '../../platform/files.js';

/**
 * Thrown if a day can't be archived, verified or dropped in its present state. The message has the reason.
 */
export class DayRefused extends Error {}

/** Manifest found in a folder. Fields that could not be read are undefined. */
interface Found {
  readonly hash: string;
  readonly datasetId: string | undefined;
  readonly entries: number | undefined;
}

/** Returns undefined for a missing file and rethrows every other error. */
function ifThere(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}

async function manifestIn(folder: string): Promise<Found | undefined> {
  const text = await readFile(join(folder, MANIFEST), 'utf8').catch(ifThere);
  if (text === undefined) return undefined;
  const hash = sha256(text);
  try {
    const { datasetId, files } = JSON.parse(text) as Manifest;
    return { hash, datasetId, entries: files.ledger.rows };
  } catch {
    return { hash, datasetId: undefined, entries: undefined };
  }
}

const DAY = /^\d{4}-\d{2}-\d{2}$/;

/**
 * Refuses a directory that holds archives of another installation. Only the nearest archived days before and
 * after the given day are checked.
 * @throws DayRefused
 */
export async function refuseOtherDataset(directory: string, day: string, datasetId: string): Promise<void> {
  const names = (await readdir(directory).catch(ifThere)) ?? [];
  const days = names.filter((name) => DAY.test(name) && name !== day).sort();
  for (const near of [days.findLast((each) => each < day), days.find((each) => each > day)]) {
    if (near === undefined) continue;
    const found = await manifestIn(join(directory, near));
    if (found?.datasetId === undefined || found.datasetId === datasetId) continue;
    throw new DayRefused(
      `${directory} has the archive of ${near} of dataset ${found.datasetId}, but this ledger has dataset ${datasetId}. Archive into another directory.`,
    );
  }
}

/**
 * Prepares the folder of a day for new files. An archive with the same manifest stays, because the new files
 * are identical. A different archive is moved to a folder beside the day's folder if isToReplace is set.
 * @returns the folder to which the earlier archive was moved; undefined if none was moved
 * @throws DayRefused if the folder has a different archive and isToReplace is not set
 */
export async function makeWay(
  folder: string,
  manifest: Manifest,
  isToReplace: boolean,
): Promise<string | undefined> {
  const found = await manifestIn(folder);
  const hash = sha256(manifestText(manifest));
  if (found === undefined || found.hash === hash) return undefined;
  const kept = `${folder}.replaced-${found.hash.slice(0, 16)}`;
  if (!isToReplace) {
    const { datasetId = 'unknown', entries = 'an unknown number of' } = found;
    throw new DayRefused(
      `${folder} already has a different archive of the day: manifest ${found.hash} with ${entries} entries of dataset ${datasetId}. ` +
        `The new archive would have manifest ${hash} with ${manifest.files.ledger.rows} entries of dataset ${manifest.datasetId}. ` +
        `If Postgres was restored, --replace moves the earlier archive to ${kept}`,
    );
  }
  await makePrivateFolder(kept);
  // The manifest is moved last, so that a repeated run finds the earlier archive again after an interruption
  // and continues.
  for (const name of [...ARCHIVE_FILES.map(fileName), MANIFEST])
    await rename(join(folder, name), join(kept, name)).catch(ifThere);
  return kept;
}
