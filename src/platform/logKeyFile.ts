/** Where the signer key of the public log is kept beside an embedded Postgres. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Of a log that has replaced another one. */
export const newLogKeyFile = (dataDir: string, origin: string): string =>
  join(dataDir, `log-key-${createHash('sha256').update(origin).digest('hex').slice(0, 16)}`);

/** Of a log: the first one's file has no name of its own. */
export function logKeyFile(dataDir: string, origin: string): string {
  const own = newLogKeyFile(dataDir, origin);
  return existsSync(own) ? own : join(dataDir, 'log-key');
}
