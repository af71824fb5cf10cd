/**
 * Compares the service's files with their manifest `manifest.sha256`. The manifest covers the build output,
 * the Redis scripts, the migrations, package.json, package-lock.json, and the packages used at run time. The
 * comparison runs in a thread of its own, because hashing takes a considerable part of a second.
 */
import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';

export const MANIFEST = 'manifest.sha256';
/** Folders with the service's own files. */
const FOLDERS = ['dist', 'lua', 'src/postgres/migrations'];
const SINGLE_FILES = ['package.json', 'package-lock.json'];
const PACKAGES = 'node_modules/';
const PACKAGE_LOCK = 'package-lock.json';
/** Matches a line in the format of sha256sum whose file name needs no escaping. */
const LINE = /^([0-9a-f]{64}) [ *]([^\\\n]+)$/;
const CHUNK_BYTES = 1 << 20;
const DIFFERENCES_MAX = 100;

/**
 * Part of the service's files to check. `program`: the service itself; `packages`: the installed packages.
 */
export type ProgramPart = 'program' | 'packages' | 'all';

export interface ProgramWanted {
  /** Folder that contains package.json. */
  readonly root: string;
  readonly part: ProgramPart;
  /** Manifest to compare with. The default is the manifest of the build. */
  readonly manifest?: string;
}

export interface Difference {
  /** Path of the file, relative to the folder with package.json. */
  readonly path: string;
  readonly what: 'CHANGED' | 'MISSING' | 'ADDED';
}

export interface ProgramFound {
  /** SHA-256 of the manifest in hexadecimal. Null if there is no manifest. */
  readonly manifest: string | null;
  /** Number of files that were compared with the manifest. */
  readonly files: number;
  /** The first 100 differences, ordered by path. */
  readonly differences: readonly Difference[];
  /** Total number of differences between the files and the manifest. */
  readonly differing: number;
}

/**
 * Lists the files of a part, ordered by path as `LC_ALL=C sort` does.
 * @throws Error of the file system
 */
function programFiles(root: string, part: ProgramPart): string[] {
  const files: string[] = [];
  if (part !== 'packages') {
    for (const folder of FOLDERS) walk(root, folder, files);
    files.push(...SINGLE_FILES.filter((file) => existsSync(join(root, file))));
  }
  if (part !== 'program') for (const folder of packageFolders(root)) walk(root, folder, files);
  return files.sort(byBytes);
}

const byBytes = (one: string, other: string): number => Buffer.compare(Buffer.from(one), Buffer.from(other));

/**
 * Lists files recursively. Symbolic links in packages are skipped: they point to a listed file or are created
 * at a start (embedded Postgres).
 */
function walk(root: string, folder: string, files: string[]): void {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`;
    const linksTo = entry.isSymbolicLink() && !path.startsWith(PACKAGES) ? statSync(join(root, path)) : entry;
    if (linksTo.isDirectory()) walk(root, path, files);
    else if (linksTo.isFile()) files.push(path);
  }
}

/**
 * Lists the installed packages that are not development tools. A package that is nested in another package is
 * covered by the folder of the outer package.
 */
function packageFolders(root: string): string[] {
  const file = join(root, PACKAGE_LOCK);
  if (!existsSync(file)) return [];
  const { packages } = JSON.parse(readFileSync(file, 'utf8')) as {
    packages: Record<string, { readonly dev?: boolean }>;
  };
  return Object.entries(packages).flatMap(([path, { dev }]) =>
    path.lastIndexOf(PACKAGES) === 0 && dev !== true && existsSync(join(root, path)) ? [path] : [],
  );
}

function hashOf(file: string): string {
  const digest = createHash('sha256');
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  const handle = openSync(file, 'r');
  try {
    for (;;) {
      const length = readSync(handle, chunk);
      if (length === 0) return digest.digest('hex');
      digest.update(chunk.subarray(0, length));
    }
  } finally {
    closeSync(handle);
  }
}

/**
 * Builds the manifest of all present files in the format of sha256sum.
 * @throws Error if a path can't be represented
 */
export function manifestOf(root: string): string {
  const lines = programFiles(root, 'all').map((path) => `${hashOf(join(root, path))}  ${path}`);
  const odd = lines.find((line) => !LINE.test(line));
  if (odd !== undefined) throw new Error(`the path ${odd.slice(66)} can't be listed in ${MANIFEST}`);
  return `${lines.join('\n')}\n`;
}

/**
 * Parses a manifest.
 * @returns undefined if a line is not in the format of sha256sum or its path leads out of the folder
 */
function parse(text: string): Map<string, string> | undefined {
  const hashes = new Map<string, string>();
  for (const line of text.replace(/\n$/, '').split('\n')) {
    const [, hash, path] = LINE.exec(line) ?? [];
    if (hash === undefined || path === undefined || /^\/|(^|\/)\.\.(\/|$)/.test(path)) return undefined;
    hashes.set(path, hash);
  }
  return hashes;
}

const isOf = (part: ProgramPart, path: string): boolean =>
  part === 'all' || path.startsWith(PACKAGES) === (part === 'packages');

/**
 * Compares files with the manifest.
 * @throws Error if the manifest exists but can't be read
 */
export default function checkProgram({ root, part, manifest: file }: ProgramWanted): ProgramFound {
  const list = file ?? join(root, MANIFEST);
  if (file === undefined && !existsSync(list))
    return { manifest: null, files: 0, differences: [], differing: 0 };
  const bytes = readFileSync(list);
  const manifest = createHash('sha256').update(bytes).digest('hex');
  const listed = parse(bytes.toString('utf8'));
  if (listed === undefined) {
    return { manifest, files: 0, differences: [{ path: file ?? MANIFEST, what: 'CHANGED' }], differing: 1 };
  }
  const differences: Difference[] = [];
  let files = 0;
  for (const [path, hash] of listed) {
    if (!isOf(part, path)) continue;
    files++;
    const is = hashIfThere(join(root, path));
    if (is !== hash) differences.push({ path, what: is === undefined ? 'MISSING' : 'CHANGED' });
  }
  for (const path of programFiles(root, part)) {
    if (!listed.has(path)) differences.push({ path, what: 'ADDED' });
  }
  differences.sort((one, other) => byBytes(one.path, other.path));
  return {
    manifest,
    files,
    differences: differences.slice(0, DIFFERENCES_MAX),
    differing: differences.length,
  };
}

/** Hashes a file. A file that can't be read counts as missing. */
function hashIfThere(file: string): string | undefined {
  try {
    return hashOf(file);
  } catch {
    return undefined;
  }
}
