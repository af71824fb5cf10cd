/** The rights that docs/production.md gives a Redis user, against the commands that the code calls. */
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

test('a Redis user may call what the scripts call, and what is called by name', () => {
  const inScripts = commandsIn(sources('lua', '.lua'), /\bcall\(\s*'([A-Za-z]+)'/g);
  const byName = commandsIn(sources('src', '.ts'), /\.call(?:Buffer)?\(\s*'([A-Z]+)'/g);
  expect(inScripts.size).toBeGreaterThan(15);
  expect(byName).toContain('evalsha');
  const commands = new Set(rights.map((right) => right.split('|')[0]!));
  expect([...inScripts, ...byName].filter((command) => !commands.has(command))).toEqual([]);
});
