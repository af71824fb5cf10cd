/**
 * Writes `manifest.sha256`, the list of the files that the program consists of: the last step of `npm run build`, and of the image.
 * The compiler leaves files whose source is gone, and earlier versions what their tools wrote; they are removed first.
 */
import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MANIFEST, manifestOf } from '../workers/checkProgram.js';

const COMPILED = ['bench', 'clients', 'src', 'test', 'tools', 'workers'];

/** Tools write elsewhere now: all of dist is in the list. */
const OF_EARLIER_TOOLS = ['openapi', '.typecheck.tsbuildinfo'];

function removeStale(): void {
  for (const name of OF_EARLIER_TOOLS) rmSync(join('dist', name), { recursive: true, force: true });
  for (const part of COMPILED) {
    const folder = join('dist', part);
    if (!existsSync(folder)) continue;
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      const file = join(entry.parentPath, entry.name);
      const source = file.replace(/^dist./, '').replace(/\.js(\.map)?$/, '');
      const isCompiled = entry.isFile() && source !== file.replace(/^dist./, '');
      if (isCompiled && !['.ts', '.tsx'].some((ending) => existsSync(source + ending))) rmSync(file);
    }
  }
}

// An image has neither sources nor anything stale.
if (existsSync('tsconfig.build.json')) removeStale();
// Whoever starts meanwhile reads the old list or the new one.
writeFileSync(`${MANIFEST}.new`, manifestOf('.'));
renameSync(`${MANIFEST}.new`, MANIFEST);
