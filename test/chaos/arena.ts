/** What every run that breaks things stands on: stores and service processes of its own. */
import { ArchivedPostgres, supervised } from '../backup/archivedPostgres.js';
import { Api } from '../support/api.js';
import type { Cleanup } from '../support/cleanup.js';
import { openRunFolder, type RunFolder } from '../support/runFolder.js';
import { type Acknowledgement, Fleet } from './services.js';

export interface Arena extends Omit<RunFolder, 'cleanup'> {
  readonly fleet: Fleet;
  readonly api: Api;
  /** Undefined where Postgres is the embedded one. */
  readonly archived: ArchivedPostgres | undefined;
  /** Service processes that ended by themselves since this was last emptied. */
  readonly crashes: string[];
}

/**
 * Starts the stores, and the service on them.
 * @param cleanup ends it all where {@link Arena.close} does not, and leaves the folder where `keep` says so.
 * @param settings further ones of the service processes.
 * @param isBackedUp Postgres is one of the system's, whose log is archived
 */
export async function openArena(
  cleanup: Cleanup,
  { keep, acknowledgement }: { keep: boolean; acknowledgement: Acknowledgement },
  settings: NodeJS.ProcessEnv = {},
  isBackedUp = false,
): Promise<Arena> {
  let archived: ArchivedPostgres | undefined;
  const begin = async (folder: string, environment: NodeJS.ProcessEnv) => {
    archived = await ArchivedPostgres.begin(folder, environment);
    return supervised(archived);
  };
  const { cleanup: mine, ...run } = await openRunFolder(cleanup, keep, isBackedUp ? begin : undefined);
  const crashes: string[] = [];
  const fleet = await Fleet.make(run.stores, run.folder, (line) => crashes.push(line), settings);
  mine.add(() => fleet.close());
  await fleet.start(acknowledgement);
  return { ...run, archived, fleet, api: new Api(`http://127.0.0.1:${fleet.port}`), crashes };
}
