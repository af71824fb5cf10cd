/**
 * The data folder: who holds it, and the small files in it that outlive a start (ports, passwords).
 *
 * One process at a time works on a data folder. The lock is a listening unix socket, because the kernel frees that
 * when its process ends in whatever way: a lock file would stay behind after SIGKILL.
 */
import { createHash, randomBytes, randomInt } from 'node:crypto';
import { constants } from 'node:fs';
import { access, chmod, link, mkdir, open, readFile, realpath, rename, rm } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { SetupError } from './setupError.js';

export interface DataDirLock {
  /** The folder's real path. */
  readonly dataDir: string;
  release(): Promise<void>;
}

/** sizeof(sockaddr_un.sun_path) on Linux. */
const SOCKET_NAME_LENGTH = 108;

/**
 * Ports below the range from which Linux, macOS and Windows take the local ends of outgoing connections. In that range
 * a client that keeps trying to reach a stopped server can be given the server's own port and connect to itself.
 */
const PORT_MIN = 15_000;
const PORT_MAX = 32_000;
const PORT_ATTEMPTS_MAX = 200;

/**
 * Makes the folder if need be and locks it until release() or the end of this process. Throws SetupError if held.
 * @param name the setting that names the folder, for messages
 */
export async function lockDataDir(dataDir: string, name = 'DATA_DIR'): Promise<DataDirLock> {
  let folder: string;
  try {
    await mkdir(dataDir, { recursive: true });
    folder = await realpath(dataDir);
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new SetupError(`${name} ${dataDir} cannot be used (${(error as Error).message})`, {
      cause: error,
    });
  }
  const server = await holdSocket(folder);
  if (!server) throw new SetupError(`${name} ${folder} is in use by another Spindle`);
  server.unref();
  return {
    dataDir: folder,
    release: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

async function holdSocket(folder: string): Promise<Server | undefined> {
  const name = `spindle-${createHash('sha256').update(folder).digest('hex').slice(0, 32)}`;
  if (process.platform === 'linux') {
    // Versions up to 1.4.0 hold this name, which Node 22.13 and 24.0 refuse: they take no zeros in it.
    if (await answers(`\0${name}`.padEnd(SOCKET_NAME_LENGTH, '\0'))) return undefined;
    // Node 20 pads an abstract name with zeros to its full length, and later ones do not: a name of that length is one lock.
    const whole = `spindle-${createHash('sha512').update(folder).digest('hex')}`;
    return listen(`\0${whole}`.slice(0, SOCKET_NAME_LENGTH));
  }
  if (process.platform === 'win32') return listen(`\\\\.\\pipe\\${name}`);

  const path = join(tmpdir(), `${name}.sock`);
  const held = await listen(path);
  if (held || (await answers(path))) return held;
  await rm(path, { force: true });
  return listen(path);
}

/** A server on the address, or undefined where another one listens. */
function listen(address: string | { port: number; host: string }): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(undefined);
      else reject(error);
    });
    server.listen(address, () => resolve(server));
  });
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

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
  await mkdir(dirname(path), { recursive: true });
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
