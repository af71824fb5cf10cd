/**
 * Chooses the user that Postgres runs as. Postgres refuses to run as root. So as root it runs as the owner of
 * its data, which is `nobody` for new data. The first of these ways is used in which that user can reach the
 * programs and the data:
 *
 * 1. as that user without privileges: the data folder belongs to that user;
 * 2. as that user with the capability CAP_DAC_OVERRIDE: a data folder of root is closed to others;
 * 3. as that user on a data folder that other users may traverse but not list or read, if 2 is not available,
 *    for example without setpriv. The programs are copied there if that user can't reach them.
 */
import { execFile } from 'node:child_process';
import { chmod, cp, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { reasonOf, SetupError } from '../../platform/setupError.js';
import { nativeFolder, type PostgresPrograms } from './postgresPrograms.js';

export interface ServerUser {
  /** Numeric user id; undefined for the user of this process. */
  uid?: number;
  gid?: number;
  /** Command that switches to the user. Without it, the spawning process sets the user id. */
  wrapper?: readonly string[];
}

export interface UserCommand {
  file: string;
  args: string[];
  uid?: number;
  gid?: number;
}

const NOBODY = 65_534;
const PROBE_TIMEOUT_MS = 5_000;
const run = promisify(execFile);

/** Returns the command that runs a program as the user. */
export function asUser(user: ServerUser, file: string, args: readonly string[]): UserCommand {
  const [wrapper, ...before] = user.wrapper ?? [];
  if (wrapper !== undefined) return { file: wrapper, args: [...before, file, ...args] };
  return {
    file,
    args: [...args],
    ...(user.uid === undefined ? {} : { uid: user.uid }),
    ...(user.gid === undefined ? {} : { gid: user.gid }),
  };
}

/** Runs a program as the user until it ends. Rejects like execFile if the exit code is not 0. */
export async function runAs(
  user: ServerUser,
  file: string,
  args: readonly string[],
  options: { env?: NodeJS.ProcessEnv; timeout: number },
): Promise<void> {
  const { file: program, args: programArgs, ...ids } = asUser(user, file, args);
  await run(program, programArgs, { ...options, ...ids, cwd: '/' });
}

interface Choice {
  user: ServerUser;
  programs: PostgresPrograms;
}

/**
 * Chooses the system user that runs the embedded Postgres, and the programs that this user can execute.
 * @param wanted.data data folder of Postgres, which need not exist yet
 * @throws SetupError if no user can run Postgres
 */
export async function chooseUser(wanted: {
  folder: string;
  data: string;
  programs: PostgresPrograms;
}): Promise<Choice> {
  const { folder, data, programs } = wanted;
  const owner = await stat(data).catch(() => undefined);
  const self = process.getuid?.();
  if (self !== 0) {
    if (self !== undefined && owner && owner.uid !== self) {
      throw new SetupError(
        `${data} belongs to user ${owner.uid}. Start Spindle as root or as that user, or set another DATA_DIR.`,
      );
    }
    return { user: {}, programs };
  }

  const { uid, gid } = owner && owner.uid !== 0 ? owner : await nobody();
  // Root owns the data if it was copied here by root, for example from a backup.
  if (owner?.uid === 0) await run('chown', ['-R', `${uid}:${gid}`, data]);

  const plain: ServerUser = { uid, gid };
  if (await reaches(plain, programs.postgres, folder)) return { user: plain, programs };
  const capable: ServerUser = { uid, gid, wrapper: setpriv(uid, gid) };
  if (await reaches(capable, programs.postgres, folder)) return { user: capable, programs };
  await letThrough(folder);
  if (await reaches(plain, folder)) {
    const isReached = await reaches(plain, programs.postgres);
    return { user: plain, programs: isReached ? programs : await copyPrograms(programs, folder) };
  }
  throw new SetupError(
    `Postgres can't run as root, and user ${uid} can't enter ${folder}. Start Spindle as an ordinary user, set DATA_DIR to a folder that other users can enter, or set DATABASE_URL.`,
  );
}

/** Lets other users traverse the folder to reach their own files in it. */
async function letThrough(folder: string): Promise<void> {
  for (const each of [folder, dirname(folder)]) await chmod(each, 0o711);
}

/**
 * Returns the setpriv command. The securebit no_setuid_fixup is needed because initdb and postgres check
 * their program files with access(2), which otherwise ignores the capabilities of a non-root user.
 */
export function setpriv(uid: number, gid: number): string[] {
  return [
    'setpriv',
    `--reuid=${uid}`,
    `--regid=${gid}`,
    '--clear-groups',
    '--inh-caps=+dac_override',
    '--ambient-caps=+dac_override',
    '--securebits=+no_setuid_fixup',
    '--',
  ];
}

/**
 * Returns whether the user may execute the programs and enter the folders at these paths, according to
 * access(2).
 */
async function reaches(user: ServerUser, ...paths: string[]): Promise<boolean> {
  const script = 'for path; do [ -x "$path" ] || exit 1; done';
  try {
    await runAs(user, '/bin/sh', ['-c', script, 'sh', ...paths], { timeout: PROBE_TIMEOUT_MS });
    return true;
  } catch {
    return false;
  }
}

async function nobody(): Promise<{ uid: number; gid: number }> {
  const [uid, gid] = await Promise.all(
    ['-u', '-g'].map(async (flag) => {
      const { stdout } = await run('id', [flag, 'nobody']).catch(() => ({ stdout: '' }));
      return Number(stdout.trim()) || NOBODY;
    }),
  );
  return { uid: uid ?? NOBODY, gid: gid ?? NOBODY };
}

/**
 * Copies the programs into the data folder, which belongs to root. In a public folder another user could
 * replace them.
 */
async function copyPrograms(programs: PostgresPrograms, folder: string): Promise<PostgresPrograms> {
  const { stdout } = await run(programs.postgres, ['--version']);
  const version = /[\d.]+/.exec(stdout)?.[0] ?? 'unknown';
  const copy = join(folder, `programs-${version}`);
  if (!(await stat(copy).catch(() => undefined))) {
    const unfinished = `${copy}.unfinished`;
    try {
      await rm(unfinished, { recursive: true, force: true });
      await cp(nativeFolder(programs), unfinished, { recursive: true, verbatimSymlinks: true });
      await rename(unfinished, copy);
    } catch (error) {
      throw new SetupError(`Cannot copy the Postgres programs to ${folder} (${reasonOf(error)})`, {
        cause: error,
      });
    }
  }
  return {
    postgres: join(copy, 'bin', basename(programs.postgres)),
    initdb: join(copy, 'bin', basename(programs.initdb)),
  };
}
