/** Reads and writes the small persistent files of the data folder: ports, passwords and keys. */
import { randomBytes, randomInt } from 'node:crypto';
import { chmod, link, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { listen } from '../../platform/loopback.js';
import { ownFolder } from '../../platform/privateFolder.js';
import { SetupError } from '../../platform/setupError.js';

/**
 * Range of ports below the ephemeral ports of Linux, macOS and Windows. With an ephemeral port, a client that
 * keeps reconnecting to a stopped server may be assigned the server's own port and connect to itself.
 */
const PORT_MIN = 15_000;
const PORT_MAX = 32_000;
const PORT_ATTEMPTS_MAX = 200;

/** Returns a loopback port on which nothing listens at the moment, and which is not one of `taken`. */
export async function freePort(taken: readonly number[] = []): Promise<number> {
  for (let attempt = 0; attempt < PORT_ATTEMPTS_MAX; attempt++) {
    const port = randomInt(PORT_MIN, PORT_MAX);
    if (!taken.includes(port) && (await isFree(port))) return port;
  }
  throw new SetupError(`No port between ${PORT_MIN} and ${PORT_MAX} is free on 127.0.0.1`);
}

/**
 * Returns the port stored in the file if it is still free. Otherwise stores and returns a new one.
 * @param others files with other ports of the same server, which are therefore never returned
 */
export async function keptPort(path: string, ...others: readonly string[]): Promise<number> {
  const taken = await Promise.all(others.map(async (other) => Number(await readText(other))));
  const kept = Number(await readText(path));
  const isPort = Number.isInteger(kept) && kept > 0 && kept < 65_536;
  if (isPort && !taken.includes(kept) && (await isFree(kept))) return kept;
  const port = await freePort(taken);
  await writeFileAtomic(path, `${port}\n`);
  return port;
}

async function isFree(port: number): Promise<boolean> {
  const server = await listen({ port, host: '127.0.0.1' });
  if (!server) return false;
  await new Promise((resolve) => server.close(resolve));
  return true;
}

/**
 * Returns a password of 192 random bits, in characters without a special meaning in URLs, shells and
 * configuration files.
 */
export function newPassword(): string {
  return randomBytes(24).toString('hex');
}

/**
 * Returns the content of the file. If the file is missing, it is created atomically with mode 0600 and the
 * result of `make`.
 */
export async function readOrCreateSecret(path: string, make: () => string): Promise<string> {
  await ownFolder(dirname(path), 'The folder');
  const kept = await readText(path);
  if (kept !== undefined && kept !== '') {
    await chmod(path, 0o600);
    return kept;
  }
  if (kept === '') await rm(path, { force: true });
  const temporary = await writeTemporary(path, `${make()}\n`);
  try {
    // Unlike a rename, a hard link never replaces a secret that another process has written in the meantime.
    await link(temporary, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  } finally {
    await rm(temporary, { force: true });
  }
  await syncFolder(join(path, '..'));
  return (await readFile(path, 'utf8')).trim();
}

/**
 * Writes a file with mode 0600 atomically: readers, and a start after a crash, see either the old or the new
 * content.
 */
export async function writeFileAtomic(path: string, content: string): Promise<void> {
  const temporary = await writeTemporary(path, content);
  await rename(temporary, path);
  await syncFolder(join(path, '..'));
}

/** Syncs a folder, so that its file names survive a power failure. */
export async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/**
 * Returns the trimmed content, or undefined if the file does not exist. Throws SetupError if the file belongs
 * to another user.
 */
export async function readText(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    if (code !== 'EACCES') throw error;
    throw new SetupError(`Cannot read ${path}. Start Spindle as the user that owns it.`, {
      cause: error,
    });
  }
}

async function writeTemporary(path: string, content: string): Promise<string> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  const file = await open(temporary, 'wx', 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  return temporary;
}
