/** Compares the rights that docs/production.md gives a Redis user with the commands that the code calls. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { userRules } from '../support/redisUser.js';
import { ROOT } from '../support/root.js';
import { read } from './compose.js';

const rights = userRules().flatMap((rule) => (rule.startsWith('+') ? [rule.slice(1)] : []));
const sources = (folder: string, end: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(end))
    .map((file) => read(join(folder, file)));
const commandsIn = (texts: readonly string[], call: RegExp): Set<string> =>
  new Set(texts.flatMap((text) => [...text.matchAll(call)].map(([, command]) => command!.toLowerCase())));

test('the documented Redis user may run every command that scripts and code call', () => {
  const inScripts = commandsIn(sources('lua', '.lua'), /\bcall\(\s*'([A-Za-z]+)'/g);
  const byName = commandsIn(sources('src', '.ts'), /\.call(?:Buffer)?\(\s*'([A-Z]+)'/g);
  expect(inScripts.size).toBeGreaterThan(15);
  expect(byName).toContain('evalsha');
  const commands = new Set(rights.map((right) => right.split('|')[0]!));
  expect([...inScripts, ...byName].filter((command) => !commands.has(command))).toEqual([]);
});
