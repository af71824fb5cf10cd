/** The Redis user that docs/production.md describes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { rawRedis } from './redis.js';
import { ROOT } from './root.js';

export const REDIS_USER = { name: `spindle-${process.pid}`, password: 'p@ss/word:1' };

/**
 * The name and rules of the user with the documented rights, in the form of the command ACL SETUSER and of a
 * configuration file.
 */
export function userRules(): string[] {
  const text = readFileSync(join(ROOT, 'docs', 'production.md'), 'utf8');
  const rights = /^ACL SETUSER spindle on >PASSWORD ((?:.*\\\n)*.*)$/m.exec(text)![1]!;
  const { name, password } = REDIS_USER;
  return [name, 'reset', 'on', `>${password}`, ...rights.split(/[\s\\]+/).filter(Boolean)];
}

/** The user and password, in the form that they have in a URL. */
export const REDIS_USERINFO = `${REDIS_USER.name}:${encodeURIComponent(REDIS_USER.password)}`;

/**
 * Returns the URL of a server for a user with all rights except publishing and subscribing to announcements.
 */
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
