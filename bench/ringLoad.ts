/**
 * The load generator of ringLoad/main.c as its parent sees it: a program that is built with `cc` when it is needed, ordered over
 * stdin, and tells what came of a load on stdout. It renders no request: it patches those that spinRequests.ts has rendered.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Cleanup } from '../test/support/cleanup.js';
import { ROOT } from '../test/support/root.js';
import { latenciesOf, newHistogram } from './histogram.js';
import type { LoadOrder } from './load.js';
import type { LoadResult } from './measurement.js';
import { FIRST_PLAYER, REQUEST_ID_LENGTH, templatesOf } from './spinRequests.js';

const run = promisify(execFile);
const END = 'end\n';

/** Builds the program. @returns where it is @throws where there is no C compiler, or the kernel has not what it needs */
export async function buildRing(cleanup: Cleanup): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'spindle-ring-'));
  cleanup.add(() => rm(folder, { recursive: true, force: true }));
  const program = join(folder, 'ringLoad');
  await run('cc', ['-O2', '-Wall', '-o', program, join(ROOT, 'bench', 'ringLoad', 'main.c')]);
  await run(program, ['--probe']);
  return program;
}

/** Starts the program, which runs one order after the other. */
export const spawnRing = (program: string): ChildProcess =>
  spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] });

/** Runs an order. @throws where the program ends: it can't connect */
export async function loadByRing(ring: ChildProcess, order: LoadOrder): Promise<LoadResult> {
  const told = new Promise<string>((resolve, reject) => {
    let text = '';
    const done = (): void => {
      ring.stdout!.off('data', read);
      ring.off('exit', ended);
    };
    const read = (chunk: Buffer): void => {
      text += chunk.toString('latin1');
      if (!text.endsWith(END)) return;
      done();
      resolve(text);
    };
    const ended = (): void => {
      done();
      reject(new Error('The load generator has ended'));
    };
    ring.stdout!.on('data', read);
    ring.once('exit', ended);
  });
  ring.stdin!.write(orderBytes(order));
  return readResult(await told, order.rate !== undefined);
}

function orderBytes(order: LoadOrder): Buffer {
  const { base, connections, seconds, rate, players } = order;
  const { hostname, port } = new URL(base);
  const templates = templatesOf(order);
  const head = [
    ...[hostname, port, connections, Math.round(seconds * 1000)],
    ...[rate === undefined ? 0 : Math.max(1, Math.round(rate)), players, FIRST_PLAYER, templates.length],
  ];
  const parts: Uint8Array[] = [Buffer.from(`${head.join(' ')}\n`)];
  for (const { bytes, playerAt, counterAt, requestIdAt } of templates) {
    const places = [bytes.length, playerAt, counterAt, requestIdAt, REQUEST_ID_LENGTH];
    parts.push(Buffer.from(`${places.join(' ')}\n`), bytes, Buffer.from('\n'));
  }
  return Buffer.concat(parts);
}

function readResult(text: string, isOpenLoop: boolean): LoadResult {
  const latencies = newHistogram();
  const statuses: Record<string, number> = {};
  const bySecond: NonNullable<LoadResult['bySecond']>[number][] = [];
  const single: Record<string, number> = {};
  for (const line of text.split('\n')) {
    const [word, ...fields] = line.split(' ');
    const [first = 0, second = 0, third = 0] = fields.map(Number);
    if (word === 'latency') latencies.recordValueWithCount(first, second);
    else if (word === 'status') statuses[first] = second;
    else if (word === 'second') bySecond.push({ at: first, p99Ms: second / 1000, maxMs: third / 1000 });
    else if (word !== undefined) single[word] = first;
  }
  const spins = statuses[200] ?? 0;
  const answers = Object.values(statuses).reduce((sum, count) => sum + count, 0);
  return {
    spins,
    non2xx: answers - spins,
    errors: single.errors!,
    statuses,
    seconds: single.seconds!,
    ...latenciesOf(latencies),
    ...(isOpenLoop && { lateP99Ms: single.late! / 1000, bySecond }),
  };
}
