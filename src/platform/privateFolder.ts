/**
 * Makes folders unreadable for other users of the machine, because their content reveals what will be dealt.
 */
import { chmod, lstat, mkdir, readdir, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { SetupError } from './setupError.js';

/**
 * Permission bits with which group and others may list or change a folder. The permission to pass through the
 * folder is not included: it reveals nothing, and Postgres under another user may need it.
 */
const OTHERS = 0o066;
const ALL_WRITE = 0o002;
const GROUP_WRITE = 0o020;

/**
 * Creates the folder if needed, with access for its owner only. If others can read an existing folder, their
 * rights are removed.
 * @param name setting that names the folder, for messages
 * @throws SetupError if others can write to the folder, because its content may come from them
 */
export async function ownFolder(path: string, name: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  const self = process.getuid?.();
  if (self === undefined) return;
  const folder = await realpath(path);
  const { mode, uid } = await stat(folder);
  const canClose = self === 0 || uid === self;
  const others = canClose ? ALL_WRITE : ALL_WRITE | GROUP_WRITE;
  if ((mode & others) !== 0) {
    throw new SetupError(
      `${name} ${folder} can be written by other users (mode ${(mode & 0o777).toString(8)}). Check that all files in it are yours, then run «chmod 700 ${folder}»`,
    );
  }
  if (canClose && (mode & OTHERS) !== 0) await chmod(folder, mode & 0o7700);
}

/**
 * Removes the rights of others from everything in a data folder of an earlier version, except the data of
 * Postgres, which it protects itself.
 */
export async function closeTree(dataDir: string): Promise<void> {
  if (process.getuid === undefined) return;
  await closeEntries(dataDir, join(dataDir, 'postgres'));
}

async function closeEntries(folder: string, postgres: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && folder !== postgres) await closeEntries(path, postgres);
    if (!entry.isFile() && !(entry.isDirectory() && folder !== postgres)) continue;
    // The file may have been removed since the folder was listed.
    const found = await lstat(path).catch(() => undefined);
    const isOurs = process.getuid!() === 0 || found?.uid === process.getuid!();
    const rights = entry.isFile() ? 0o077 : OTHERS;
    if (found !== undefined && isOurs && (found.mode & rights) !== 0) await chmod(path, found.mode & 0o7700);
  }
}
