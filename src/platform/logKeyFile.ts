/** Paths of the signer keys of public logs, which are stored next to an embedded Postgres. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** File name of the key that belongs to a log which has replaced another log. */
export const newLogKeyFile = (dataDir: string, origin: string): string =>
  join(dataDir, `log-key-${createHash('sha256').update(origin).digest('hex').slice(0, 16)}`);

/** The file of the first log does not contain the log's name. */
export function logKeyFile(dataDir: string, origin: string): string {
  const own = newLogKeyFile(dataDir, origin);
  return existsSync(own) ? own : join(dataDir, 'log-key');
}
