/**
 * Detects whether a process of a version up to 1.4.0 uses a data folder. On Linux, such a process holds a
 * name in the abstract namespace of sockets. Any user of the machine can hold such a name, so the name counts
 * only if a process of root, of this user or of the folder's owner holds it.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile, readlink, stat } from 'node:fs/promises';

export async function isHeldByEarlierVersion(folder: string): Promise<boolean> {
  const inodes = await inodesOf([
    `@spindle-${createHash('sha256').update(folder).digest('hex').slice(0, 32)}`,
    // Linux allows at most sizeof(sockaddr_un.sun_path) bytes, so the name is cut to this length.
    `@spindle-${createHash('sha512').update(folder).digest('hex')}`.slice(0, 108),
  ]);
  if (inodes.size === 0) return false;
  const trusted = new Set([0, process.getuid?.(), (await stat(folder)).uid]);
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const owner = await stat(`/proc/${pid}`).catch(() => undefined);
    if (owner === undefined || !trusted.has(owner.uid)) continue;
    // If this process may not list the open files of another process, it may not use the data folder of that
    // process either. So such a process is skipped.
    for (const file of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
      const target = await readlink(`/proc/${pid}/fd/${file}`).catch(() => '');
      if (inodes.has(target)) return true;
    }
  }
  return false;
}

/**
 * Returns the inodes of the sockets with such a name, in the form of /proc. There, a zero byte appears as @,
 * and Node 20 pads the name with zero bytes.
 */
async function inodesOf(names: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = (await readFile('/proc/net/unix', 'utf8').catch(() => '')).split('\n');
  const found = rows.flatMap((row) => {
    const [, , , , , , inode, path = ''] = row.trim().split(/\s+/);
    return names.includes(path.replace(/@+$/, '')) ? [`socket:[${inode}]`] : [];
  });
  return new Set(found);
}
