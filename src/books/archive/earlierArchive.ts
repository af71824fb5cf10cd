/**
 * What a directory of archives has already. No archive of another installation, or of another state of the same ledger, is written
 * over: after a restore of Postgres the archive may be all that is left of what the ledger had.
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

/** A day can't be archived, verified or dropped as it is; the message says why. */
export class DayRefused extends Error {}

/** A manifest as it lies in a folder; what can't be read of it is undefined. */
interface Found {
  readonly hash: string;
  readonly datasetId: string | undefined;
  readonly entries: number | undefined;
}

/** What is not there is undefined; any other error stays one. */
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
 * Refuses a directory that has archives of another installation: the days next to this one are looked at.
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
      `${directory} has the archive of ${near} of dataset ${found.datasetId}, and this ledger is dataset ${datasetId}: archive it into another directory`,
    );
  }
}

/**
 * Makes way for the files of a day. An archive with the same manifest stays where it is, to be written again; another one is kept
 * beside it where it is to be replaced.
 * @returns the folder in which another archive of the day is kept; undefined: there was none
 * @throws DayRefused where there is another one that is not to be replaced
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
      `${folder} has another archive of the day: manifest ${found.hash} with ${entries} entries of dataset ${datasetId}; ` +
        `this one would be manifest ${hash} with ${manifest.files.ledger.rows} entries of dataset ${manifest.datasetId}. ` +
        `Was Postgres restored? --replace keeps the other one as ${kept}`,
    );
  }
  await makePrivateFolder(kept);
  // The manifest last: where this is ended in between, it is found again and goes on.
  for (const name of [...ARCHIVE_FILES.map(fileName), MANIFEST])
    await rename(join(folder, name), join(kept, name)).catch(ifThere);
  return kept;
}
