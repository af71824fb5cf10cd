/** Drops a day of the ledger, where its archive is whole and is the one on record. */
import { dayOf } from '../../domain/days.js';
import type { Sql } from '../../postgres/connection.js';
import { archivedManifests } from './ledgerDays.store.js';
import { type DropStep, dropFromLedger, whyNotDrop } from './ledgerDrop.store.js';
import { type ArchiveCheck, type ArchiveFault, type ArchiveProgress, checkArchives } from './readArchive.js';

export interface DropOptions {
  readonly day: string;
  readonly directory: string;
  /** Complete days that stay, at least. */
  readonly keepDays: number;
  readonly actor: string;
  /** UTC day, YYYY-MM-DD; the clock's if absent. */
  readonly today?: string;
  readonly onProgress?: ArchiveProgress;
  readonly onFailpoint?: (step: DropStep) => void;
}

/** @returns faults of the archive, or why the day is kept; both empty: it is dropped. */
export async function dropDay(
  sql: Sql,
  options: DropOptions,
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

/** Manifests that are not those on record; a day on record that has no folder. */
export async function strangeManifests(sql: Sql, { days }: ArchiveCheck): Promise<ArchiveFault[]> {
  const found = new Map(days.map((each) => [each.day, each.manifestHash]));
  const recorded = await archivedManifests(sql);
  const faults: ArchiveFault[] = [];
  for (const { day, manifestHash } of recorded) {
    const hash = found.get(day);
    found.delete(day);
    if (hash === undefined)
      faults.push({ day, problem: 'the day is on record as archived, and has no readable manifest here' });
    else if (hash !== manifestHash)
      faults.push({
        day,
        file: 'manifest.json',
        problem: 'it is another manifest than the one on record: it was replaced',
      });
  }
  for (const day of found.keys()) faults.push({ day, problem: 'the ledger has no record of this archive' });
  return faults;
}
