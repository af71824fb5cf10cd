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

export const openThreads = (filename: string, maxThreads: number): Piscina =>
  new Piscina({ filename, minThreads: 1, maxThreads, maxQueue: QUEUE_MAX, execArgv: IMPORTS_ONLY });
