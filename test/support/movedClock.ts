/** A clock that is moved: programs that preload movedClock.c read its offset from a file. Needs Linux and a C compiler. */
import { spawnSync } from 'node:child_process';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './root.js';

const SOURCE = join(ROOT, 'test', 'support', 'movedClock.c');

/** Makes the library that moves the clock of a program. @returns false where it can't be made */
export function compileClock(file: string): boolean {
  const args = ['-shared', '-fPIC', '-O1', '-o', file, SOURCE, '-ldl'];
  return spawnSync('cc', args, { stdio: 'ignore' }).status === 0;
}

/** What a program's environment has, so that its clock is the moved one. */
export const clockEnvironment = (library: string, offsetFile: string): NodeJS.ProcessEnv => ({
  LD_PRELOAD: library,
  CLOCK_OFFSET_FILE: offsetFile,
});

/** Sets the clock ahead by so many seconds, back where the number is negative; programs see it within 10 ms. */
export function setClock(offsetFile: string, seconds: number): void {
  // Renamed into its place: nobody reads a half.
  writeFileSync(`${offsetFile}.new`, String(Math.round(seconds)), { mode: 0o644 });
  renameSync(`${offsetFile}.new`, offsetFile);
}
