/** Files that are there as a whole or not at all, and on disk once written. Other users read none that is not meant for them. */
import { randomBytes } from 'node:crypto';
import { chmod, type FileHandle, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

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
  const made = await open(folder, 'r');
  try {
    await made.sync();
  } finally {
    await made.close();
  }
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
