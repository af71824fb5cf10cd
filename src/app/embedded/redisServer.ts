/**
 * Finds the program of the embedded Redis: in PATH, in the cache folder, or else by downloading the packages
 * of a Debian-based system into the cache folder. Nothing is installed on the system, and no system service
 * is started.
 */
import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, readdir } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { reasonOf, SetupError } from '../../platform/setupError.js';
import { fetchPackages, hasApt } from './debianPackages.js';
import { movedClock } from './movedClock.js';

export interface RedisProgram {
  file: string;
  /** Library folders for LD_LIBRARY_PATH; empty for a server installed on the system. */
  libraryFolders: readonly string[];
}

/**
 * Minimum major version of Redis. Effects-only script replication and the multi-part append-only file exist
 * since this version.
 */
const MAJOR_MIN = 7;
const PROGRAMS = ['valkey-server', 'redis-server'] as const;
const PACKAGES = ['redis-server', 'redis-tools'];
/** Usual folders of server programs that a minimal PATH may lack, for example that of a service manager. */
const USUAL_FOLDERS = ['/usr/local/bin', '/usr/bin', '/usr/sbin', '/opt/homebrew/bin'] as const;
const VERSION_TIMEOUT_MS = 5_000;

export const REDIS_PROGRAM_NAMES: readonly string[] = PROGRAMS;

const run = promisify(execFile);

/** Throws SetupError with advice on what to install if none is found or can be downloaded. */
export async function findRedisProgram(
  cacheDir: string,
  progress: (line: string) => void,
): Promise<RedisProgram> {
  const fetchedFolder = join(cacheDir, `redis-server-${process.platform}-${process.arch}`);
  const found = (await findInPath()) ?? (await inFolder(fetchedFolder));
  if (found) return found;

  const advice = `Install redis-server or valkey-server ${MAJOR_MIN}.0 or later, or set REDIS_URL.`;
  if (!(await hasApt())) throw new SetupError(`No Redis server was found. ${advice}`);
  progress('Fetching redis-server …');
  try {
    await fetchPackages(cacheDir, fetchedFolder, {
      packages: PACKAGES,
      withLibrariesOf: 'redis-server',
      runs: async (folder) => (await inFolder(folder)) !== undefined,
      complaint: `the redis-server package of this system does not run, or is older than ${MAJOR_MIN}.0`,
    });
    const program = await inFolder(fetchedFolder);
    if (!program) throw new Error(`the redis-server in ${fetchedFolder} does not run`);
    return program;
  } catch (error) {
    throw new SetupError(
      `No Redis server was found, and apt-get could not fetch one (${reasonOf(error)}). ${advice}`,
      {
        cause: error,
      },
    );
  }
}

async function findInPath(): Promise<RedisProgram | undefined> {
  const folders = new Set([...(process.env.PATH ?? '').split(delimiter).filter(Boolean), ...USUAL_FOLDERS]);
  for (const name of PROGRAMS) {
    for (const folder of folders) {
      const program = { file: join(folder, name), libraryFolders: [] };
      if (await isUsable(program)) return program;
    }
  }
  return undefined;
}

/** Returns the server in a folder of unpacked packages. */
async function inFolder(folder: string): Promise<RedisProgram | undefined> {
  const libraryFolders: string[] = [];
  for (const base of ['usr/lib', 'lib']) {
    const names = await readdir(join(folder, base)).catch(() => []);
    libraryFolders.push(
      ...names.filter((name) => name.includes('-linux-')).map((name) => join(folder, base, name)),
    );
  }
  const program = { file: join(folder, 'usr/bin/redis-server'), libraryFolders };
  return (await isUsable(program)) ? program : undefined;
}

/** Returns whether the Redis program runs on this system with its libraries and is new enough. */
async function isUsable(program: RedisProgram): Promise<boolean> {
  try {
    await access(program.file, constants.X_OK);
    const { stdout } = await run(program.file, ['--version'], {
      env: redisEnvironment(program),
      timeout: VERSION_TIMEOUT_MS,
    });
    // Version output: `Redis server v=7.0.15 sha=…` or `Valkey server v=8.1.1 sha=…`
    return Number(/\bv=(\d+)\./.exec(stdout)?.[1] ?? 0) >= MAJOR_MIN;
  } catch {
    return false;
  }
}

/**
 * Returns the environment of the server. It contains only what the server needs and no secrets of the
 * service.
 */
export function redisEnvironment(program: RedisProgram): NodeJS.ProcessEnv {
  const libraries = [...program.libraryFolders, process.env.LD_LIBRARY_PATH ?? ''].filter(Boolean);
  return {
    PATH: process.env.PATH ?? '',
    LC_ALL: 'C',
    ...movedClock(),
    ...(libraries.length > 0 ? { LD_LIBRARY_PATH: libraries.join(':') } : {}),
  };
}
