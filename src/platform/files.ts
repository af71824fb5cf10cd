/** Writes files atomically and durably. Other users can read only files that are meant for them. */
import { randomBytes, randomInt } from 'node:crypto';
import { chmod, type FileHandle, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

/**
 * Creates a folder and its parents, with access for their owner only. A folder that already exists keeps its
 * rights.
 */
export const makePrivateFolder = async (path: string): Promise<void> =>
  void (await mkdir(path, { recursive: true, mode: 0o700 }));

/**
 * Creates a folder with access for its owner only. If the folder exists, belongs to this user and can be
 * listed or changed by others, the rights of the others are removed.
 */
export async function closeFolder(path: string): Promise<void> {
  await makePrivateFolder(path);
  const { mode, uid } = await stat(path);
  if (uid === process.getuid?.() && (mode & 0o066) !== 0) await chmod(path, mode & 0o7700);
}

/** Opens a file that only its owner may read. If the file exists with other rights, they are changed. */
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
  /** Whether all users may read the file and the folders that are created for it. */
  readonly isPublic?: boolean;
}

/**
 * Writes a file by rename, and resolves once the file and its folder are on disk. Creates the folder if
 * needed.
 */
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

/** An attempt fails if another process replaces the file at the same time. */
const REPLACE_ATTEMPTS_MAX = 10;
/** Maximum random pause before a further attempt, in ms, multiplied by the number of failed attempts. */
const REPLACE_WAIT_MS_MAX = 50;

/**
 * Replaces a file that several processes write, with content that is derived from its present content.
 * Resolves once the file is on disk. Each process removes the unfinished replacements of the others before it
 * reads the file. A process that was paused meanwhile thus finds its own replacement gone and starts again.
 * Older content therefore never replaces newer content, even if a process has lost its lock.
 * @param next derives the new content; undefined leaves the file unchanged
 * @throws Error if other processes replace the file again and again
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
  throw new Error(`${path} can't be written, because other processes keep writing it`);
}

/**
 * Tries once to replace a file.
 * @returns false if another process began a replacement meanwhile
 */
async function tryReplace(path: string, next: Parameters<typeof replaceFile>[1]): Promise<boolean> {
  const begun = `${path}.${randomBytes(8).toString('hex')}.next`;
  const file = await openPrivate(begun, 'wx');
  try {
    for (const name of await readdir(dirname(path))) {
      const other = join(dirname(path), name);
      // Versions up to 1.4.0 give the unfinished replacement the same name in all processes.
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

/** Syncs the entries of a folder to disk, so that they survive a power failure. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  await folder.sync().finally(() => folder.close());
}

/** A file exists, but its content can't be used. */
export class UnreadableFileError extends Error {
  /** @param reason why, such as "it is empty" */
  constructor(
    readonly path: string,
    readonly reason: string,
  ) {
    super(`${path} can't be read: ${reason}`);
  }
}

/** Errors of the file itself. After others, such as a lack of descriptors, the next attempt may succeed. */
const UNREADABLE: Readonly<Record<string, string>> = {
  EACCES: 'this process has no right to read it',
  EPERM: 'this process has no right to read it',
  EISDIR: 'it is a folder',
  ELOOP: 'it is a symbolic link to itself',
};

/**
 * @returns undefined if it does not exist
 * @throws UnreadableFileError if the file can't be read however often it is tried
 */
export async function readIfThere(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    const reason = UNREADABLE[code];
    throw reason === undefined ? error : new UnreadableFileError(path, reason);
  }
}
