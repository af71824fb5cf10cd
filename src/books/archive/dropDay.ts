/**
 * Drops a day from the ledger after verifying that its archive is complete and matches the recorded manifest.
 */
import { dayOf } from '../../domain/days.js';
import type { Sql } from '../../postgres/connection.js';
import { archivedManifests } from './ledgerDays.store.js';
import { type DropStep, dropFromLedger, whyNotDrop } from './ledgerDrop.store.js';
import { type ArchiveCheck, type ArchiveFault, type ArchiveProgress, checkArchives } from './readArchive.js';

/**
 * @returns faults of the archive, or the reason why the day is kept. If there is neither, the day was
 * dropped.
 */
export async function dropDay(
  sql: Sql,
  options: {
    readonly day: string;
    readonly directory: string;
    /** Minimum number of complete days that stay in the ledger. */
    readonly keepDays: number;
    readonly actor: string;
    /** Current UTC day, YYYY-MM-DD. Default: the clock of this process. */
    readonly today?: string;
    readonly onProgress?: ArchiveProgress;
    readonly onFailpoint?: (step: DropStep) => void;
  },
): Promise<{ readonly faults: readonly ArchiveFault[]; readonly refused?: string }> {
  const { day, directory, keepDays, actor, today = dayOf(Date.now()), onFailpoint = () => {} } = options;
  const refused = await whyNotDrop(sql, { day, keepDays, today });
  if (refused !== undefined) return { faults: [], refused };
  const check = await checkArchives(directory, {
    only: day,
    ...(options.onProgress && { onProgress: options.onProgress }),
  });
  const faults = [...check.faults, ...(await strangeManifests(sql, check))].filter(
    (fault) => fault.day <= day,
  );
  if (faults.length > 0) return { faults };
  const { manifestHash } = check.days.find((each) => each.day === day)!;
  const kept = await dropFromLedger(sql, { day, manifestHash, keepDays, actor, today, onFailpoint });
  return kept === undefined ? { faults } : { faults, refused: kept };
}

/** Finds manifests that differ from the recorded ones, and recorded days that have no archive folder. */
export async function strangeManifests(sql: Sql, { days }: ArchiveCheck): Promise<ArchiveFault[]> {
  const found = new Map(days.map((each) => [each.day, each.manifestHash]));
  const recorded = await archivedManifests(sql);
  const faults: ArchiveFault[] = [];
  for (const { day, manifestHash } of recorded) {
    const hash = found.get(day);
    found.delete(day);
    if (hash === undefined)
      faults.push({
        day,
        problem: 'the day is on record as archived, but this directory has no readable manifest of it',
      });
    else if (hash !== manifestHash)
      faults.push({
        day,
        file: 'manifest.json',
        problem: 'the manifest was replaced, because it differs from the manifest on record',
      });
  }
  for (const day of found.keys())
    faults.push({ day, problem: 'the archive of the day is not on record in the ledger' });
  return faults;
}
