/**
 * Chooses the folder of test stores: in memory if there is enough, or on a small disk that a test can fill.
 */
import { execFile, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { access, constants, mkdir, open, statfs } from 'node:fs/promises';
import { freemem, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const MEMORY_DISK = '/dev/shm';
const MEMORY_FREE_BYTES_MIN = 6e9;

/**
 * Returns the parent folder for stores, which is in memory if the machine has plenty of it. No test cuts the
 * power, so a disk would only add the time of its syncs.
 */
export async function storesParent(): Promise<string> {
  try {
    await access(MEMORY_DISK, constants.W_OK);
    const { bavail, bsize } = await statfs(MEMORY_DISK);
    if (Math.min(bavail * bsize, process.availableMemory?.() ?? freemem()) >= MEMORY_FREE_BYTES_MIN)
      return MEMORY_DISK;
  } catch {
    // Not every system has a memory disk.
  }
  return tmpdir();
}

/** Returns the reason why {@link smallDisk} can't be used, or undefined if it can. */
export function smallDiskMissing(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return 'only root on Linux can mount a small disk';
  const folder = mkdtempSync(join(tmpdir(), 'spindle-mount-'));
  try {
    if (spawnSync('mount', ['-t', 'tmpfs', 'tmpfs', folder]).status !== 0)
      return 'mounting is not allowed here';
    spawnSync('umount', [folder]);
    return undefined;
  } finally {
    rmdirSync(folder);
  }
}

/**
 * Mounts a disk of its own at a folder, readable by its owner only.
 * @returns a function that removes the disk
 * @throws Error if the disk can't be mounted
 */
export async function smallDisk(folder: string, megabytes: number): Promise<() => Promise<void>> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await run('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0700`, 'tmpfs', folder]);
  const quoted = `'${folder}'`;
  // A guard process unmounts the disk, in whatever way this process ends.
  const guard = spawn(
    'sh',
    ['-c', `while kill -0 ${process.pid}; do sleep 1; done; umount --lazy ${quoted}; rm -rf ${quoted}`],
    { detached: true, stdio: 'ignore' },
  );
  guard.unref();
  return async () => {
    guard.kill();
    // If a process still uses the disk, a lazy unmount removes it when that process ends.
    await run('umount', [folder]).catch(() => run('umount', ['--lazy', folder]));
  };
}

/** Writes a file until its disk has no free block left. */
export async function fillDisk(path: string): Promise<void> {
  const file = await open(path, 'w');
  try {
    const chunk = Buffer.alloc(1 << 20);
    for (let size = chunk.length; size > 0; ) {
      try {
        await file.write(chunk, 0, size);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
        // Smaller chunks fill the last free blocks.
        size = Math.floor(size / 2);
      }
      if ((await statfs(path)).bavail === 0) return;
    }
  } finally {
    await file.close();
  }
}
