/**
 * Stores of this folder in Postgres: ledger days, reports, the return to player, and settlements. All use one
 * connection pool.
 */
import type { Sql } from '../postgres/connection.js';
import { LedgerDays } from './archive/ledgerDays.store.js';
import { Reports } from './reports/reports.store.js';
import { Rtp } from './returns/rtp.store.js';
import { Settlements } from './settlement/settlements.store.js';

export type BooksStore = ReturnType<typeof openBooksStore>;

/** Every method rejects if the database does not answer within the deadline (src/postgres/connect.ts). */
export const openBooksStore = (sql: Sql) => ({
  ledgerDays: new LedgerDays(sql),
  reports: new Reports(sql),
  rtp: new Rtp(sql),
  settlements: new Settlements(sql),
});
