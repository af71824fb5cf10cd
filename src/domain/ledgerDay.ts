/** A UTC day of the ledger: its states, and the manifest of its archive (docs/archive.md). */
import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import { Type } from '#typebox';
import { choice, nullable, timestamp } from './schema.js';

/**
 * States of a day.
 * - OPEN: further entries may be committed.
 * - BOOKED: no further entry can come, and no round dealt on that day is open.
 * - ARCHIVED: its files were read back and compared with the ledger.
 * - DROPPED: its entries were removed from Postgres.
 */
export const DAY_STATES = ['OPEN', 'BOOKED', 'ARCHIVED', 'DROPPED'] as const;
export type DayState = (typeof DAY_STATES)[number];

/**
 * Version of the archive's schema. It must be raised when a reader of older archives would misread a newer
 * one.
 */
export const ARCHIVE_SCHEMA = 1;

/** Files in a day's folder, besides its manifest. */
export const ARCHIVE_FILES = ['ledger', 'rounds', 'voids', 'large_wins'] as const;
export type ArchiveFile = (typeof ARCHIVE_FILES)[number];

export const fileName = (file: ArchiveFile): string => `${file}.parquet`;
export const MANIFEST = 'manifest.json';

/**
 * Sums over the entries of a partner, game and kind. Sums are decimal text of whole micro-USD, because a JSON
 * number can't hold every sum.
 */
export interface EntryTotal {
  readonly partnerId: number;
  /** Id of the game; 0 if the entries belong to no game. */
  readonly gameId: number;
  /** Code of the entries' kind, as in the ledger. */
  readonly kind: number;
  readonly entries: number;
  readonly wageredMicros: string;
  readonly creditedMicros: string;
}

export interface FileSeal {
  readonly rows: number;
  readonly bytes: number;
  /** SHA-256 of the archive file, in hexadecimal. */
  readonly sha256: string;
}

export interface Manifest {
  readonly schema: number;
  readonly day: string;
  /** Id of the installation that the ledger belongs to. */
  readonly datasetId: string;
  /** Range of the day's entry ids as decimal text: `fromId` is inclusive, `toId` exclusive. */
  readonly fromId: string;
  readonly toId: string;
  readonly files: { readonly [File in ArchiveFile]: FileSeal };
  /** Totals of the day's entries by partner, game and kind. */
  readonly totals: readonly EntryTotal[];
  /** Minimum amount, in micro-USD, from which a credit is a large win, by partner. */
  readonly largeWinMicros: { readonly [partnerId: string]: number };
  /** Newest revisions of the day's settlement reports at the time of archiving. */
  readonly reports: readonly {
    readonly partnerId: number;
    readonly revision: number;
    readonly integrityHash: string;
  }[];
  /** SHA-256 of the manifest of the previous archived day. Null for the first one. */
  readonly previous: { readonly day: string; readonly manifestHash: string } | null;
}

/** Returns the canonical form (RFC 8785) of a manifest, from which its hash is computed. */
export const manifestText = (manifest: Manifest): string => canonicalize(manifest)!;
export const sha256 = (text: string | Buffer): string => createHash('sha256').update(text).digest('hex');

/** Formats a total with its partner, game and kind, so that two totals can be compared as texts. */
const totalText = ({ partnerId, gameId, kind, entries, wageredMicros, creditedMicros }: EntryTotal): string =>
  `partner ${partnerId}, game ${gameId}, kind ${kind}: ${entries} entries, wagered ${wageredMicros}, credited ${creditedMicros} micro-USD`;

/**
 * Lists the totals that differ between two sides of a comparison or exist on one side only. Empty if both
 * sides are equal.
 */
export function differingTotals(
  expected: readonly EntryTotal[],
  found: readonly EntryTotal[],
): { readonly expected: string; readonly found: string }[] {
  const key = ({ partnerId, gameId, kind }: EntryTotal): string => `${partnerId}/${gameId}/${kind}`;
  const left = new Map(found.map((total) => [key(total), totalText(total)]));
  const differing = expected.flatMap((total) => {
    const text = left.get(key(total));
    left.delete(key(total));
    return text === totalText(total) ? [] : [{ expected: totalText(total), found: text ?? 'nothing' }];
  });
  return [...differing, ...[...left.values()].map((text) => ({ expected: 'nothing', found: text }))];
}

export const LedgerDayState = choice(
  ['OPEN', 'BOOKED', 'ARCHIVED', 'DROPPED'],
  'BOOKED: the ledger has all entries of the day; DROPPED: only the archive has them',
);

export const LedgerDay = Type.Object({
  day: Type.String({ description: 'UTC day, YYYY-MM-DD' }),
  state: LedgerDayState,
  entries: Type.Integer({ description: 'Number of ledger entries of the day' }),
  isEstimate: Type.Boolean({
    description:
      'True if `entries` is an estimate of the database, because the day is large and not archived',
  }),
  bytes: Type.Integer({ description: 'Size in Postgres with indexes, in bytes; 0 once the day is dropped' }),
  archiveBytes: nullable(Type.Integer({ description: "Size of the archive's files, in bytes" })),
  archivedAt: nullable(timestamp()),
  droppedAt: nullable(timestamp()),
  manifestHash: nullable(Type.String({ description: 'SHA-256 of the manifest, hexadecimal' })),
  isDroppable: Type.Boolean({
    description:
      'True if the day is archived and its retention period has ended. `spindle ledger drop` also checks the reports and the archive itself',
  }),
});
