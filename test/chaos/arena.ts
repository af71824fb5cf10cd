/** Sets up the stores and service processes of a chaos run. */
import { ArchivedPostgres, supervised } from '../backup/archivedPostgres.js';
import { Api } from '../support/api.js';
import type { Cleanup } from '../support/cleanup.js';
import { openRunFolder, type RunFolder } from '../support/runFolder.js';
import { type Acknowledgement, Fleet } from './services.js';

export interface Arena extends Omit<RunFolder, 'cleanup'> {
  readonly fleet: Fleet;
  readonly api: Api;
  /** The Postgres with an archived WAL. Undefined if Postgres is the embedded server. */
  readonly archived: ArchivedPostgres | undefined;
  /** Service processes that ended unexpectedly since this list was last emptied. */
  readonly crashes: string[];
}

/**
 * Starts the stores and the service.
 * @param cleanup ends everything that {@link Arena.close} does not end, and keeps the folder if `keep` is
 * set.
 * @param settings further settings of the service processes
 * @param isBackedUp true to use an installed Postgres with an archived WAL
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
