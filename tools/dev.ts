/**
 * `npm run dev [-- ARGUMENTS OF THE SERVICE]`: compiles after each change and restarts the service. Ctrl-C
 * ends both. If a change does not compile, the running service continues.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, watch } from 'node:fs';
import ts from 'typescript';

const PROJECT = 'tsconfig.build.json';
const PROGRAM = 'dist/src/main.js';
/** Folders that the service reads at its start and that are not compiled. */
const READ_AT_START = ['lua', 'src/postgres/migrations'];
/** Delay before a restart in ms, because editors write a file in several steps. */
const SETTLED_AFTER_MS = 100;
const END_WITHIN_MS = 20_000;

let service: ChildProcess | undefined;
let turn: Promise<unknown> = Promise.resolve();
let timer: NodeJS.Timeout | undefined;
let isEnding = false;
/**
 * True until the first compilation has ended. This compilation only finds what `npm run dev` has just built.
 */
let isFirst = true;

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
for (const folder of READ_AT_START) watch(folder, { recursive: true }, restart);

// The manifest is removed, because files that are compiled from now on are not in it.
rmSync('manifest.sha256', { force: true });
restart();
const host = ts.createWatchCompilerHost(
  PROJECT,
  {},
  ts.sys,
  ts.createEmitAndSemanticDiagnosticsBuilderProgram,
  (diagnostic) => console.error(ts.formatDiagnosticsWithColorAndContext([diagnostic], formatHost())),
  (status, _newLine, _options, errors) => {
    if (errors === undefined) return;
    if (errors === 0 && !isFirst) restart();
    isFirst = false;
    if (errors > 0) console.error(`${ts.flattenDiagnosticMessageText(status.messageText, '\n')}`);
  },
);
ts.createWatchProgram(host);

function formatHost(): ts.FormatDiagnosticsHost {
  return {
    getCurrentDirectory: ts.sys.getCurrentDirectory,
    getCanonicalFileName: (name) => name,
    getNewLine: () => ts.sys.newLine,
  };
}
