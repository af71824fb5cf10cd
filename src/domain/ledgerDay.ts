/** A UTC day of the ledger: its states, and the manifest of its archive (docs/archive.md). */
import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import { Type } from '#typebox';
import { choice, nullable, timestamp } from './schema.js';

/**
 * OPEN: more may be booked. BOOKED: nothing more can come, and no round that was dealt on it is open. ARCHIVED: its files were
 * read back and compared with the ledger. DROPPED: Postgres has its entries no more.
 */
export const DAY_STATES = ['OPEN', 'BOOKED', 'ARCHIVED', 'DROPPED'] as const;
export type DayState = (typeof DAY_STATES)[number];

/** Raised where a reader of older archives would read a newer one wrongly. */
export const ARCHIVE_SCHEMA = 1;

/** The files of a day's folder, beside its manifest. */
export const ARCHIVE_FILES = ['ledger', 'rounds', 'voids', 'large_wins'] as const;
export type ArchiveFile = (typeof ARCHIVE_FILES)[number];

export const fileName = (file: ArchiveFile): string => `${file}.parquet`;
export const MANIFEST = 'manifest.json';

/** Entries of a partner, game and kind. Sums are decimal text of whole micro-USD: a JSON number would not hold every one. */
export interface EntryTotal {
  readonly partnerId: number;
  /** 0: of no game. */
  readonly gameId: number;
  /** As the ledger codes it. */
  readonly kind: number;
  readonly entries: number;
  readonly wageredMicros: string;
  readonly creditedMicros: string;
}

export interface FileSeal {
  readonly rows: number;
  readonly bytes: number;
  /** SHA-256, hexadecimal. */
  readonly sha256: string;
}

export interface Manifest {
  readonly schema: number;
  readonly day: string;
  /** Of the installation whose ledger it is. */
  readonly datasetId: string;
  /** Entry ids of the day as decimal text: from (with) and to (without). */
  readonly fromId: string;
  readonly toId: string;
  readonly files: { readonly [File in ArchiveFile]: FileSeal };
  /** By partner, game and kind. */
  readonly totals: readonly EntryTotal[];
  /** From which credit on an entry is among the large wins, micro-USD, by partner. */
  readonly largeWinMicros: { readonly [partnerId: string]: number };
  /** The newest revisions of the day's settlement reports when it was archived. */
  readonly reports: readonly {
    readonly partnerId: number;
    readonly revision: number;
    readonly integrityHash: string;
  }[];
  /** SHA-256 of the manifest of the archived day before; null: this is the first. */
  readonly previous: { readonly day: string; readonly manifestHash: string } | null;
}

/** The canonical form (RFC 8785) of a manifest: what its hash is of. */
export const manifestText = (manifest: Manifest): string => canonicalize(manifest)!;
export const sha256 = (text: string | Buffer): string => createHash('sha256').update(text).digest('hex');

/** A total with its place among the others; both sides of a comparison are made of it. */
const totalText = ({ partnerId, gameId, kind, entries, wageredMicros, creditedMicros }: EntryTotal): string =>
  `partner ${partnerId}, game ${gameId}, kind ${kind}: ${entries} entries, wagered ${wageredMicros}, credited ${creditedMicros} micro-USD`;

/** What the totals of one side have and the other side has otherwise, or not; empty: they are equal. */
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
