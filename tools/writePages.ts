/** Writes built pages into a folder, each also compressed, so that a service that starts meanwhile finds every one whole. */
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';

/**
 * Replaces the pages of a folder one by one.
 * @param files texts by file name
 */
export function writePages(folder: string, files: ReadonlyMap<string, string>): void {
  const made = new Map<string, string | Buffer>();
  for (const [name, text] of files) {
    made.set(`${name}.br`, brotliCompressSync(text));
    made.set(`${name}.gz`, gzipSync(text, { level: 9 }));
    made.set(name, text);
  }
  // Each takes the place of the one before it in one step.
  const begun = `${folder}.${process.pid}`;
  for (const each of [folder, begun]) mkdirSync(each, { recursive: true });
  for (const [name, bytes] of made) {
    writeFileSync(join(begun, name), bytes);
    renameSync(join(begun, name), join(folder, name));
  }
  for (const name of readdirSync(folder)) if (!made.has(name)) rmSync(join(folder, name));
  rmSync(begun, { recursive: true });
}
