/** `spindle ledger`: lists the days of the ledger, archives them and drops them (docs/archive.md). */
import { constants, setPriority } from 'node:os';
import { archiveDay } from '../books/archive/archiveDay.js';
import { dropDay, strangeManifests } from '../books/archive/dropDay.js';
import { type LedgerDay, LedgerDays } from '../books/archive/ledgerDays.store.js';
import { type ArchiveFault, checkArchives } from '../books/archive/readArchive.js';
import { isDay } from '../domain/days.js';
import type { Sql } from '../postgres/connection.js';
import { NotFoundError, type StoreUrls, UsageError } from './command.js';
import { openPostgres } from './openPostgres.store.js';
import { Progress } from './progress.js';

type Database = Pick<StoreUrls, 'databaseUrl'>;
const ACTOR = 'operator';

export async function listDays(database: Database, { json }: { readonly json: boolean }): Promise<number> {
  const days = await on(database, (sql) => new LedgerDays(sql).list());
  print(json ? JSON.stringify(days) : days.map(dayLine).join('\n'));
  return 0;
}

export async function archive(
  database: Database,
  options: {
    readonly day: string;
    readonly to: string;
    readonly clockSkewMaxMs: number;
    readonly isToReplace: boolean;
    readonly json: boolean;
  },
): Promise<number> {
  const day = dayGiven(options.day);
  const { to: directory, clockSkewMaxMs, isToReplace } = options;
  // Archiving runs at low priority, because the service on the same machine comes first.
  setPriority(constants.priority.PRIORITY_LOW);
  const made = await withProgress((onProgress) =>
    on(database, (sql) =>
      archiveDay(sql, { day, directory, clockSkewMaxMs, isToReplace, actor: ACTOR, onProgress }),
    ),
  );
  const { entries, bytes, manifestHash, isRepeated, replaced } = made;
  const plain = `${day} ${isRepeated ? 'archived again with the same bytes' : 'archived'}: ${many(entries)} entries, ${many(bytes)} bytes, manifest ${manifestHash}`;
  const kept = replaced === null ? '' : `. The previous archive was kept as ${replaced}`;
  print(options.json ? JSON.stringify(made) : plain + kept);
  return 0;
}

/**
 * Verifies archives.
 * @returns the exit status: 0 if all archives are complete, 1 if not
 */
export async function verify(
  database: (() => Promise<Database>) | undefined,
  options: { readonly from: string; readonly json: boolean },
): Promise<number> {
  const check = await withProgress((onProgress) =>
    checkedIn(options.from, () => checkArchives(options.from, { onProgress })),
  );
  const strange =
    database === undefined ? [] : await on(await database(), (sql) => strangeManifests(sql, check));
  const faults = [...check.faults, ...strange];
  const { days, entries, bytes } = check;
  const work = `${many(days.length)} days, ${many(entries)} entries, ${many(bytes)} bytes`;
  const verdict =
    faults.length === 0 ? `WHOLE: ${work}` : `NOT WHOLE: ${many(faults.length)} faults; ${work}`;
  print(options.json ? JSON.stringify({ ...check, faults }) : [...faults.map(faultLine), verdict].join('\n'));
  return faults.length === 0 ? 0 : 1;
}

/** @returns the exit status: 0 if dropped, 1 if refused */
export async function drop(
  database: Database,
  options: { readonly day: string; readonly from: string; readonly keepDays: number; readonly json: boolean },
): Promise<number> {
  const day = dayGiven(options.day);
  const { from: directory, keepDays } = options;
  const { faults, refused } = await withProgress((onProgress) =>
    checkedIn(directory, () =>
      on(database, (sql) => dropDay(sql, { day, directory, keepDays, actor: ACTOR, onProgress })),
    ),
  );
  const isDropped = faults.length === 0 && refused === undefined;
  const why = refused === undefined ? faults.map(faultLine) : [refused];
  if (options.json) print(JSON.stringify({ day, isDropped, faults, refused: refused ?? null }));
  else print(isDropped ? `${day} dropped` : [...why, `${day} was NOT dropped`].join('\n'));
  return isDropped ? 0 : 1;
}

export function dayGiven(text: string): string {
  if (!isDay(text)) throw new UsageError('--day must be a date such as 2026-10-31');
  return text;
}

async function checkedIn<T>(directory: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (
      (error as NodeJS.ErrnoException).code === 'ENOENT' &&
      (error as NodeJS.ErrnoException).path === directory
    )
      throw new NotFoundError(`The directory ${directory} does not exist`);
    throw error;
  }
}

async function on<T>({ databaseUrl }: Database, run: (sql: Sql) => Promise<T>): Promise<T> {
  const sql = openPostgres(databaseUrl, 'ledger', 2);
  try {
    return await run(sql);
  } finally {
    // A connection to a hanging server never closes, so the program exits without waiting for it (cli.ts).
    sql.end().catch(() => {});
  }
}

async function withProgress<T>(
  run: (onProgress: (what: string, rows: number, total: number) => void) => Promise<T>,
): Promise<T> {
  const progress = new Progress(process.stderr);
  try {
    return await run((what, rows, total) => progress.show(what, rows, total));
  } finally {
    progress.end();
  }
}

const print = (text: string): void => void process.stdout.write(`${text}\n`);
const many = (count: number): string => count.toLocaleString('en');

const dayLine = ({ day, state, entries, isEstimate, bytes, archiveBytes }: LedgerDay): string =>
  [
    `${day}  ${state.padEnd(8)}`,
    `${isEstimate ? '~' : ''}${many(entries)} entries`.padStart(22),
    `${many(bytes)} bytes`.padStart(24),
    archiveBytes === null ? '' : `${many(archiveBytes)} archived`.padStart(24),
  ]
    .join('  ')
    .trimEnd();

const faultLine = ({ day, file, problem }: ArchiveFault): string =>
  `${day}${file === undefined ? '' : ` ${file}`}: ${problem}`;
