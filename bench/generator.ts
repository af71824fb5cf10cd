/** The load generator as its parent sees it: ordered (load.ts), it loads a server for a while, and tells what came of it. */
import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Cleanup } from '../test/support/cleanup.js';
import { ROOT } from '../test/support/root.js';
import { endProcess } from '../test/support/serverProcess.js';
import type { LoadOrder } from './load.js';
import type { LoadResult } from './measurement.js';
import { buildRing, loadByRing, spawnRing } from './ringLoad.js';

export interface Generator {
  /** Which it is; not always the one that was asked for. */
  readonly name: GeneratorName;
  readonly pid: number;
  load(order: Omit<LoadOrder, 'path' | 'requestIdPrefix'>): Promise<LoadResult>;
}

/** Which program makes the load: one in C with io_uring, which costs less, or one made of autocannon's clients. */
export const GENERATORS = ['ring', 'autocannon'] as const;
export type GeneratorName = (typeof GENERATORS)[number];

const SPIN_PATH = '/api/partner/v1/spin';
/** A request id is as long as a UUID: this, a hyphen and 12 digits. */
const PREFIX_LENGTH = 23;

export async function startGenerator(cleanup: Cleanup, name: GeneratorName = 'ring'): Promise<Generator> {
  const requestIdPrefix = randomBytes(12).toString('hex').slice(0, PREFIX_LENGTH);
  const program = name === 'ring' ? await builtRing(cleanup) : undefined;
  const child =
    program === undefined ? fork(join(ROOT, 'dist', 'bench', 'autocannonLoad.js')) : spawnRing(program);
  cleanup.add(() => endProcess(child));
  return {
    name: program === undefined ? 'autocannon' : 'ring',
    pid: child.pid!,
    load: (part) => {
      const order = { ...part, path: SPIN_PATH, requestIdPrefix };
      return program === undefined ? loadByChild(child, order) : loadByRing(child, order);
    },
  };
}

/** @returns undefined where it can't be built or run here */
async function builtRing(cleanup: Cleanup): Promise<string | undefined> {
  try {
    return await buildRing(cleanup);
  } catch (error) {
    const [reason] = (error as Error).message.trim().split('\n').slice(-1);
    console.log(
      `The load comes from autocannon, which costs more: no C program with io_uring here (${reason})`,
    );
    return undefined;
  }
}

async function loadByChild(child: ChildProcess, order: LoadOrder): Promise<LoadResult> {
  const answered = new AbortController();
  child.send(order);
  try {
    const [result] = await Promise.race([
      once(child, 'message', answered),
      once(child, 'exit', answered).then(() => {
        throw new Error('The load generator has ended');
      }),
    ]);
    return result as LoadResult;
  } finally {
    answered.abort();
  }
}
