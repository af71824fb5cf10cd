/**
 * Downloads packages of Debian-based systems and unpacks them into a cache folder. Nothing is installed on
 * the system.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { reasonOf } from '../../platform/setupError.js';

const COMMAND_TIMEOUT_MS = 180_000;
const VERSION_TIMEOUT_MS = 5_000;
/** Age from which on a work folder is considered abandoned by a killed process, in ms. */
const ABANDONED_MS = 3_600_000;

const run = promisify(execFile);

/** Returns whether packages can be downloaded and unpacked on this system. */
export async function hasApt(): Promise<boolean> {
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

export interface WantedPackages {
  readonly packages: readonly string[];
  /**
   * Package whose required libraries are downloaded too if the system lacks them; absent if no libraries are
   * needed.
   */
  readonly withLibrariesOf?: string;
  /** Returns whether the program unpacked in a folder runs on this system. */
  readonly runs: (folder: string) => Promise<boolean>;
  /** Error message for packages whose unpacked program does not run. */
  readonly complaint: string;
}

/**
 * Downloads packages and unpacks them into a folder. The packages are unpacked beside the folder, which is
 * then renamed, so that it is always complete even if several processes do this at once.
 */
export async function fetchPackages(cacheDir: string, folder: string, wanted: WantedPackages): Promise<void> {
  await mkdir(cacheDir, { recursive: true });
  await removeAbandoned(cacheDir);
  const work = join(cacheDir, `fetch-${randomBytes(6).toString('hex')}`);
  await mkdir(work);
  try {
    const unpacked = join(work, 'root');
    for (const archive of await downloadPackages(work, wanted)) await run('dpkg', ['-x', archive, unpacked]);
    // dpkg gives the folder the mode of the package's root, which would prevent later users of the cache from
    // entering it.
    await chmod(unpacked, 0o755);
    if (!(await wanted.runs(unpacked))) throw new Error(wanted.complaint);
    await moveIntoPlace(unpacked, folder, join(work, 'replaced'), wanted);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function moveIntoPlace(
  unpacked: string,
  folder: string,
  replaced: string,
  { runs }: WantedPackages,
): Promise<void> {
  try {
    await rename(unpacked, folder);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error;
    // The folder already exists. Either another process was faster, or the folder comes from a different
    // system and its program does not run here.
    if (await runs(folder)) return;
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

/**
 * Downloads the package files with the system's package lists, or with private lists if the system's are
 * missing or outdated.
 */
async function downloadPackages(work: string, wanted: WantedPackages): Promise<string[]> {
  try {
    return await download(work, wanted, []);
  } catch {
    const options = await privateApt(work);
    await apt(work, [...options, 'update']);
    return await download(work, wanted, options);
  }
}

async function download(
  work: string,
  { packages, withLibrariesOf }: WantedPackages,
  options: readonly string[],
): Promise<string[]> {
  const missing: string[] = [];
  if (withLibrariesOf !== undefined) {
    const { stdout } = await apt(work, [
      ...options,
      '--simulate',
      '--no-install-recommends',
      'install',
      withLibrariesOf,
    ]);
    // A line `Inst name (version …)` is a package missing on the system. A line `Inst name [installed] (…` is
    // an upgrade, which is skipped because a second libc beside the system's would not work.
    missing.push(...[...stdout.matchAll(/^Inst (\S+) \(/gm)].map((match) => match[1] as string));
  }
  await apt(work, [...options, 'download', ...new Set([...packages, ...missing])]);
  const files = (await readdir(work)).filter((name) => name.endsWith('.deb'));
  return files.map((name) => join(work, name));
}

/**
 * Returns options for apt with its own lists and caches in the work folder. The status of installed packages
 * is still the system's.
 */
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
  // As root, apt downloads as the user _apt, who may not enter the work folder.
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
