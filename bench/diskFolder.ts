/** Where the stores of a measurement lie: on a disk, because the time of its syncs is part of what a durable spin takes. */
import { chmod, mkdtemp, realpath, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../test/support/root.js';

/** tmpfs and ramfs: `f_type` of statfs(2). There a sync takes no time. */
const IN_MEMORY = [0x01021994, 0x858458f6];

/** Makes an empty folder, which the caller removes. @throws Error where only file systems in memory are to be had */
export async function newDiskFolder(): Promise<string> {
  for (const parent of [tmpdir(), '/var/tmp', ROOT]) {
    if (await isInMemory(parent)) continue;
    const folder = await realpath(await mkdtemp(join(parent, 'spindle-bench-')));
    // As root, Postgres runs as another user, who must be able to enter.
    await chmod(folder, 0o755);
    return folder;
  }
  throw new Error('The bench needs a disk for its stores: TMPDIR, /var/tmp and the project are in memory');
}

async function isInMemory(folder: string): Promise<boolean> {
  try {
    return IN_MEMORY.includes((await statfs(folder)).type);
  } catch {
    return true;
  }
}
