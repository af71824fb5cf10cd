/** What every run that breaks things stands on: a folder, a guard, stores and service processes of its own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Cleanup } from '../support/cleanup.js';
import { Api } from './api.js';
import { type Acknowledgement, Fleet } from './services.js';
import { type ChaosStores, startStores } from './stores.js';

export interface Arena {
  readonly folder: string;
  readonly stores: ChaosStores;
  readonly fleet: Fleet;
  readonly api: Api;
  /** Service processes that ended by themselves since this was last emptied. */
  readonly crashes: string[];
  /** Ends everything. @param keep leaves the folder. */
  close(keep: boolean): Promise<void>;
}

/**
 * Starts the stores, and the service on them.
 * @param cleanup ends it all where {@link Arena.close} does not, and leaves the folder where `keep` says so.
 * @param settings further ones of the service processes.
 */
export async function openArena(
  cleanup: Cleanup,
  { keep, acknowledgement }: { keep: boolean; acknowledgement: Acknowledgement },
  settings: NodeJS.ProcessEnv = {},
): Promise<Arena> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'spindle-chaos-')));
  let isKept = keep;
  const mine = new Cleanup();
  let closed: Promise<void> | undefined;
  const close = (keepIt: boolean): Promise<void> => {
    isKept = keepIt;
    closed ??= mine.run();
    return closed;
  };
  cleanup.add(() => close(isKept));
  mine.add(() => (isKept ? undefined : rm(folder, { recursive: true, force: true })));
  const guard = spawn(process.execPath, [join(import.meta.dirname, 'guard.js'), folder], {
    stdio: ['pipe', 'ignore', 'inherit'],
    detached: true,
  });
  mine.add(async () => {
    const ended = once(guard, 'exit');
    guard.stdin.end();
    await ended;
  });
  const stores = await startStores(folder);
  mine.add(() => stores.close(isKept));
  const crashes: string[] = [];
  const fleet = await Fleet.make(stores, folder, (line) => crashes.push(line), settings);
  mine.add(() => fleet.close());
  await fleet.start(acknowledgement);
  return { folder, stores, fleet, api: new Api(fleet.port), crashes, close };
}

/** Runs a program to its end: exit status 0 only where it held, and nothing is left of it, however it ends. */
export async function runToEnd(program: (cleanup: Cleanup) => Promise<boolean>): Promise<never> {
  const cleanup = new Cleanup();
  const end = (): void => void cleanup.run().finally(() => process.exit(130));
  process.on('SIGINT', end).on('SIGTERM', end);
  const isHeld = await program(cleanup).catch((error: unknown) => {
    console.error(error);
    return false;
  });
  await cleanup.run();
  process.exit(isHeld ? 0 : 1);
}
