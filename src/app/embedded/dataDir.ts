/** The small files of the data folder that outlive a start: ports, passwords, keys. */
import { randomBytes, randomInt } from 'node:crypto';
import { chmod, link, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { listen } from '../../platform/loopback.js';
import { ownFolder } from '../../platform/privateFolder.js';
import { SetupError } from '../../platform/setupError.js';

/**
 * Ports below the range from which Linux, macOS and Windows take the local ends of outgoing connections. In that range
 * a client that keeps trying to reach a stopped server can be given the server's own port and connect to itself.
 */
const PORT_MIN = 15_000;
const PORT_MAX = 32_000;
const PORT_ATTEMPTS_MAX = 200;

/** A loopback port on which nothing listens at this moment. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < PORT_ATTEMPTS_MAX; attempt++) {
    const port = randomInt(PORT_MIN, PORT_MAX);
    if (await isFree(port)) return port;
  }
  throw new SetupError(`no free port between ${PORT_MIN} and ${PORT_MAX} on 127.0.0.1`);
}

/** The port that the file names, if it is still free; else a new one, which the file then names. */
export async function keptPort(path: string): Promise<number> {
  const kept = Number(await readText(path));
  if (Number.isInteger(kept) && kept > 0 && kept < 65_536 && (await isFree(kept))) return kept;
  const port = await freePort();
  await writeFileAtomic(path, `${port}\n`);
  return port;
}

async function isFree(port: number): Promise<boolean> {
  const server = await listen({ port, host: '127.0.0.1' });
  if (!server) return false;
  await new Promise((resolve) => server.close(resolve));
  return true;
}

/** A password of 192 random bits, in characters that mean nothing to a URL, a shell or a configuration file. */
export function newPassword(): string {
  return randomBytes(24).toString('hex');
}

/** What the file holds; where there is none, what `make` returns, written whole with mode 0600 or not at all. */
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
    // Unlike rename, link never takes the place of a secret that another process wrote in the meantime.
    await link(temporary, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  } finally {
    await rm(temporary, { force: true });
  }
  await syncFolder(join(path, '..'));
  return (await readFile(path, 'utf8')).trim();
}

/** Writes a file of mode 0600: a reader, or a start after a crash, sees the old content or the new, nothing between. */
export async function writeFileAtomic(path: string, content: string): Promise<void> {
  const temporary = await writeTemporary(path, content);
  await rename(temporary, path);
  await syncFolder(join(path, '..'));
}

/** Makes the names in a folder survive a power cut. */
export async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** The trimmed content, or undefined if there is no such file. Throws SetupError where it belongs to another user. */
export async function readText(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    if (code !== 'EACCES') throw error;
    throw new SetupError(`${path} cannot be read: start Spindle as the user that it belongs to`, {
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
