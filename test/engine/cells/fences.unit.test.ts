/** Tests that no script changes a cell for a former owner, or for a front end that expects another epoch. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../../support/root.js';

const LUA = join(ROOT, 'lua');
/**
 * Scripts that need no check because they do not write the data of a cell that has an owner: claimCell sets
 * the fence, and countFailure counts the failures of a client address.
 */
const FREE = ['claimCell', 'countFailure'];

function guardsOf(file: string, found = new Set<string>()): Set<string> {
  for (const [, name] of readFileSync(join(LUA, `${file}.lua`), 'utf8').matchAll(/^ *-- include: (\w+)$/gm)) {
    if (found.has(name!)) continue;
    found.add(name!);
    guardsOf(join('include', name!), found);
  }
  return found;
}

const scripts = readdirSync(LUA).flatMap((name) => (name.endsWith('.lua') ? [name.slice(0, -4)] : []));

test.each(scripts.filter((name) => !FREE.includes(name)))(
  'Lua script %s checks the fence of the owner or starts with the checks of front-end commands',
  (name) => {
    const guards = guardsOf(name);
    expect(guards.has('ownerFence') || guards.has('cell')).toBe(true);
  },
);

test('some Lua scripts are for owners and some for front ends', () => {
  const guarded = (by: string) => scripts.filter((name) => guardsOf(name).has(by));
  expect(guarded('ownerFence').length).toBeGreaterThan(5);
  expect(guarded('cell').length).toBeGreaterThan(5);
});
