/**
 * Stores on a disk whose syncs take longer: Redis gets a preloaded library (slowSync.c, built with `cc`) that waits after each
 * fsync and fdatasync, Postgres waits before it syncs a commit (commit_delay). Needs Linux and a C compiler.
 */
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { findRedisProgram } from '../src/embedded/redisServer.js';
import type { Cleanup } from '../test/support/cleanup.js';
import { ROOT } from '../test/support/root.js';

const run = promisify(execFile);

/**
 * Puts a program of the same name before the Redis server in PATH, for every embedded Redis that this process starts from now
 * on. It execs the server, so that its process is the server's.
 * @param syncMs by how much each sync takes longer, milliseconds from 0
 * @throws where there is no C compiler
 */
export async function slowRedis(syncMs: number, cleanup: Cleanup): Promise<void> {
  const { file, libraryFolders } = await findRedisProgram(join(ROOT, '.cache'), () => {});
  const folder = await mkdtemp(join(tmpdir(), 'spindle-slow-'));
  cleanup.add(() => rm(folder, { recursive: true, force: true }));
  const library = join(folder, 'slowSync.so');
  const source = join(ROOT, 'bench', 'slowSync.c');
  await run('cc', ['-shared', '-fPIC', '-O2', '-Wall', '-o', library, source, '-ldl']);
  const program = join(folder, basename(file));
  const environment = [
    `LD_PRELOAD='${library}'`,
    `SLOW_SYNC_US=${Math.round(syncMs * 1000)}`,
    ...(libraryFolders.length > 0 ? [`LD_LIBRARY_PATH='${libraryFolders.join(':')}'`] : []),
  ];
  await writeFile(program, `#!/bin/sh\n${environment.join(' ')} exec '${file}' "$@"\n`);
  await chmod(program, 0o755);
  const path = process.env.PATH;
  process.env.PATH = `${folder}${delimiter}${path ?? ''}`;
  cleanup.add(() => {
    if (path === undefined) delete process.env.PATH;
    else process.env.PATH = path;
  });
}

/** Has a running Postgres wait before it syncs a commit. @param ask runs a statement there */
export async function slowCommits(
  syncMs: number,
  ask: (statement: string) => Promise<unknown>,
): Promise<void> {
  // Without other transactions, too.
  await ask('ALTER SYSTEM SET commit_siblings = 0');
  await ask(`ALTER SYSTEM SET commit_delay = ${Math.round(syncMs * 1000)}`);
  await ask('SELECT pg_reload_conf()');
}
