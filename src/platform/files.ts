/** Files that are there as a whole or not at all, and on disk once written. Other users read none that is not meant for them. */
import { randomBytes, randomInt } from 'node:crypto';
import { chmod, type FileHandle, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

/** Makes a folder, and those above it, for its owner only. One that is there keeps its rights. */
export const makePrivateFolder = async (path: string): Promise<void> =>
  void (await mkdir(path, { recursive: true, mode: 0o700 }));

/** Makes a folder for its owner only; one of this user that others may list or change is closed to them. */
export async function closeFolder(path: string): Promise<void> {
  await makePrivateFolder(path);
  const { mode, uid } = await stat(path);
  if (uid === process.getuid?.() && (mode & 0o066) !== 0) await chmod(path, mode & 0o7700);
}

/** Opens a file that its owner only may read, be it new or there with other rights. */
export async function openPrivate(path: string, flags: 'w' | 'wx'): Promise<FileHandle> {
  const file = await open(path, flags, 0o600);
  try {
    await file.chmod(0o600);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

export interface WriteOptions {
  /** Whether all users may read the file and the folders that are made for it. */
  readonly isPublic?: boolean;
}

/** Writes a file by rename, and resolves once it and its folder are on disk. Makes the folder if need be. */
export async function writeDurably(
  path: string,
  bytes: string | Uint8Array,
  { isPublic = false }: WriteOptions = {},
): Promise<void> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true, mode: isPublic ? 0o755 : 0o700 });
  const part = `${path}.${randomBytes(4).toString('hex')}.part`;
  try {
    const file = await open(part, 'wx', isPublic ? 0o644 : 0o600);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(part, path);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
  await syncFolder(folder);
}

/** Other processes replaced the file each time. */
const REPLACE_ATTEMPTS_MAX = 10;
/** For each attempt before. */
const REPLACE_WAIT_MS_MAX = 50;

/**
 * Replaces a file that several processes write by what follows from its content, and resolves once it is on disk. Each takes away what the
 * others have begun before it reads the file: one that was paused meanwhile has nothing left to put in its place, and begins again. So no
 * older content ever follows a newer one, whatever lock was lost.
 * @param next undefined: the file stays as it is
 * @throws where other processes replace it again and again
 */
export async function replaceFile(
  path: string,
  next: (now: Buffer | undefined) => string | Uint8Array | undefined,
): Promise<void> {
  await makePrivateFolder(dirname(path));
  for (let attempt = 1; attempt <= REPLACE_ATTEMPTS_MAX; attempt++) {
    if (attempt > 1) await pause(randomInt(attempt * REPLACE_WAIT_MS_MAX));
    if (await tryReplace(path, next)) return;
  }
  throw new Error(`${path} can't be written: other processes write it all the time`);
}

/** @returns whether nobody else began meanwhile */
async function tryReplace(path: string, next: Parameters<typeof replaceFile>[1]): Promise<boolean> {
  const begun = `${path}.${randomBytes(8).toString('hex')}.next`;
  const file = await openPrivate(begun, 'wx');
  try {
    for (const name of await readdir(dirname(path))) {
      const other = join(dirname(path), name);
      // Versions up to 1.4.0 have one name for all.
      const isBegun = (other.startsWith(`${path}.`) && name.endsWith('.next')) || other === `${path}.tmp`;
      if (isBegun && other !== begun) await rm(other, { force: true });
    }
    const bytes = next(await readIfThere(path));
    if (bytes === undefined) return true;
    await file.writeFile(bytes);
    await file.sync();
    await rename(begun, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  } finally {
    await file.close();
    await rm(begun, { force: true });
  }
  await syncFolder(dirname(path));
  return true;
}

/** Makes the names in a folder survive a power cut. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  await folder.sync().finally(() => folder.close());
}

/** @returns undefined where there is none */
export async function readIfThere(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
