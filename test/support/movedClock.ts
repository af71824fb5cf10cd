/**
 * Moves the clock of programs. They preload movedClock.c, which reads the offset of the clock from a file.
 * Needs Linux and a C compiler.
 */
import { spawnSync } from 'node:child_process';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './root.js';

const SOURCE = join(ROOT, 'test', 'support', 'movedClock.c');

/**
 * Compiles the library that moves the clock of a program.
 * @returns false if compiling fails
 */
export function compileClock(file: string): boolean {
  const args = ['-shared', '-fPIC', '-O1', '-o', file, SOURCE, '-ldl'];
  return spawnSync('cc', args, { stdio: 'ignore' }).status === 0;
}

/** Returns the environment variables that give a program the moved clock. */
export const clockEnvironment = (library: string, offsetFile: string): NodeJS.ProcessEnv => ({
  LD_PRELOAD: library,
  CLOCK_OFFSET_FILE: offsetFile,
});

/**
 * Moves the clock forward by a number of seconds, or back if the number is negative. Programs see the change
 * within 10 ms.
 */
export function setClock(offsetFile: string, seconds: number): void {
  // The file is renamed into place, so that no program reads an incomplete number.
  writeFileSync(`${offsetFile}.new`, String(Math.round(seconds)), { mode: 0o644 });
  renameSync(`${offsetFile}.new`, offsetFile);
}
