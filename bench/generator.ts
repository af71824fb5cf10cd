/** The load generator as its parent sees it: ordered (load.ts), it loads a server for a while, and tells what came of it. */
import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Cleanup } from '../test/support/cleanup.js';
import { ROOT } from '../test/support/root.js';
import { endProcess } from '../test/support/serverProcess.js';
import type { LoadOrder } from './load.js';
import type { LoadResult } from './measurement.js';

export interface Generator {
  readonly pid: number;
  load(order: Omit<LoadOrder, 'path' | 'requestIdPrefix'>): Promise<LoadResult>;
}

/** Which program makes the load: our own on bare sockets, which costs least, or one made of autocannon's clients. */
export const GENERATORS = { sockets: 'socketLoad.js', autocannon: 'autocannonLoad.js' } as const;
export type GeneratorName = keyof typeof GENERATORS;

export const SPIN_PATH = '/api/partner/v1/spin';
/** A request id is as long as a UUID: this, a hyphen and 12 digits. */
const PREFIX_LENGTH = 23;

export function startGenerator(cleanup: Cleanup, name: GeneratorName = 'sockets'): Generator {
  const child = fork(join(ROOT, 'dist', 'bench', GENERATORS[name]));
  cleanup.add(() => endProcess(child));
  const requestIdPrefix = randomBytes(12).toString('hex').slice(0, PREFIX_LENGTH);
  return {
    pid: child.pid!,
    load: async (order) => {
      const answered = new AbortController();
      child.send({ ...order, path: SPIN_PATH, requestIdPrefix } satisfies LoadOrder);
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
    },
  };
}
