/** A prototype that V8 keeps as a dictionary makes every call of its methods slow, in the whole process. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../../support/root.js';

const PROTOTYPES = ['String', 'Buffer', 'Uint8Array', 'Array', 'Map', 'RegExp', 'Promise', 'Object'];

/** Loads a module in a new process, and names the prototypes that V8 keeps as dictionaries. */
const slowPrototypes = (module: string): string => {
  const isFast = PROTOTYPES.map((name) => `['${name}', %HasFastProperties(${name}.prototype)]`);
  const program = `await import('${module}');
    console.log([${isFast}].filter(([, isFast]) => !isFast).join());`;
  const flags = ['--allow-natives-syntax', '--input-type=module', '-e', program];
  return execFileSync(process.execPath, flags, { cwd: ROOT, encoding: 'utf8' }).trim();
};

test('ioredis leaves String.prototype a dictionary', () => {
  expect(slowPrototypes('ioredis')).toBe('String,false');
});

test('the service has fast prototypes once it is loaded', () => {
  expect(slowPrototypes(join(ROOT, 'dist/src/main.js'))).toBe('');
});
