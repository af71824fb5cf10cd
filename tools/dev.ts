/**
 * `npm run dev [-- ARGUMENTS OF THE SERVICE]`: builds what has changed after each change of a source file and
 * restarts the service. Ctrl-C ends both. If a change does not compile, the running service continues.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, watch } from 'node:fs';

const PROGRAM = 'dist/src/main.js';
/** Folders whose files the service runs or reads. */
const WATCHED = ['src', 'workers', 'lua', 'verifier'];
/** Delay before a restart in ms, because editors write a file in several steps. */
const SETTLED_AFTER_MS = 100;
const END_WITHIN_MS = 20_000;

let service: ChildProcess | undefined;
let turn: Promise<unknown> = Promise.resolve();
let timer: NodeJS.Timeout | undefined;
let isEnding = false;

async function end(): Promise<void> {
  const child = service;
  service = undefined;
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  const deadline = setTimeout(() => child.kill('SIGKILL'), END_WITHIN_MS);
  child.kill('SIGTERM');
  await ended;
  clearTimeout(deadline);
}

async function begin(): Promise<void> {
  const built = spawnSync(process.execPath, ['tools/build.mjs', 'compile', 'verifier'], { stdio: 'inherit' });
  if (built.status !== 0) return;
  // The manifest is removed, because it does not list the files that were compiled just now.
  rmSync('manifest.sha256', { force: true });
  await end();
  if (isEnding) return;
  // The service runs in its own process group. Ctrl-C then reaches only this program, which stops the service
  // once and in order.
  service = spawn(process.execPath, [PROGRAM, ...process.argv.slice(2)], {
    stdio: 'inherit',
    detached: true,
  });
}

function restart(): void {
  clearTimeout(timer);
  timer = setTimeout(() => {
    turn = turn.then(begin);
  }, SETTLED_AFTER_MS);
}

function stop(): void {
  if (isEnding) return;
  isEnding = true;
  clearTimeout(timer);
  void turn.then(end).finally(() => process.exit(0));
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop);
for (const folder of WATCHED) watch(folder, { recursive: true }, restart);
restart();
