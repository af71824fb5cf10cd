/**
 * Writes `manifest.sha256`, the list of the program's files. This is the last step of `npm run build` and of
 * the image build. Stale files are removed first: compiled files whose source was deleted, and output of
 * tools of earlier versions.
 */
import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MANIFEST, manifestOf } from '../workers/checkProgram.js';

const COMPILED = ['bench', 'clients', 'src', 'test', 'tools', 'workers'];

/**
 * Output of earlier versions of the tools, which is removed because the list covers all of dist. The current
 * tools write it to other places.
 */
const OF_EARLIER_TOOLS = ['openapi', '.tsbuildinfo', '.typecheck.tsbuildinfo'];

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

// An image contains no sources and no stale files.
if (existsSync('tsconfig.build.json')) removeStale();
// The list is replaced atomically, so that a process that starts at the same time reads either the old or the
// new list.
writeFileSync(`${MANIFEST}.new`, manifestOf('.'));
renameSync(`${MANIFEST}.new`, MANIFEST);
