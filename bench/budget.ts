/**
 * `npm run bench -- budget`: measures where the CPU time of a spin goes.
 *
 * Samples the stacks of all processes of the service and of its stores with `perf record` under a closed
 * loop, assigns each sample to a line of the table, and scales the samples of a process to the CPU time
 * that the kernel charged to the process. In contrast to V8's profile this includes the kernel, all threads
 * and the stores, and it does not charge the duration of waits. Needs Linux, `perf`, and the permission to
 * sample the kernel (`kernel.perf_event_paranoid` of at most 1, or root). The service runs with
 * `--perf-basic-prof`, which gives `perf` the names of compiled functions.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { type Cleanup, runToEnd } from '../test/support/cleanup.js';
import { startGenerator } from './load.js';
import { CpuMeter, cpuBetween, describeMachine, requireProc, table, treeOf } from './measure.js';
import { closeBooks, type Loads } from './period.js';
import { type Service, startService } from './service.js';
import { readSettings, readShape, SHAPE_OPTIONS, wholeNumber } from './shape.js';
import { drained, newDiskFolder } from './stores.js';

const WARM_UP_SECONDS = 8;
const PLAYERS = 1000;
/** Samples per second of CPU time. It is a prime number, so that the samples do not coincide with a timer. */
const FREQUENCY = 997;

/** A line of the table with a test of whether a sample belongs to it. */
type Line = readonly [name: string, has: (leaf: string, stack: readonly string[]) => boolean];

const leafIs =
  (pattern: RegExp): Line[1] =>
  (leaf) =>
    pattern.test(leaf);
const kernelIn =
  (pattern: RegExp): Line[1] =>
  (leaf, stack) =>
    leaf.includes('[kernel') && stack.some((frame) => pattern.test(frame));

