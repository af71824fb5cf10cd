/**
 * The user that Postgres runs as. It refuses to run as root; so as root it runs as the owner of its data, which is
 * `nobody` for new data, in the first of these ways that lets that user reach the programs and the data:
 *
 * 1. as that user and nothing more: the data folder is that user's own;
 * 2. as that user with one capability of root, CAP_DAC_OVERRIDE: a data folder of root is closed to others;
 * 3. as that user on a data folder that others may pass through, and neither list nor read: where 2 is not to be had, as
 *    without setpriv. With a copy of the programs in it where theirs are closed to that user.
 */
import { execFile } from 'node:child_process';
import { chmod, cp, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { reasonOf, SetupError } from '../../platform/setupError.js';
import { nativeFolder, type PostgresPrograms } from './postgresPrograms.js';

export interface ServerUser {
  /** Undefined: the user of this process. */
  uid?: number;
  gid?: number;
  /** The command that changes to the user; without it, the starting process changes. */
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

/** How to run the program as the user. */
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

/** Runs the program as the user to its end. Rejects, as execFile does, where that is not exit code 0. */
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

/** `data` need not exist yet, `folder` holds it. Throws SetupError where Postgres can run as no user. */
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
        `${data} belongs to user ${owner.uid}: start Spindle as root or as that user, or set another DATA_DIR`,
      );
    }
    return { user: {}, programs };
  }

  const { uid, gid } = owner && owner.uid !== 0 ? owner : await nobody();
  // Data that root copied here, e.g. out of a backup.
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
    `Postgres refuses to run as root, and user ${uid} cannot enter ${folder}: start Spindle as an ordinary user, set DATA_DIR to a folder that others can enter, or set DATABASE_URL`,
  );
}

/** Other users may pass through to what is theirs below. */
async function letThrough(folder: string): Promise<void> {
  for (const each of [folder, dirname(folder)]) await chmod(each, 0o711);
}

/**
 * no_setuid_fixup: initdb and postgres look at their program files with access(2), which otherwise leaves the
 * capabilities of a user other than root out of account.
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

/** Whether the user may execute the programs and enter the folders at these paths, as access(2) sees it. */
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

/** A copy in the data folder, which belongs to root, and not in a folder for all: nobody else can put his own there. */
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
      throw new SetupError(`the Postgres programs cannot be copied to ${folder} (${reasonOf(error)})`, {
        cause: error,
      });
    }
  }
  return {
    postgres: join(copy, 'bin', basename(programs.postgres)),
    initdb: join(copy, 'bin', basename(programs.initdb)),
  };
}
