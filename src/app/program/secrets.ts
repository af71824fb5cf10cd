/**
 * Collects the secrets in the settings of this process, which must not appear in a log line. Secrets that the
 * service issues are not collected, because the log recognizes them by their format.
 */

import { seedsOf } from '../../domain/storeUrl.js';
import { spellings } from '../../platform/secretsInLogs.js';
import type { Config } from '../config.js';

export function secretsOf({
  REDIS_URL,
  DATABASE_URL,
  DATABASE_DIRECT_URL,
  SMTP_URL,
  OPERATOR_API_KEY,
  ...config
}: Config): string[] {
  const urls = [REDIS_URL, DATABASE_URL, DATABASE_DIRECT_URL, SMTP_URL].flatMap((url = '') => seedsOf(url));
  const passwords = urls.map((url) => (URL.canParse(url) ? new URL(url).password : undefined));
  const listed = (keys = ''): string[] => keys.split(',').filter((key) => key !== '');
  return spellings([
    ...passwords,
    OPERATOR_API_KEY,
    ...listed(config.WEBHOOK_SECRETS_KEY),
    ...listed(config.SEEDS_KEY),
    ...listed(config.LOG_KEY),
  ]);
}
