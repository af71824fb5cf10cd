/** No script changes a cell for whoever is not its owner any more, nor for a front end that knows another epoch. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../../support/root.js';

const LUA = join(ROOT, 'lua');
/** They write no cell that somebody owns: the one sets the fence, the other counts the failures of an address. */
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
  '%s looks at the fence of the owner, or begins as the commands of front ends do',
  (name) => {
    const guards = guardsOf(name);
    expect(guards.has('ownerFence') || guards.has('cell')).toBe(true);
  },
);

test('there are scripts of both kinds', () => {
  const guarded = (by: string) => scripts.filter((name) => guardsOf(name).has(by));
  expect(guarded('ownerFence').length).toBeGreaterThan(5);
  expect(guarded('cell').length).toBeGreaterThan(5);
});
