/**
 * Checks the files that docs/production.md installs: the units of systemd, and the Compose file for stores of
 * one's own.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DCLinter } from 'dclint';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { readConfig } from '../../src/app/config.js';
import { ROOT } from '../support/root.js';
import { read } from './compose.js';

const UNITS = [
  ['spindle-worker.service', 'spindle-worker.service'],
  ['spindle-front-end@.service', 'spindle-front-end@8080.service'],
] as const;
const unitOf = (name: string): string => read(`deploy/systemd/${name}`);
/** Returns the settings of a unit for the port 8080. */
const settingsOf = (name: string): Record<string, string> => {
  const [, line] = /^Environment=(.*)$/m.exec(unitOf(name))!;
  return Object.fromEntries(line!.split(' ').map((pair) => pair.replaceAll('%i', '8080').split('=')));
};
/** Settings of the file /etc/spindle.env that the page writes. */
const written = [...read('docs/production.md').matchAll(/^ {3}([A-Z_]+)="(.*)"$/gm)].map(
  ([, name, value]) => [name!, value!.startsWith('$(') ? Buffer.alloc(32, 7).toString('base64') : value!],
);

describe('the installation with systemd', () => {
  const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;
  test.skipIf(!hasSystemd).each(UNITS)('systemd accepts %s', (name, installed) => {
    const folder = mkdtempSync(join(tmpdir(), 'spindle-units-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    copyFileSync(join(ROOT, 'deploy/systemd', name), join(folder, installed));
    const { stdout, stderr } = spawnSync('systemd-analyze', ['verify', join(folder, installed)]);
    // The machine of the test may lack /usr/bin/node.
    const said = `${stdout}${stderr}`
      .split('\n')
      .filter((line) => line.includes(installed) && !/usr\/bin\/node/.test(line));
    expect(said).toEqual([]);
  });

  test.each(UNITS)('%s starts the program with the settings of the page', (name) => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    expect(unitOf(name)).toContain(`\nExecStart=/usr/bin/${scripts.start!.replace('exec ', '')}\n`);
    expect(unitOf(name)).toContain('\nEnvironmentFile=/etc/spindle.env\n');
    const own = settingsOf(name);
    const config = readConfig({ ...Object.fromEntries(written), ...own });
    expect(config.roles).toEqual({ http: own.ROLES === 'http', worker: own.ROLES === 'worker' });
    expect(config.METRICS_PORT).toBe(own.ROLES === 'http' ? 18_080 : 9464);
  });
});

describe('deploy/separate-stores.yml', () => {
  const text = read('deploy/separate-stores.yml');
  const { services } = parse(text, { merge: true }) as {
    services: Record<string, { environment: Record<string, string> }>;
  };

  test('follows the Compose Specification and good practice', () => {
    const rules = {
      'service-keys-order': 0,
      'services-alphabetical-order': 0,
      'top-level-properties-order': 0,
    };
    const linter = new DCLinter({ rules, quiet: true, debug: false, exclude: [] });
    const [found] = linter.lintFiles([join(ROOT, 'deploy/separate-stores.yml')], false);
    expect(found!.messages).toEqual([]);
  });

  test('takes its settings from the file that docs/production.md writes, and runs both roles', () => {
    const names = new Set([...text.matchAll(/\$\{([A-Z_]+):[?]/g)].map(([, name]) => name));
    for (const name of names) expect(written.map(([known]) => known)).toContain(name);
    const given = Object.fromEntries(written);
    const roles = Object.values(services).map(({ environment }) => {
      const values = Object.entries(environment).map(([name, value]) => [
        name,
        value.startsWith('${') ? (given[name] ?? '') : value,
      ]);
      return readConfig(Object.fromEntries(values.filter(([, value]) => value !== ''))).roles;
    });
    expect(roles).toEqual([
      { http: false, worker: true },
      { http: true, worker: false },
    ]);
  });
});
