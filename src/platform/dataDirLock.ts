/**
 * Lock of a data folder, which only one process may use at a time.
 *
 * The process with the lock listens on a Unix socket in the folder. The folder is closed to other users, so
 * nobody else can take the lock. The kernel closes the socket when the process ends in any way, whereas a pid
 * file would survive a SIGKILL.
 *
 *   listen under a new name ──> rename to lock-<random> ──> connect to all other lock-*
 *     ──> one answers: not acquired
 *     └──> none answers: acquired; dead sockets are removed
 *
 * A socket is renamed once it accepts connections, and its name is never reused, so a socket that refuses
 * connections belongs to a process that has ended. At most one of two processes gets the lock, because the
 * process that renames its socket later finds the other socket.
 */
import { createHash, randomBytes, randomInt } from 'node:crypto';
import { constants } from 'node:fs';
import { access, chmod, type FileHandle, open, readdir, realpath, rename, rm } from 'node:fs/promises';
import { connect, type Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isHeldByEarlierVersion } from './earlierLocks.js';
import { listen } from './loopback.js';
import { ownFolder } from './privateFolder.js';
import { SetupError } from './setupError.js';

export interface DataDirLock {
  /** Path of the data folder after all symbolic links are resolved. */
  readonly dataDir: string;
  release(): Promise<void>;
}

/** Maximum length of a socket's path on Linux and on macOS, in bytes, without the final zero. */
const SOCKET_PATH_MAX = process.platform === 'linux' ? 107 : 103;
/**
 * Processes that begin at the same moment find each other's sockets and all fail, so each tries again after a
 * random time.
 */
const ATTEMPTS_MAX = 6;
const ATTEMPT_WAIT_MS_MAX = 60;

/**
 * Creates the folder if needed, closes it to other users, and locks it until release() or the end of this
 * process.
 * @param name setting that names the folder, for messages
 * @throws SetupError if another process holds the lock or other users can write to the folder
 */
export async function lockDataDir(dataDir: string, name = 'DATA_DIR'): Promise<DataDirLock> {
  let folder: string;
  try {
    await ownFolder(dataDir, name);
    folder = await realpath(dataDir);
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    if (error instanceof SetupError) throw error;
    throw new SetupError(`${name} ${dataDir} can't be used (${(error as Error).message})`, {
      cause: error,
    });
  }
  const release = await hold(folder);
  if (release === undefined) throw new SetupError(`${name} ${folder} is in use by another Spindle`);
  return { dataDir: folder, release };
}

type Release = () => Promise<void>;

/** @returns undefined if another process holds the folder */
async function hold(folder: string): Promise<Release | undefined> {
  if (process.platform === 'win32') {
    const name = createHash('sha256').update(folder).digest('hex').slice(0, 32);
    const pipe = await listen(`\\\\.\\pipe\\spindle-${name}`);
    return pipe && (() => closed(pipe));
  }
  if (process.platform === 'linux' && (await isHeldByEarlierVersion(folder))) return undefined;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    if (attempt > 1) await pause(randomInt(ATTEMPT_WAIT_MS_MAX));
    const release = await holdSocket(folder);
    if (release !== undefined) return release;
  }
  return undefined;
}

async function holdSocket(folder: string): Promise<Release | undefined> {
  const name = `lock-${randomBytes(8).toString('hex')}`;
  const reach = await openReach(folder, name);
  try {
    const server = await listen(reach.path(`new-${name}`)).catch((error: unknown) => {
      throw new SetupError(`can't create a socket in ${folder} (${(error as Error).message})`, {
        cause: error,
      });
    });
    if (server === undefined) return undefined;
    server.unref();
    const release = async (): Promise<void> => {
      await rm(join(folder, name), { force: true });
      await closed(server);
    };
    try {
      await chmod(join(folder, `new-${name}`), 0o600);
      await rename(join(folder, `new-${name}`), join(folder, name));
      for (const other of await readdir(folder)) {
        if (!other.startsWith('lock-') || other === name) continue;
        if (await answers(reach.path(other))) {
          await release();
          return undefined;
        }
        await rm(join(folder, other), { force: true });
      }
    } catch (error) {
      await release();
      throw error;
    }
    return release;
  } finally {
    await reach.handle?.close();
  }
}

/**
 * Returns paths for sockets in a folder. If the folder's path is too long for a socket, Linux can reach the
 * folder through a file handle.
 */
async function openReach(
  folder: string,
  name: string,
): Promise<{ readonly path: (file: string) => string; readonly handle: FileHandle | undefined }> {
  if (Buffer.byteLength(join(folder, `new-${name}`)) <= SOCKET_PATH_MAX)
    return { path: (file) => join(folder, file), handle: undefined };
  if (process.platform !== 'linux') throw new SetupError(`the path ${folder} is too long for a socket`);
  const handle = await open(folder, 'r');
  return { path: (file) => `/proc/self/fd/${handle.fd}/${file}`, handle };
}

/**
 * Returns whether a process listens on a socket. A paused process counts as listening, and so does one that
 * has too many pending connections.
 */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', ({ code }: NodeJS.ErrnoException) =>
      resolve(code !== 'ECONNREFUSED' && code !== 'ENOENT'),
    );
  });
}

const closed = (server: Server): Promise<void> => new Promise((resolve) => server.close(() => resolve()));
