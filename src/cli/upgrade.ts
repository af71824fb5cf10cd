/**
 * `spindle upgrade`: shows the versions of the running processes and the data format that they write, and
 * finishes an upgrade.
 */
import { FORMATS } from '../domain/formats.js';
import {
  finishUpgrade,
  GONE_AFTER_S,
  type RunningProcess,
  runningProcesses,
} from '../engine/upgrade/processes.store.js';
import type { Sql } from '../postgres/connection.js';
import type { StoreUrls } from './command.js';
import { openPostgres } from './openPostgres.store.js';
import { type TableColumn, table } from './output.js';

const COLUMNS: TableColumn<RunningProcess>[] = [
  { heading: 'version', value: ({ version }) => version },
  { heading: 'roles', value: ({ roles }) => roles },
  { heading: 'host', value: ({ host }) => host },
  { heading: 'reads formats', value: ({ formats }) => `${formats.oldest} to ${formats.newest}` },
  { heading: 'started', value: ({ startedAt }) => startedAt.toISOString() },
];

const print = (text: string): void => void process.stdout.write(text);

function versionsOf(processes: readonly RunningProcess[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { version } of processes) counts.set(version, (counts.get(version) ?? 0) + 1);
  return counts;
}

const isUpgrading = (format: number, processes: readonly RunningProcess[]): boolean =>
  format !== FORMATS.newest || versionsOf(processes).size > 1;

function nextStep(
  format: number,
  against: readonly RunningProcess[],
  processes: readonly RunningProcess[],
): string {
  if (format > FORMATS.newest)
    return `This program can't read the written format ${format}. Use the newer program.`;
  if (format === FORMATS.newest) {
    const versions = versionsOf(processes);
    if (versions.size < 2) return 'No upgrade is open, so there is nothing to finish.';
    const running = [...versions].map(([version, count]) => `${version} (${count})`).join(' and ');
    return `An upgrade is under way: ${running} are running. Both write format ${format}, so you can go on or back by replacing the processes of one version. There is no format to finish.`;
  }
  if (against.length === 0)
    return `Every running process reads format ${FORMATS.newest}. Run «spindle upgrade finish» to end the upgrade. Until then, you can still go back to the previous version.`;
  return `${against.length} running ${against.length === 1 ? 'process does' : 'processes do'} not read format ${FORMATS.newest}. Replace ${against.length === 1 ? 'it' : 'them'} first.`;
}

const lacking = (processes: readonly RunningProcess[]): RunningProcess[] =>
  processes.filter(({ formats }) => FORMATS.newest > formats.newest || FORMATS.newest < formats.oldest);

async function withPostgres<T>({ databaseUrl }: StoreUrls, work: (sql: Sql) => Promise<T>): Promise<T> {
  const sql = openPostgres(databaseUrl, 'upgrade', 1);
  try {
    return await work(sql);
  } finally {
    await sql.end();
  }
}

/**
 * Prints the running processes and the next step.
 * @returns the exit status: 0 if all processes have one version and nothing is to be finished; otherwise 1
 */
export async function upgradeStatus(urls: StoreUrls, { json }: { json: boolean }): Promise<number> {
  const { format, processes } = await withPostgres(urls, runningProcesses);
  const against = lacking(processes);
  const isOpen = isUpgrading(format, processes);
  const next = nextStep(format, against, processes);
  if (json) {
    const program = { oldest: FORMATS.oldest, newest: FORMATS.newest };
    const blockedBy = format === FORMATS.newest ? [] : against.map(({ processId }) => processId);
    print(`${JSON.stringify({ format, program, isOpen, blockedBy, next, processes })}\n`);
  } else {
    print(`Written format: ${format}\n\n${table(COLUMNS, processes)}\n${next}\n`);
  }
  return isOpen ? 1 : 0;
}

/**
 * Switches to the newest data format that this program supports.
 * @returns the exit status: 0 if the format is in force now, 1 if the switch was refused
 */
export async function upgradeFinish(urls: StoreUrls, { json }: { json: boolean }): Promise<number> {
  const { before, against, format, processes } = await withPostgres(urls, async (sql) => {
    const { format: before } = await runningProcesses(sql);
    const against = before > FORMATS.newest ? [] : await finishUpgrade(sql, 'operator', FORMATS.newest);
    return { before, against, ...(await runningProcesses(sql)) };
  });
  const isDone = against.length === 0 && !isUpgrading(format, processes);
  if (json) {
    print(`${JSON.stringify({ isDone, format, blockedBy: against })}\n`);
    return isDone ? 0 : 1;
  }
  if (before === format && against.length === 0) print(`${nextStep(format, [], processes)}\n`);
  else if (against.length === 0)
    print(
      `Within 5 s, all processes write format ${format}. Versions that can't read this format can't be started anymore.\n`,
    );
  else {
    print(`${table(COLUMNS, against)}\n${nextStep(format, against, processes)} `);
    print(`A process that crashed is listed for ${GONE_AFTER_S} s.\n`);
  }
  return isDone ? 0 : 1;
}
