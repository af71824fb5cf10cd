/** Creates the thread pool that makes blocks and seals raffles. */
import { Piscina } from 'piscina';

/**
 * Node flags that make the threads load ES modules by `import`. A thread that is ended while it loads an ES
 * module by `require` aborts the whole process ("v8::Module::IsGraphAsync", seen with Node 20.20). Node 20
 * before 20.17 can't `require` an ES module and does not know the flag.
 */
const IMPORTS_ONLY = process.allowedNodeEnvironmentFlags.has('--no-experimental-require-module')
  ? ['--no-experimental-require-module']
  : [];
const QUEUE_MAX = 1024;
/**
 * Time without work after which a thread ends, in ms, because a thread takes 12 MB. A game that is played
 * needs a block more often, every few seconds, and starting a thread takes far less time than its reserve
 * lasts.
 */
const IDLE_MS = 60_000;

export const openThreads = (filename: string, maxThreads: number): Piscina =>
  new Piscina({
    filename,
    minThreads: 0,
    maxThreads,
    maxQueue: QUEUE_MAX,
    idleTimeout: IDLE_MS,
    recordTiming: false,
    execArgv: IMPORTS_ONLY,
  });
