/** Every `npm run …` that code and documents name is there. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../support/root.js';
import { sources } from './sources.js';

const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};
/** An older version's entry names the scripts of that version. */
const HISTORY = 'CHANGELOG.md';

test('every script that code and documents name is in package.json', () => {
  const places = [
    '.ci',
    'clients/typescript/src',
    'bench',
    'docs',
    'grafana',
    'lua',
    'src',
    'test',
    'tools',
    'workers',
    'Dockerfile',
  ];
  const documents = sources(ROOT, ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md'], /\.md$/);
  const all = [...sources(ROOT, places, /./), ...documents, ...sources(ROOT, ['package.json'], /./)];
  const unknown = all
    .filter(({ path }) => path !== HISTORY)
    .flatMap(({ path, text }) =>
      [...text.matchAll(/\bnpm run (?:--silent )?([a-z][\w:-]*)/g)].map(([, script]) => ({
        path,
        script: script!,
      })),
    )
    .filter(({ script }) => scripts[script] === undefined);
  expect(unknown).toEqual([]);
});

test('what begins with pre or post belongs to a script', () => {
  // npm's own: at the end of `npm ci`.
  const own = 'postinstall';
  const hooks = Object.keys(scripts).filter((name) => /^(pre|post)/.test(name) && name !== own);
  expect(hooks.filter((name) => scripts[name.replace(/^(pre|post)/, '')] === undefined)).toEqual([]);
});
