/** Metrics of a worker about the days of the ledger and the disk of Postgres. */
import type { LedgerStorage } from '../../books/archive/ledgerStorage.js';
import type { Metrics } from './metrics.js';
import type { Sample } from './scraped.js';

const only = (value: number | undefined): Sample[] => (value === undefined ? [] : [{ labels: {}, value }]);

export function registerLedgerMetrics(metrics: Metrics, storage: Pick<LedgerStorage, 'use'>): void {
  metrics.gauges('spindle_ledger_days', 'Days of the ledger by state (docs/archive.md)', () =>
    [...(storage.use?.days ?? [])].map(([state, value]) => ({ labels: { state }, value })),
  );
  metrics.gauges('spindle_ledger_bytes', 'Tables and indexes of the days that are kept', () =>
    only(storage.use?.bytes),
  );
  metrics.gauges('spindle_ledger_archive_bytes', 'Files of all archived days, as they were made', () =>
    only(storage.use?.archiveBytes),
  );
  metrics.gauges(
    'spindle_ledger_archive_age_seconds',
    'From the end of the newest archived day, or the begin of the oldest one where none is, until today began',
    () => only(storage.use?.archiveAgeSeconds),
  );
  metrics.gauges('spindle_database_bytes', 'Size of the database in Postgres', () =>
    only(storage.use?.databaseBytes),
  );
  metrics.gauges(
    'spindle_database_disk_bytes',
    'Size of the disk of Postgres: DATABASE_DISK_GB, or that of an embedded one; else not there',
    () => only(storage.use?.disk?.bytes),
  );
  metrics.gauges(
    'spindle_database_disk_free_bytes',
    'What is left of it: of DATABASE_DISK_GB less the database, or as the file system says',
    () => only(storage.use?.disk?.freeBytes),
  );
}
