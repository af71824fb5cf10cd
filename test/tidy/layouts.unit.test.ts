import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { LUA_DIR } from '../../src/engine/redis/scriptLoader.js';
import { luaLayouts } from '../../tools/layouts.js';

test('the Lua layouts match the declarations in TypeScript: run `npm run layouts`', () => {
  const folder = join(LUA_DIR, 'include', 'layouts');
  const written = new Map(
    readdirSync(folder)
      .sort()
      .map((name) => [name, readFileSync(join(folder, name), 'utf8')]),
  );
  expect(written).toEqual(new Map([...luaLayouts(LUA_DIR)].sort()));
});
