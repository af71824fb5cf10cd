/** Copies the build to a separate folder, like an unpacked release, so that a test can change its files. */
import { cpSync, mkdtempSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from './root.js';

const PARTS = [
  'dist',
  'lua',
  'src/postgres/migrations',
  'package.json',
  'package-lock.json',
  'manifest.sha256',
  'tools/compare.sh',
  'tools/build.mjs',
];

/** @returns the folder, which the caller must remove */
export function copyProgram(): string {
  const root = mkdtempSync(join(tmpdir(), 'spindle-program-'));
  for (const part of PARTS) cpSync(join(ROOT, part), join(root, part), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  return root;
}
