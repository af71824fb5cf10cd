/** The Redis user that docs/production.md describes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './root.js';

export const REDIS_USER = { name: `spindle-${process.pid}`, password: 'p@ss/word:1' };

/** Its name and rules, as ACL SETUSER and a configuration file take them, with the rights of the document. */
export function userRules(): string[] {
  const text = readFileSync(join(ROOT, 'docs', 'production.md'), 'utf8');
  const rights = /^ACL SETUSER spindle on >PASSWORD ((?:.*\\\n)*.*)$/m.exec(text)![1]!;
  const { name, password } = REDIS_USER;
  return [name, 'reset', 'on', `>${password}`, ...rights.split(/[\s\\]+/).filter(Boolean)];
}

/** How an address names it. */
export const REDIS_USERINFO = `${REDIS_USER.name}:${encodeURIComponent(REDIS_USER.password)}`;
