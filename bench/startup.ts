/**
 * `npm run bench -- start [--starts 5] [--clone]`: measures how long `npm start` takes until the service is
 * ready, and its memory. With --clone it also measures the first start of a clone after `npm ci`. All starts
 * use embedded stores in temporary folders. Needs Linux, and a committed working tree for --clone.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { freePort } from '../src/app/embedded/index.js';
import { type Cleanup, runToEnd } from '../test/support/cleanup.js';
import { ROOT } from '../test/support/root.js';
import { pause } from '../test/support/wait.js';
import { describeMachine, median, requireProc, residentBytes, treeOf } from './measure.js';
import { wholeNumber } from './shape.js';

const { values } = parseArgs({
  options: { starts: { type: 'string', default: '5' }, clone: { type: 'boolean', default: false } },
});
const STARTS = wholeNumber('starts', values.starts);
const SETTLED_AFTER_MS = 5000;

interface Start {
  readonly seconds: number;
  /** Resident memory of the service's own process 5 s after the start. */
  readonly megabytes: number;
}

/** Runs `npm start` in a folder of the project until the service is ready, and ends it. */
async function measure(folder: string, dataDir: string): Promise<Start> {
  const env = { ...process.env, DATA_DIR: dataDir, PORT: String(await freePort()), METRICS_PORT: '0' };
  const startedMs = performance.now();
  const npm = spawn('npm', ['start'], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  });
  let output = '';
  for await (const chunk of npm.stdout) {
    output += chunk;
    if (output.includes('Spindle is ready')) break;
  }
  if (!output.includes('Spindle is ready')) throw new Error(`The service did not start: ${output}`);
  const seconds = (performance.now() - startedMs) / 1000;
  await pause(SETTLED_AFTER_MS);
  const megabytes = Math.max(...treeOf(npm.pid!).map((pid) => residentBytes(pid))) / 1e6;
  const ended = once(npm, 'exit');
  process.kill(-npm.pid!, 'SIGTERM');
  await ended;
  return { seconds, megabytes };
}

const line = (what: string, starts: readonly Start[]): string =>
  `${what}: ready after ${median(starts.map(({ seconds }) => seconds)).toFixed(2)} s (${starts.map(({ seconds }) => seconds.toFixed(2)).join(', ')}); ` +
  `resident memory ${median(starts.map(({ megabytes }) => megabytes)).toFixed(0)} MB`;

await runToEnd(async (cleanup: Cleanup) => {
  requireProc();
  console.log(describeMachine());
  const folder = await mkdtemp(join(tmpdir(), 'spindle-start-'));
  cleanup.add(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  if (values.clone) {
    const clone = join(folder, 'clone');
    execFileSync('git', ['clone', '-q', ROOT, clone]);
    execFileSync('npm', ['ci', '--silent'], { cwd: clone, stdio: 'ignore' });
    console.log(line('first start of a clone', [await measure(clone, join(folder, 'of-clone'))]));
  }
  const dataDir = join(folder, 'data');
  await measure(ROOT, dataDir);
  const starts: Start[] = [];
  while (starts.length < STARTS) starts.push(await measure(ROOT, dataDir));
  console.log(line('later starts', starts));
  return true;
});
