/**
 * The program of the embedded Redis: one from PATH, else one fetched earlier, else one fetched now from the packages of
 * the Debian family and unpacked into the cache folder. Nothing is installed on the system and no service is started.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { access, chmod, mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { reasonOf, SetupError } from './setupError.js';

export interface RedisProgram {
  file: string;
  /** What LD_LIBRARY_PATH must hold for it; empty for a server of the system. */
  libraryFolders: readonly string[];
}

/** Effects-only script replication and the multi-part append-only log begin with this version. */
const MAJOR_MIN = 7;
const PROGRAMS = ['valkey-server', 'redis-server'] as const;
const PACKAGES = ['redis-server', 'redis-tools'] as const;
/** Where servers are put that a bare PATH, e.g. of a service manager, doesn't name. */
const USUAL_FOLDERS = ['/usr/local/bin', '/usr/bin', '/usr/sbin', '/opt/homebrew/bin'] as const;
const COMMAND_TIMEOUT_MS = 180_000;
const VERSION_TIMEOUT_MS = 5_000;
/** An unpacking that is older than this belongs to a process that was killed. */
const ABANDONED_MS = 3_600_000;

export const REDIS_PROGRAM_NAMES: readonly string[] = PROGRAMS;

const run = promisify(execFile);

/** Throws SetupError, saying what to install, where no server is found or can be fetched. */
export async function findRedisProgram(
  cacheDir: string,
  progress: (line: string) => void,
): Promise<RedisProgram> {
  const fetchedFolder = join(cacheDir, `redis-server-${process.platform}-${process.arch}`);
  const found = (await findInPath()) ?? (await inFolder(fetchedFolder));
  if (found) return found;

  const advice = `install redis-server or valkey-server ${MAJOR_MIN}.0 or later, or set REDIS_URL`;
  if (!(await hasApt())) throw new SetupError(`no Redis server found: ${advice}`);
  progress('Fetching redis-server …');
  try {
    return await fetchRedis(cacheDir, fetchedFolder);
  } catch (error) {
    throw new SetupError(`no Redis server found, nor fetched with apt-get (${reasonOf(error)}): ${advice}`, {
      cause: error,
    });
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

/** The server in a folder of unpacked packages. */
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

/** Whether it runs here at all, with its libraries, and is new enough. */
async function isUsable(program: RedisProgram): Promise<boolean> {
  try {
    await access(program.file, constants.X_OK);
    const { stdout } = await run(program.file, ['--version'], {
      env: redisEnvironment(program),
      timeout: VERSION_TIMEOUT_MS,
    });
    // `Redis server v=7.0.15 sha=…` or `Valkey server v=8.1.1 sha=…`
    return Number(/\bv=(\d+)\./.exec(stdout)?.[1] ?? 0) >= MAJOR_MIN;
  } catch {
    return false;
  }
}

/** The server gets none of this process's environment but what it needs to run: no secrets of the service. */
export function redisEnvironment(program: RedisProgram): NodeJS.ProcessEnv {
  const libraries = [...program.libraryFolders, process.env.LD_LIBRARY_PATH ?? ''].filter(Boolean);
  return {
    PATH: process.env.PATH ?? '',
    LC_ALL: 'C',
    ...(libraries.length > 0 ? { LD_LIBRARY_PATH: libraries.join(':') } : {}),
  };
}

async function hasApt(): Promise<boolean> {
  if (process.platform !== 'linux') return false;
  try {
    await Promise.all([
      run('apt-get', ['--version'], { timeout: VERSION_TIMEOUT_MS }),
      run('dpkg', ['--version'], { timeout: VERSION_TIMEOUT_MS }),
    ]);
    return true;
  } catch {
    return false;
  }
}

/** Unpacks beside the folder and renames, so that the folder is whole, whoever else does the same meanwhile. */
async function fetchRedis(cacheDir: string, folder: string): Promise<RedisProgram> {
  await mkdir(cacheDir, { recursive: true });
  await removeAbandoned(cacheDir);
  const work = join(cacheDir, `fetch-${randomBytes(6).toString('hex')}`);
  await mkdir(work);
  try {
    const unpacked = join(work, 'root');
    for (const archive of await downloadPackages(work)) await run('dpkg', ['-x', archive, unpacked]);
    // dpkg gives the folder the mode of the package's own root, which a later user of the cache could not enter.
    await chmod(unpacked, 0o755);
    if (!(await inFolder(unpacked))) {
      throw new Error(
        `the redis-server of this system's packages does not run or is older than ${MAJOR_MIN}.0`,
      );
    }
    await moveIntoPlace(unpacked, folder, join(work, 'replaced'));
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  const program = await inFolder(folder);
  if (!program) throw new Error(`the redis-server in ${folder} does not run`);
  return program;
}

async function moveIntoPlace(unpacked: string, folder: string, replaced: string): Promise<void> {
  try {
    await rename(unpacked, folder);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error;
    // Another process was faster; or what lies there was fetched on another system and doesn't run on this one.
    if (await inFolder(folder)) return;
    await rename(folder, replaced);
    await rename(unpacked, folder);
  }
}

async function removeAbandoned(cacheDir: string): Promise<void> {
  for (const name of await readdir(cacheDir)) {
    if (!name.startsWith('fetch-')) continue;
    const path = join(cacheDir, name);
    const changed = await stat(path).catch(() => undefined);
    if (changed && Date.now() - changed.mtimeMs > ABANDONED_MS) {
      await rm(path, { recursive: true, force: true });
    }
  }
}

/** The package files, fetched by the system's package lists; where those are missing or stale, by private ones. */
async function downloadPackages(work: string): Promise<string[]> {
  try {
    return await download(work, []);
  } catch {
    const options = await privateApt(work);
    await apt(work, [...options, 'update']);
    return await download(work, options);
  }
}

async function download(work: string, options: readonly string[]): Promise<string[]> {
  const { stdout } = await apt(work, [
    ...options,
    '--simulate',
    '--no-install-recommends',
    'install',
    'redis-server',
  ]);
  // `Inst name (version …)` is a package that the system lacks; `Inst name [installed] (…` one that would be upgraded,
  // of which the installed one must do: a second libc beside the system's would not work.
  const missing = [...stdout.matchAll(/^Inst (\S+) \(/gm)].map((match) => match[1] as string);
  await apt(work, [...options, 'download', ...new Set([...PACKAGES, ...missing])]);
  const files = (await readdir(work)).filter((name) => name.endsWith('.deb'));
  return files.map((name) => join(work, name));
}

/** Options for an apt with lists and caches of its own in the work folder; what is installed, the system still says. */
async function privateApt(work: string): Promise<string[]> {
  const state = join(work, 'state');
  const cache = join(work, 'cache');
  await mkdir(join(state, 'lists', 'partial'), { recursive: true });
  await mkdir(join(cache, 'archives', 'partial'), { recursive: true });
  const options = {
    'Dir::State': state,
    'Dir::State::lists': join(state, 'lists'),
    'Dir::State::status': '/var/lib/dpkg/status',
    'Dir::Cache': cache,
    'Dir::Cache::archives': join(cache, 'archives'),
  };
  return Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
}

async function apt(work: string, args: readonly string[]): Promise<{ stdout: string }> {
  const options = ['-q', '-o', 'Acquire::Retries=2', '-o', 'Acquire::http::Timeout=20'];
  // Root's apt downloads as the user _apt, who may not enter the work folder.
  if (process.getuid?.() === 0) options.push('-o', 'APT::Sandbox::User=root');
  try {
    return await run('apt-get', [...options, ...args], {
      cwd: work,
      env: { ...process.env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' },
      timeout: COMMAND_TIMEOUT_MS,
      maxBuffer: 16 << 20,
    });
  } catch (error) {
    const stderr = (error as { stderr?: string }).stderr ?? '';
    const line = stderr.split('\n').find((text) => text.startsWith('E:'));
    throw new Error(line ?? reasonOf(error), { cause: error });
  }
}
