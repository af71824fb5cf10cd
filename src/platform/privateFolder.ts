/** Folders of which other users of the machine read nothing: what they hold says what will be dealt. */
import { chmod, lstat, mkdir, readdir, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { SetupError } from './setupError.js';

/** Rights of others to list or change: passing through alone shows nothing, and Postgres under another user may need it. */
const OTHERS = 0o066;
const ALL_WRITE = 0o002;
const GROUP_WRITE = 0o020;

/**
 * Makes the folder if need be, for its owner only; one that others could read is closed to them.
 * @param name the setting that names it, for messages
 * @throws SetupError where others can write it: what it holds may be theirs
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
      `${name} ${folder} can be written by other users (mode ${(mode & 0o777).toString(8)}): look that all in it is yours, then run «chmod 700 ${folder}»`,
    );
  }
  if (canClose && (mode & OTHERS) !== 0) await chmod(folder, mode & 0o7700);
}

/** Takes the rights of others away from all in a data folder that an earlier version made. Postgres closes its own data. */
export async function closeTree(dataDir: string): Promise<void> {
  if (process.getuid === undefined) return;
  await closeEntries(dataDir, join(dataDir, 'postgres'));
}

async function closeEntries(folder: string, postgres: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && folder !== postgres) await closeEntries(path, postgres);
    if (!entry.isFile() && !(entry.isDirectory() && folder !== postgres)) continue;
    // A file may be gone by now.
    const found = await lstat(path).catch(() => undefined);
    const isOurs = process.getuid!() === 0 || found?.uid === process.getuid!();
    const rights = entry.isFile() ? 0o077 : OTHERS;
    if (found !== undefined && isOurs && (found.mode & rights) !== 0) await chmod(path, found.mode & 0o7700);
  }
}
