/** Days of the ledger (docs/archive.md). */
import { Type } from '#typebox';
import { choice, nullable, timestamp } from '../../domain/schema.js';

export const LedgerDayState = choice(
  ['OPEN', 'BOOKED', 'ARCHIVED', 'DROPPED'],
  'BOOKED: nothing more can come to it; DROPPED: only its archive has it',
);

export const LedgerDay = Type.Object({
  day: Type.String({ description: 'UTC day, YYYY-MM-DD' }),
  state: LedgerDayState,
  entries: Type.Integer({ description: 'Entries of the ledger' }),
  isEstimate: Type.Boolean({
    description: '`entries` is what the database estimates: the day is large and not archived',
  }),
  bytes: Type.Integer({ description: 'In Postgres, with indexes; 0 once dropped' }),
  archiveBytes: nullable(Type.Integer({ description: 'Of the files of the archive' })),
  archivedAt: nullable(timestamp()),
  droppedAt: nullable(timestamp()),
  manifestHash: nullable(Type.String({ description: 'SHA-256 of the manifest, hexadecimal' })),
  isDroppable: Type.Boolean({
    description:
      'Archived, and older than what must be kept. `spindle ledger drop` looks at more: reports, and the archive itself',
  }),
});

export const LedgerDayList = Type.Object({
  days: Type.Array(LedgerDay),
  keepDays: Type.Integer({ description: 'LEDGER_KEEP_DAYS' }),
});
