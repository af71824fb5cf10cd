/**
 * Finds the folder with the project's files that are read at run time: package.json, lua, docs, migrations.
 */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * Returns the nearest parent folder with a package.json. The result is the same for code in `src` and in
 * `dist/src`.
 */
function rootAbove(folder: string): string {
  if (existsSync(join(folder, 'package.json')) || dirname(folder) === folder) return folder;
  return rootAbove(dirname(folder));
}

export const PROJECT_ROOT = rootAbove(import.meta.dirname);
