/**
 * The files that the program consists of, and their list `manifest.sha256`: what the build makes, the scripts of Redis, the migrations,
 * package.json, package-lock.json, and the packages that run with it. In a thread of its own: hashing them takes a part of a second.
 */
import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';

export const MANIFEST = 'manifest.sha256';
/** Folders of the program itself. */
const FOLDERS = ['dist', 'lua', 'src/postgres/migrations'];
const SINGLE_FILES = ['package.json', 'package-lock.json'];
const PACKAGES = 'node_modules/';
const PACKAGE_LOCK = 'package-lock.json';
/** As sha256sum writes a line of a plain name. */
const LINE = /^([0-9a-f]{64}) [ *]([^\\\n]+)$/;
const CHUNK_BYTES = 1 << 20;
const DIFFERENCES_MAX = 100;

/** `program`: the program itself; `packages`: those that are installed beside it. */
export type ProgramPart = 'program' | 'packages' | 'all';

export interface ProgramWanted {
  /** The folder of package.json. */
  readonly root: string;
  readonly part: ProgramPart;
  /** The list to compare with; absent: that of the build. */
  readonly manifest?: string;
}

export interface Difference {
  /** Of the folder of package.json. */
  readonly path: string;
  readonly what: 'CHANGED' | 'MISSING' | 'ADDED';
}

export interface ProgramFound {
  /** SHA-256 of the list, hexadecimal; null where there is none. */
  readonly manifest: string | null;
  /** Files that were compared. */
  readonly files: number;
  /** The first 100, by path. */
  readonly differences: readonly Difference[];
  /** All of them. */
  readonly differing: number;
}

/** Files of a part of the program by path, in the order of `LC_ALL=C sort`. @throws Error of the file system */
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

/** A link of a package is left out: it leads to a file that is listed, or is made at a start (embedded Postgres). */
function walk(root: string, folder: string, files: string[]): void {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`;
    const linksTo = entry.isSymbolicLink() && !path.startsWith(PACKAGES) ? statSync(join(root, path)) : entry;
    if (linksTo.isDirectory()) walk(root, path, files);
    else if (linksTo.isFile()) files.push(path);
  }
}

/** Installed packages that are no tools of development. What is installed within one is walked with it. */
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

/** The list of all files as they are now, in the form of sha256sum. @throws Error where a path can't stand in it */
export function manifestOf(root: string): string {
  const lines = programFiles(root, 'all').map((path) => `${hashOf(join(root, path))}  ${path}`);
  const odd = lines.find((line) => !LINE.test(line));
  if (odd !== undefined) throw new Error(`${odd.slice(66)} can't stand in ${MANIFEST}`);
  return `${lines.join('\n')}\n`;
}

/** @returns undefined where a line is none of sha256sum, or leads out of the folder */
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

/** Compares files with the list. @throws Error where the list is there and can't be read */
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

/** A file that can't be read is as good as none. */
function hashIfThere(file: string): string | undefined {
  try {
    return hashOf(file);
  } catch {
    return undefined;
  }
}
