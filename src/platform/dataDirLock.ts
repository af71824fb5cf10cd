/**
 * The lock of a data folder: one process at a time works on it.
 *
 * A holder listens on a unix socket in the folder, which is closed to other users, so that nobody else can take the
 * lock. The kernel ends the listening when the process ends in whatever way; a pid file would outlive SIGKILL.
 *
 *   listen under a new name ──> rename to lock-<random> ──> ask all other lock-* ──> one answers: give up
 *                                                                              └──> none answers: held; dead ones are removed
 *
 * A socket is renamed once it answers, and its name is never used again: one that refuses is of a process that has ended.
 * Of two processes at most one holds the lock: the later of them to rename sees the other one.
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
  /** The folder's real path. */
  readonly dataDir: string;
  release(): Promise<void>;
}

/** Bytes of a socket's path on Linux and on macOS, without the final zero. */
const SOCKET_PATH_MAX = process.platform === 'linux' ? 107 : 103;
/** Processes that begin at the same moment see each other and all give up: each tries again after a random time. */
const ATTEMPTS_MAX = 6;
const ATTEMPT_WAIT_MS_MAX = 60;

/**
 * Makes the folder if need be, closes it to other users, and locks it until release() or the end of this process. Throws SetupError where it is held, or where other users can write it.
 * @param name the setting that names the folder, for messages
 */
export async function lockDataDir(dataDir: string, name = 'DATA_DIR'): Promise<DataDirLock> {
  let folder: string;
  try {
    await ownFolder(dataDir, name);
    folder = await realpath(dataDir);
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    if (error instanceof SetupError) throw error;
    throw new SetupError(`${name} ${dataDir} cannot be used (${(error as Error).message})`, {
      cause: error,
    });
  }
  const release = await hold(folder);
  if (release === undefined) throw new SetupError(`${name} ${folder} is in use by another Spindle`);
  return { dataDir: folder, release };
}

type Release = () => Promise<void>;

/** @returns undefined where another process holds the folder */
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
      throw new SetupError(`no socket can be made in ${folder} (${(error as Error).message})`, {
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

/** Paths for sockets in a folder: where its own path is too long for one, Linux reaches it by a handle. */
async function openReach(
  folder: string,
  name: string,
): Promise<{ readonly path: (file: string) => string; readonly handle: FileHandle | undefined }> {
  if (Buffer.byteLength(join(folder, `new-${name}`)) <= SOCKET_PATH_MAX)
    return { path: (file) => join(folder, file), handle: undefined };
  if (process.platform !== 'linux') throw new SetupError(`the path ${folder} is too long for a socket in it`);
  const handle = await open(folder, 'r');
  return { path: (file) => `/proc/self/fd/${handle.fd}/${file}`, handle };
}

/** Whether a process listens there. It does, too, where it is stopped, or too many ask it at once. */
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
