/** The threads that make blocks and seal raffles. */
import { Piscina } from 'piscina';

/**
 * A thread that is ended while it loads an ES module by `require` aborts the whole process ("v8::Module::IsGraphAsync", seen
 * with Node 20.20): the threads must import it. Node 20 before 20.17 can't require one, and does not know the flag.
 */
const IMPORTS_ONLY = process.allowedNodeEnvironmentFlags.has('--no-experimental-require-module')
  ? ['--no-experimental-require-module']
  : [];
const QUEUE_MAX = 1024;

export const openThreads = (filename: string, maxThreads: number): Piscina =>
  new Piscina({ filename, minThreads: 1, maxThreads, maxQueue: QUEUE_MAX, execArgv: IMPORTS_ONLY });
