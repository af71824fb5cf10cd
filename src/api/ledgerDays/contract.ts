/**
 * Schemas and operations of the days of the ledger: their archives, and the days that were dropped from
 * Postgres.
 */
import { Type } from '#typebox';
import { LedgerDay } from '../../domain/ledgerDay.js';
import { endpointsOf } from '../contract/endpoint.js';

const { operator } = endpointsOf('Ledger');

export const LedgerDayList = Type.Object({
  days: Type.Array(LedgerDay),
  keepDays: Type.Integer({
    description: 'Number of complete days that stay in Postgres (setting LEDGER_KEEP_DAYS)',
  }),
});

export const listLedgerDays = operator.get('listLedgerDays', '/ledger/days', {
  summary: 'List the days of the ledger with their size and archive state',
  description:
    'Lists the days up to today, oldest first. `spindle ledger` archives, verifies and drops days; the service never drops a day automatically. A day is BOOKED once no more entries can be added to it.',
  response: LedgerDayList,
  example: {
    days: [
      {
        day: '2025-10-01',
        state: 'ARCHIVED',
        entries: 86400000,
        isEstimate: false,
        bytes: 12884901888,
        archiveBytes: 2952790016,
        archivedAt: '2025-11-05T03:10:00.000Z',
        droppedAt: null,
        manifestHash: '5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8',
        isDroppable: true,
      },
    ],
    keepDays: 400,
  },
});
