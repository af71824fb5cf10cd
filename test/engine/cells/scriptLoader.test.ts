/** Tests how the script loader composes an operation of lua/ from its includes. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { IncludeError, loadScript, withPlaces } from '../../../src/engine/redis/scriptLoader.js';
import { ROOT } from '../../support/root.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'spindle-lua-'));
  mkdirSync(join(dir, 'include'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const write = (name: string, ...lines: string[]): void =>
  writeFileSync(join(dir, `${name}.lua`), `${lines.join('\n')}\n`);
const linesOf = (name: string): string[] => loadScript(dir, name).source.split('\n');

describe('the loader of Lua scripts', () => {
  test('the script loader puts nested includes before their first use, each once', () => {
    write('operation', '-- include: upper', '-- include: lower', 'return upper');
    write('include/upper', '-- include: lower', 'local upper = lower');
    write('include/lower', 'local lower = 1');
    expect(linesOf('operation')).toEqual(['local lower = 1', 'local upper = lower', 'return upper']);
  });

  test('the script loader inserts an include only once if a file names it twice', () => {
    write('operation', '-- include: one', '-- include: one', 'return one');
    write('include/one', 'local one = 1');
    expect(linesOf('operation')).toEqual(['local one = 1', 'return one']);
  });

  test('the script loader inserts inlined code at every place that names it', () => {
    write('operation', '-- inline: step', 'do', '  -- inline: step', 'end');
    write('include/step', 'count = count + 1');
    expect(linesOf('operation')).toEqual(['count = count + 1', 'do', 'count = count + 1', 'end']);
  });

  test('the script loader reports the path that leads to a missing include', () => {
    write('operation', '-- include: upper');
    write('include/upper', '-- include: nowhere');
    const missing = 'operation.lua includes include/upper.lua includes include/nowhere.lua';
    expect(() => loadScript(dir, 'operation')).toThrow(IncludeError);
    expect(() => loadScript(dir, 'operation')).toThrow(missing);
  });

  test('the script loader refuses includes that form a cycle', () => {
    write('operation', '-- include: one');
    write('include/one', '-- include: two');
    write('include/two', '-- include: one');
    expect(() => loadScript(dir, 'operation')).toThrow(/^The includes form a cycle: .*include\/one\.lua$/);
  });

  test('the script loader gives scripts with different flags different hashes, and equal texts the same hash', () => {
    write('operation', 'return 1');
    const plain = loadScript(dir, 'operation');
    const flagged = loadScript(dir, 'operation', 'allow-oom');
    expect(flagged.source).toBe('#!lua flags=allow-oom\nreturn 1');
    expect(flagged.sha).not.toBe(plain.sha);
    expect(loadScript(dir, 'operation').sha).toBe(plain.sha);
  });

  test('the script loader maps the line of a Redis error to its source file and line', () => {
    write('operation', '-- a comment', '-- include: one', 'return one');
    write('include/one', 'local one = 1', 'one = nil + 1');
    const script = loadScript(dir, 'operation');
    expect([1, 2, 3, 4, 99].map((line) => script.locate(line))).toEqual([
      'operation.lua:1',
      'include/one.lua:1',
      'include/one.lua:2',
      'operation.lua:3',
      'operation.lua',
    ]);
    expect(withPlaces('ERR user_script:3: attempt to perform arithmetic, on @user_script:3.', script)).toBe(
      'ERR include/one.lua:2: attempt to perform arithmetic, on include/one.lua:2.',
    );
  });
});

describe('the operations in the folder lua', () => {
  const LUA = join(ROOT, 'lua');
  const namesIn = (folder: string): string[] =>
    readdirSync(folder).flatMap((name) => (name.endsWith('.lua') ? [name.slice(0, -4)] : []));
  const operations = namesIn(LUA);

  test.each(operations)(
    'the header of Lua operation %s documents its keys, arguments and replies',
    (name) => {
      const head = readFileSync(join(LUA, `${name}.lua`), 'utf8').split(']]')[0]!;
      for (const word of ['KEYS[1]', 'ARGV[1]', 'Reply']) expect(head).toContain(word);
    },
  );

  test('every file of lua/include is used by an operation', () => {
    const sources = operations.map((name) => loadScript(LUA, name));
    const used = new Set(
      sources.flatMap(({ source, locate }) =>
        source.split('\n').map((_, i) => locate(i + 1).replace(/:\d+$/, '')),
      ),
    );
    for (const name of namesIn(join(LUA, 'include'))) expect(used).toContain(`include/${name}.lua`);
  });

  test('Lua scripts call Redis in only one place, where the tests can monitor the calls', () => {
    const texts = [
      ...operations.map((name) => `${name}.lua`),
      ...namesIn(join(LUA, 'include')).map((name) => `include/${name}.lua`),
    ].map((file) => readFileSync(join(LUA, file), 'utf8'));
    const found = (pattern: RegExp): string[] => texts.flatMap((text) => text.match(pattern) ?? []);
    expect(found(/redis\.p?call\b/g)).toEqual(['redis.call', 'redis.pcall']);
    expect(new Set(found(/\bannounce\(.\w+/g))).toEqual(new Set(["announce('SPUBLISH"]));
  });
});
