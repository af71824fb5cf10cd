/**
 * Writes built pages and their compressed copies to a folder. Each file is replaced atomically, so that a
 * service that starts at the same time reads complete files.
 */
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

/**
 * Size from which brotli's best quality is not used, in characters. It takes 1.9 s for the 1.7 MB of the
 * verifier, and makes it a tenth smaller.
 */
const LARGE = 500_000;

const brotli = (content: string): Uint8Array =>
  brotliCompressSync(content, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: content.length < LARGE ? constants.BROTLI_MAX_QUALITY : 9,
    },
  });

/**
 * Replaces the files of a folder one by one.
 *
 * @param files files by path in the folder: strings are also written in compressed form, byte arrays are not
 */
export function writePages(folder: string, files: ReadonlyMap<string, string | Uint8Array>): void {
  const made = new Map<string, string | Uint8Array>();
  for (const [name, content] of files) {
    made.set(name, content);
    if (typeof content !== 'string') continue;
    made.set(`${name}.br`, brotli(content));
    made.set(`${name}.gz`, gzipSync(content, { level: 9 }));
  }
  // Each new file replaces the old file by a rename, in a single step.
  const begun = `${folder}.${process.pid}`;
  for (const [name, bytes] of made) {
    for (const each of [folder, begun]) mkdirSync(join(each, dirname(name)), { recursive: true });
    writeFileSync(join(begun, name), bytes);
    renameSync(join(begun, name), join(folder, name));
  }
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath ?? entry.path, entry.name);
    if (entry.isFile() && !made.has(relative(folder, path).replaceAll('\\', '/'))) rmSync(path);
  }
  rmSync(begun, { recursive: true, force: true });
}
