/**
 * Destroys the data of Redis while its clock is hours off. Nothing may be rebuilt or dealt at the wrong time,
 * and everything must continue once the clock is right.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findRedisProgram, redisEnvironment } from '../../src/app/embedded/redisServer.js';
import { clockEnvironment, compileClock } from '../support/movedClock.js';
import { rawRedis } from '../support/redis.js';
import { ROOT } from '../support/root.js';
import { pause, until } from '../support/wait.js';
import type { Arena, FaultKind } from './faultKind.js';

const OFFSETS_S = [-7200, 7200, -400_000, 400_000] as const;
const WRONG_MS = [2000, 5000] as const;

/** Returns the reason why clocks can't be shifted on this machine, or undefined if they can. */
export function wrongClockMissing(): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'spindle-clock-'));
  try {
    return compileClock(join(folder, 'clock.so')) ? undefined : 'there is no C compiler';
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Starts an empty Redis in place of the stopped one. Its clock reads its offset from a file. */
export async function startShifted(
  { stores, folder }: Pick<Arena, 'stores' | 'folder'>,
  offsetFile: string,
): Promise<{ end: () => Promise<void>; seconds: () => Promise<number> }> {
  const library = join(folder, 'clock.so');
  if (!compileClock(library)) throw new Error(wrongClockMissing());
  const program = await findRedisProgram(join(ROOT, '.cache'), () => {});
  const child = spawn(program.file, [join(stores.redisFolder, 'redis.conf')], {
    cwd: stores.redisFolder,
    env: { ...redisEnvironment(program), ...clockEnvironment(library, offsetFile) },
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  const redis = rawRedis(stores.redis.url);
  const seconds = async (): Promise<number> => Number((await redis.time())[0]);
  await until(
    () =>
      seconds().then(
        () => true,
        () => false,
      ),
    'Redis answers',
  );
  return {
    seconds,
    async end() {
      redis.disconnect();
      child.kill('SIGTERM');
      await ended;
    },
  };
}

export const WRONG_CLOCKS = {
  'wrong-clock': {
    subject: 'redis',
    destroys: true,
    needsCompiler: true,
    async run(arena, random) {
      const { stores, folder } = arena;
      const offsetFile = join(folder, 'clock-offset');
      const offset = random.pick(OFFSETS_S);
      await writeFile(offsetFile, String(offset));
      await stores.redis.stop();
      await stores.wipeRedis();
      const shifted = await startShifted(arena, offsetFile);
      try {
        const ahead = (await shifted.seconds()) - Date.now() / 1000;
        if (Math.abs(ahead - offset) > 60)
          throw new Error(`The clock of Redis is ${ahead} s ahead, not ${offset}`);
        await pause(random.whole(...WRONG_MS));
        writeFileSync(offsetFile, '0');
        await pause(random.whole(...WRONG_MS));
      } finally {
        await shifted.end();
        await stores.redis.start();
      }
    },
  },
} as const satisfies Record<string, FaultKind>;