const KERNEL: readonly Line[] = [
  ['kernel: sending', kernelIn(/^(__x64_sys_(send|write)|__sys_send|tcp_sendmsg|sock_write)/)],
  ['kernel: receiving', kernelIn(/^(__x64_sys_(recv|read)|__sys_recv|sock_read)/)],
  ['kernel: waiting for events', kernelIn(/epoll/)],
  ['kernel: files, disk syncs', kernelIn(/^(vfs_|ext4_|xfs_|do_fsync|__x64_sys_(f(data)?sync|pwrite))/)],
  ['kernel: threads, memory, interrupts', leafIs(/\[kernel|\[vdso/)],
];
const GARBAGE =
  /v8::internal::.*(Heap::|Scaveng|Mark(ing|Compact)|Sweep|Evacuat|Collect|Worklist|Unmapper|PointersUpdating|GlobalHandles::Iterate)|heap::base|cppgc/;
const SERVER: readonly Line[] = [
  ['garbage collection', (_, stack) => stack.some((frame) => GARBAGE.test(frame))],
  [
    'compiling JavaScript',
    (_, stack) => stack.some((frame) => /v8::internal::(compiler|maglev|baseline|Optimiz)/.test(frame)),
  ],
  ['JavaScript of Spindle', leafIs(/^JS:.*\/dist\//)],
  ['JavaScript of packages (mostly ioredis, pg)', leafIs(/^JS:.*node_modules/)],
  ['JavaScript of Node', leafIs(/^JS:|perf-\d+\.map/)],
  ['functions built into V8', leafIs(/^Builtins_/)],
  ['strings', leafIs(/String|Utf8|utf8|Latin1|OneByte|simdutf/)],
  ['calls between JavaScript and C++', leafIs(/^(v8::|node::|napi_)(?!internal::wasm)/)],
  ['binding of uWebSockets.js', leafIs(/uws_|uWS/)],
  ['hashes and ciphers', leafIs(/sha256|aes|EVP_|CRYPTO_|gcm|OPENSSL/i)],
  ['C library', leafIs(/libc\.so|libstdc/)],
];
const REDIS: readonly Line[] = [
  ['hash tables', leafIs(/^(_?dict|siphash|sds(cmp|Key))/)],
  ['memory', leafIs(/jemalloc|malloc|zfree|calloc|realloc|libc\.so/)],
];

const LINES: Readonly<Record<string, readonly Line[]>> = {
  server: [...KERNEL, ...SERVER, ['other', () => true]],
  worker: [...KERNEL, ...SERVER, ['other', () => true]],
  redis: [...KERNEL, ...REDIS, ['scripts, commands', () => true]],
  postgres: [...KERNEL, ['rows, indexes, statements', () => true]],
};

const { values } = parseArgs({
  options: {
    ...SHAPE_OPTIONS,
    connections: { type: 'string', default: '64,256' },
    seconds: { type: 'string', default: '15' },
    functions: { type: 'string', default: '0' },
  },
});
const CONNECTIONS = values.connections.split(',').map((each) => wholeNumber('connections', each));
const SECONDS = wholeNumber('seconds', values.seconds);
/** Number of functions that are printed for each line. */
const FUNCTIONS = wholeNumber('functions', values.functions, 0);

/** Number of samples of each line (`process: line`), and of each function of a line. */
type Counts = Map<string, { samples: number; functions: Map<string, number> }>;

/** Runs `perf record` on all processes of the service until the function ends. */
async function recordWhile<T>(service: Service, file: string, act: () => Promise<T>): Promise<T> {
  const pids = Object.values(service.processes).flat().flatMap(treeOf);
  const options = ['-q', '-e', 'cpu-clock', '-F', String(FREQUENCY), '-g', '-o', file];
  const perf = spawn('perf', ['record', ...options, '-p', pids.join(',')], { stdio: 'inherit' });
  const failed = once(perf, 'error').then(([error]) => {
    throw new Error(`perf did not start: ${(error as Error).message}. Debian's package is linux-perf.`);
  });
  const ended = once(perf, 'exit');
  const result = await Promise.race([
    act(),
    failed,
    ended.then(() => Promise.reject(new Error('perf ended early'))),
  ]);
  perf.kill('SIGINT');
  await ended;
  return result;
}

/** Reads the samples of a file, and counts them by line. */
async function countsOf(file: string, service: Service): Promise<Counts> {
  const names = new Map<string, string>();
  for (const [name, pids] of Object.entries(service.processes))
    for (const pid of pids.flatMap(treeOf)) names.set(String(pid), name);
  const counts: Counts = new Map();
  const perf = spawn('perf', ['script', '-i', file, '-F', 'comm,pid,tid,ip,sym,dso'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let name: string | undefined;
  let stack: string[] = [];
  const endSample = (): void => {
    const leaf = stack[0];
    if (name !== undefined && leaf !== undefined) {
      const [line] = LINES[name]!.find(([, has]) => has(leaf, stack))!;
      const key = `${name}: ${line}`;
      const count = counts.get(key) ?? { samples: 0, functions: new Map() };
      counts.set(key, count);
      count.samples++;
      count.functions.set(leaf, (count.functions.get(leaf) ?? 0) + 1);
    }
    stack = [];
  };
  // A sample is a line with the process, then a line for each frame, and an empty line.
  for await (const text of createInterface(perf.stdout)) {
    const frame = /^\s+[0-9a-f]+ (.*)$/.exec(text);
    if (frame !== null) stack.push(frame[1]!);
    else if (text.trim() === '') endSample();
    else name = names.get(/(\d+)\/\d+\s*$/.exec(text)?.[1] ?? '');
  }
  endSample();
  return counts;
}

async function main(cleanup: Cleanup): Promise<boolean> {
  requireProc();
  const shape = readShape(values);
  const service = await startService(shape, cleanup, ['--perf-basic-prof'], readSettings(values.set));
  const generator = startGenerator(cleanup);
  const loads: Loads = [];
  const columns: Map<string, number>[] = [];
  const file = join(await newDiskFolder(), 'perf.data');
  for (const connections of CONNECTIONS) {
    const { base, targets } = service;
    const players = Math.ceil(PLAYERS / shape.partners);
    const order = { base, targets, connections, players, hasRequestId: true, rate: undefined };
    loads.push(['warm-up', await generator.load({ ...order, seconds: WARM_UP_SECONDS })]);
    await drained(service.books);
    const meter = new CpuMeter(service.processes);
    const { load, cpu } = await recordWhile(service, file, async () => {
      const before = meter.sample();
      const load = await generator.load({ ...order, seconds: SECONDS });
      await drained(service.books);
      return { load, cpu: cpuBetween(before, meter.sample()) };
    });
    loads.push([`${connections} connections`, load]);
    const counts = await countsOf(file, service);
    columns.push(microsOf(counts, cpu, load.spins));
    console.log(`${connections} connections: ${(load.spins / load.seconds).toFixed(0)} spins/s`);
    if (FUNCTIONS > 0) console.log(functionsOf(counts));
  }
  const faults = await closeBooks(loads, service.books);
  for (const fault of faults) console.log(`VOID: ${fault}`);
  const lines = Object.keys(service.processes).flatMap((name) => [
    ...LINES[name]!.map(([line]) => `${name}: ${line}`),
    `${name} in total`,
  ]);
  const shown = [...new Set(lines), 'total'].filter((line) =>
    columns.some((column) => column.get(line)! > 0),
  );
  console.log(`\n${describeMachine()}\nCPU in µs per spin, by number of connections`);
  for (const line of table([
    ['', ...CONNECTIONS.map(String)],
    ...shown.map((line) => [line, ...columns.map((column) => (column.get(line) ?? 0).toFixed(2))]),
  ]))
    console.log(line);
  return faults.length === 0;
}

/** Distributes the CPU time of each process over the lines of its samples. Returns µs per spin by line. */
function microsOf(counts: Counts, cpu: Readonly<Record<string, number>>, spins: number): Map<string, number> {
  const micros = new Map<string, number>();
  for (const [name, time] of Object.entries(cpu)) {
    const own = [...counts].filter(([key]) => key.startsWith(`${name}: `));
    const samples = own.reduce((sum, [, count]) => sum + count.samples, 0);
    for (const [key, count] of own) micros.set(key, (time * count.samples) / samples / spins);
    micros.set(`${name} in total`, time / spins);
    micros.set('total', (micros.get('total') ?? 0) + time / spins);
  }
  return micros;
}

const functionsOf = (counts: Counts): string =>
  [...counts]
    .sort(([, a], [, b]) => b.samples - a.samples)
    .flatMap(([key, { samples, functions }]) => [
      `  ${key}: ${samples} samples`,
      ...[...functions]
        .sort(([, a], [, b]) => b - a)
        .slice(0, FUNCTIONS)
        .map(([leaf, count]) => `    ${count} ${leaf}`),
    ])
    .join('\n');

await runToEnd(main);
