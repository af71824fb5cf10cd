/** Tests that log lines arrive whole and in order, and that a failing output delays nothing. */
import { spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { LogOutput } from '../../src/platform/logOutput.js';
import { ROOT } from '../support/root.js';

const LINES = 20_000;
const lines = Array.from({ length: LINES }, (_, i) => `line ${i}\n`);

/** Runs a short program and returns its output and exit status. */
const printedBy = (program: string, stdio: 'pipe' | number = 'pipe') =>
  spawnSync(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `import { LogOutput } from '${join(ROOT, 'dist/src/platform/logOutput.js')}'; ${program}`,
    ],
    { stdio: ['ignore', stdio, 'inherit'], encoding: 'utf8', timeout: 100_000 },
  );

describe('output of log lines', () => {
  test('writes log lines whole and in order, including those logged just before the process exits', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'spindle-log-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const path = join(folder, 'log');
    const fd = openSync(path, 'w');
    onTestFinished(() => closeSync(fd));
    const output = new LogOutput(fd);
    output.write('first\n');
    await expect.poll(() => readFile(path, 'utf8'), { timeout: 30_000 }).toBe('first\n');
    const program = `const log = new LogOutput(1); for (let i = 0; i < ${LINES}; i++) log.write('line ' + i + '\\n'); process.exit(3);`;
    const { status, stdout } = printedBy(program);
    expect(status).toBe(3);
    expect(stdout).toBe(lines.join(''));
  });

  test("drops log lines that can't be written, and the process still ends", () => {
    const full = openSync('/dev/full', 'w');
    onTestFinished(() => closeSync(full));
    const program = `const log = new LogOutput(1); log.write('a\\n'); setTimeout(() => { log.write('b\\n'); log.flushSync(); process.exit(3); }, 50);`;
    expect(printedBy(program, full).status).toBe(3);
  });
});
