/** Locates the project's folder, and says whether tests use their large numbers. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The folder of package.json, whether this file is executed from the source or from the build. */
export const ROOT = rootAbove(import.meta.dirname);

/** Whether tests use their large numbers (of spins, rows and so on), as in `npm run test:scale`. */
export const IS_WHOLE = process.env.SCALE === 'whole';

/** Returns the path of the file in a build that starts the service. */
export const mainOf = (root: string): string => join(root, 'dist', 'src', 'main.js');

/**
 * Returns the path of the `spindle` command in a build. The path differs between versions, so it is read from
 * package.json.
 */
export function cliOf(root: string): string {
  const { bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    bin: { spindle: string };
  };
  return join(root, bin.spindle);
}

function rootAbove(folder: string): string {
  if (existsSync(join(folder, 'package.json'))) return folder;
  const above = dirname(folder);
  if (above === folder) throw new Error('No folder above has a package.json');
  return rootAbove(above);
}
