/** Metrics of a worker about the days of the ledger and the disk of Postgres. */
import type { LedgerUse } from '../../books/archive/ledgerStorage.js';
import type { Metrics } from './metrics.js';
import type { Sample } from './scraped.js';

const only = (value: number | undefined): Sample[] => (value === undefined ? [] : [{ labels: {}, value }]);

export function registerLedgerMetrics(metrics: Metrics, use: () => LedgerUse | undefined): void {
  metrics.gauges('spindle_ledger_days', 'Number of days of the ledger, by state (docs/archive.md)', () =>
    [...(use()?.days ?? [])].map(([state, value]) => ({ labels: { state }, value })),
  );
  metrics.gauges('spindle_ledger_bytes', 'Size of tables and indexes of the kept days, in bytes', () =>
    only(use()?.bytes),
  );
  metrics.gauges('spindle_ledger_archive_bytes', 'Size of the files of all archived days, in bytes', () =>
    only(use()?.archiveBytes),
  );
  metrics.gauges(
    'spindle_ledger_archive_age_seconds',
    'Time from the end of the newest archived day to the start of today, in seconds; without archives, from the start of the oldest day',
    () => only(use()?.archiveAgeSeconds),
  );
  metrics.gauges('spindle_database_bytes', 'Size of the database in Postgres, in bytes', () =>
    only(use()?.databaseBytes),
  );
  metrics.gauges(
    'spindle_database_disk_bytes',
    'Size of the disk of Postgres, in bytes; absent if Postgres runs on another machine',
    () => only(use()?.disk?.bytes),
  );
  metrics.gauges(
    'spindle_database_disk_free_bytes',
    'Free space on the disk of Postgres, in bytes; absent if Postgres runs on another machine',
    () => only(use()?.disk?.freeBytes),
  );
}
