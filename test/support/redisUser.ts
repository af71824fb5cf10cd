/** The Redis user that docs/production.md describes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { rawRedis } from './redis.js';
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

/** The address of a server for a user who may do everything but hear what others tell, and tell them something. */
export async function deafUrl(redisUrl: string): Promise<string> {
  const url = new URL(redisUrl);
  const redis = rawRedis(redisUrl);
  url.username = `deaf-${process.pid}`;
  url.password = REDIS_USER.password;
  const rights = ['on', `>${REDIS_USER.password}`, '~*', '+@all', 'resetchannels'];
  await redis.acl('SETUSER', url.username, 'reset', ...rights);
  redis.disconnect();
  return url.href;
}
