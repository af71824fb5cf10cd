/** Reads the project's own files for the tidy rules. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

export interface Source {
  /** Path relative to the project's root. */
  readonly path: string;
  readonly text: string;
}

const SKIPPED = new Set(['node_modules', 'dist', '.git', '.data', '.cache', 'package-lock.json']);

/** Returns the files below some folders or files of a project, ordered by path. */
export function sources(root: string, places: readonly string[], ending: RegExp): Source[] {
  return places
    .flatMap((place) => filesOf(join(root, place)))
    .filter((path) => ending.test(path))
    .sort()
    .map((path) => ({ path: relative(root, path), text: readFileSync(path, 'utf8') }));
}

function filesOf(path: string): string[] {
  let entries: ReturnType<typeof entriesOf>;
  try {
    entries = entriesOf(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return [];
    if (code === 'ENOTDIR') return [path];
    throw error;
  }
  return entries.flatMap((entry) => {
    if (SKIPPED.has(entry.name)) return [];
    const inside = join(path, entry.name);
    if (entry.isDirectory()) return filesOf(inside);
    return entry.isFile() ? [inside] : [];
  });
}

const entriesOf = (path: string) => readdirSync(path, { withFileTypes: true });
