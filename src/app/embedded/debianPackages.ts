/** Programs from the packages of the Debian family, unpacked into a folder of the cache: nothing is installed on the system. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { reasonOf } from '../../platform/setupError.js';

const COMMAND_TIMEOUT_MS = 180_000;
const VERSION_TIMEOUT_MS = 5_000;
/** An unpacking that is older than this belongs to a process that was killed. */
const ABANDONED_MS = 3_600_000;

const run = promisify(execFile);

/** Whether packages can be fetched and unpacked here. */
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
  /** The libraries that this package needs and the system lacks come with it; absent: none do. */
  readonly withLibrariesOf?: string;
  /** Whether what is unpacked in a folder runs here. */
  readonly runs: (folder: string) => Promise<boolean>;
  /** What is said where it does not. */
  readonly complaint: string;
}

/** Unpacks beside the folder and renames, so that the folder is whole, whoever else does the same meanwhile. */
export async function fetchPackages(cacheDir: string, folder: string, wanted: WantedPackages): Promise<void> {
  await mkdir(cacheDir, { recursive: true });
  await removeAbandoned(cacheDir);
  const work = join(cacheDir, `fetch-${randomBytes(6).toString('hex')}`);
  await mkdir(work);
  try {
    const unpacked = join(work, 'root');
    for (const archive of await downloadPackages(work, wanted)) await run('dpkg', ['-x', archive, unpacked]);
    // dpkg gives the folder the mode of the package's own root, which a later user of the cache could not enter.
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
    // Another process was faster; or what lies there was fetched on another system and doesn't run on this one.
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

/** The package files, fetched by the system's package lists; where those are missing or stale, by private ones. */
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
    // `Inst name (version …)` is a package that the system lacks; `Inst name [installed] (…` one that would be upgraded,
    // of which the installed one must do: a second libc beside the system's would not work.
    missing.push(...[...stdout.matchAll(/^Inst (\S+) \(/gm)].map((match) => match[1] as string));
  }
  await apt(work, [...options, 'download', ...new Set([...packages, ...missing])]);
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
