/**
 * Builds the service in separate folders, either from a commit or from the current commit with changes that
 * make it the next version.
 */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { FORMATS } from '../../../src/domain/formats.js';
import { ROOT } from '../../support/root.js';

const run = promisify(execFile);

/** Data format that the newer version can also read, and that it writes once the upgrade is finished. */
export const NEXT_FORMAT = FORMATS.newest + 1;

/** Faults that can be added to the newer version, to check that the test finds them. */
export const PLANTS = ['dropped-column', 'early-format', 'shorter-message'] as const;
export type Plant = (typeof PLANTS)[number];

/**
 * Clones this repository at a commit and builds it.
 * @returns the folder
 */
export async function buildOf(
  ref: string,
  folder: string,
  change?: (root: string) => Promise<void>,
): Promise<string> {
  const git = (...args: string[]) => run('git', ['-C', folder, ...args]);
  await run('git', ['clone', '--quiet', '--no-checkout', ROOT, folder]);
  const { stdout: commit } = await run('git', ['-C', ROOT, 'rev-parse', ref]);
  await git('checkout', '--quiet', '--detach', commit.trim());
  const [theirs, ours] = await Promise.all(
    [folder, ROOT].map((root) => readFile(join(root, 'package-lock.json'), 'utf8')),
  );
  // If the list of packages is unchanged, they are linked instead of installed again.
  if (theirs === ours) await run('cp', ['-al', join(ROOT, 'node_modules'), folder]);
  else await run('npm', ['ci', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: folder });
  await change?.(folder);
  await run('npm', ['run', '--silent', 'types'], { cwd: folder });
  await run('npm', ['run', '--silent', 'build'], { cwd: folder });
  return folder;
}

async function edit(root: string, file: string, from: string, to: string): Promise<void> {
  const path = join(root, file);
  const text = await readFile(path, 'utf8');
  if (!text.includes(from)) throw new Error(`${file} has no «${from}» any more`);
  await writeFile(path, text.replace(from, to));
}

/**
 * Makes the next version from a clone of this build. It gets a new version number, a migration, messages with
 * an additional property, and a new data format that it writes once the upgrade is finished.
 */
export async function makeNewer(root: string, plant: Plant | undefined): Promise<void> {
  const file = join(root, 'package.json');
  const described = JSON.parse(await readFile(file, 'utf8')) as { version: string };
  const [major, minor] = described.version.split('.').map(Number) as [number, number];
  described.version = `${major}.${minor + 1}.0`;
  await writeFile(file, JSON.stringify(described, null, 2));
  await edit(root, 'src/domain/formats.ts', `newest: ${FORMATS.newest} }`, `newest: ${NEXT_FORMAT} }`);
  await run('npm', ['run', '--silent', 'layouts'], { cwd: root });
  const migration = [
    '-- Up Migration',
    'ALTER TABLE games ADD COLUMN added_by_the_newer_version integer NOT NULL DEFAULT 0;',
    ...(plant === 'dropped-column' ? ['ALTER TABLE games DROP COLUMN display_name CASCADE;'] : []),
  ];
  await writeFile(join(root, 'src/postgres/migrations/9999_newer.sql'), `${migration.join('\n')}\n`);
  const cursor = ' $'.concat('{cursor}');
  const member = plant === 'shorter-message' ? '' : `${cursor} more`;
  await edit(root, 'src/engine/redis/announcements.ts', `${cursor}\``, `${member}\``);
  if (plant === 'early-format')
    await edit(
      root,
      'src/main.ts',
      'nodes.writtenFormat = registry.format;',
      `nodes.writtenFormat = ${NEXT_FORMAT};`,
    );
}

/** Returns the commit of the last release, or the current commit if there is no release. */
export async function lastRelease(): Promise<string> {
  const git = (...args: string[]) => run('git', ['-C', ROOT, ...args]);
  const { stdout } = await git('tag', '--list', 'v*', '--sort', '-version:refname', '--merged', 'HEAD');
  const [newest] = stdout.split('\n').filter((tag) => tag !== '');
  return newest ?? (await git('rev-parse', 'HEAD')).stdout.trim();
}
