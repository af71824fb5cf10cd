/** Where the project lies, and how much of it a run takes. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The folder of package.json, whether this file runs as it is or from the build. */
export const ROOT = rootAbove(import.meta.dirname);

/** `npm run test:scale`: the tests of great numbers take all of them. */
export const IS_WHOLE = process.env.SCALE === 'whole';

/** The file that starts the service, in a build. */
export const mainOf = (root: string): string => join(root, 'dist', 'src', 'main.js');

/** The file of the command, in a build: where it lies is not the same in each version, and each says it in its package.json. */
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
