/**
 * Definition of the ledger's row, from which other code is derived: the COPY of a flush and the readers of
 * rows (ledgerRow.store.ts), the Parquet file of the archive (archive/columns.ts), and the columns that
 * audit, histories, a rebuild of Redis and the kept entries of a dropped day select. A test compares it with
 * the tables of Postgres.
 *
 * A member that is not a text has the same name in the outbox (ENTRY of layouts.ts), by which a flush copies
 * it; `partnerId` is the exception. To add a column, write a migration that adds it to `ledger` and
 * `kept_entries`, and add it to the end of the list here. If it can be null, the transcoder
 * (ledger/transcoder.ts) must set when it is.
 */
import type { EntryKind } from './ledgerEntry.js';

export interface LedgerColumn {
  readonly name: string;
  /** Type of the column in Postgres. */
  readonly type: 'bigint' | 'integer' | 'smallint' | 'text';
  readonly isNullable?: boolean;
  /** Type in JavaScript. A `number` of a bigint column is a safe integer. */
  readonly value: 'bigint' | 'number' | 'string';
  /**
   * Type in the archive (parquetFile.ts). `smallInt32` and `dictionary` are for columns with few distinct
   * values.
   */
  readonly parquet: 'int64' | 'int32' | 'smallInt32' | 'text' | 'dictionary';
  /** A text that the partner sends with a spin. Histories show it under its member's name, also in CSV. */
  readonly isSent?: true;
  /**
   * Readers that select this column. The archive, the audit and the histories are not listed, because they
   * read all columns.
   */
  readonly readBy: readonly LedgerReader[];
}

/**
 * Readers that select only some of the columns. `rebuild` is a rebuild or repair of Redis; `keptAudit` is the
 * audit of tickets and adjustments of dropped days.
 */
type LedgerReader = 'rebuild' | 'keptAudit';

/**
 * Columns in the order of the ledger's table. Columns of a fixed size that can't be null come first, because
 * COPY writes the others after them.
 */
export const LEDGER_COLUMNS = {
  id: {
    name: 'entry_id',
    type: 'bigint',
    value: 'bigint',
    parquet: 'int64',
    readBy: ['rebuild', 'keptAudit'],
  },
  previousId: { name: 'previous_id', type: 'bigint', value: 'bigint', parquet: 'int64', readBy: [] },
  wagerMicros: {
    name: 'wager_micros',
    type: 'bigint',
    value: 'number',
    parquet: 'int64',
    readBy: ['keptAudit'],
  },
  creditMicros: {
    name: 'credit_micros',
    type: 'bigint',
    value: 'number',
    parquet: 'int64',
    readBy: ['rebuild', 'keptAudit'],
  },
  balanceMicros: {
    name: 'balance_micros',
    type: 'bigint',
    value: 'number',
    parquet: 'int64',
    readBy: ['rebuild'],
  },
  outcomeIndex: { name: 'outcome_index', type: 'bigint', value: 'number', parquet: 'int64', readBy: [] },
  partnerId: {
    name: 'partner_id',
    type: 'integer',
    value: 'number',
    parquet: 'smallInt32',
    readBy: ['rebuild', 'keptAudit'],
  },
  gameId: {
    name: 'game_id',
    type: 'integer',
    value: 'number',
    parquet: 'smallInt32',
    readBy: ['rebuild', 'keptAudit'],
  },
  entryNumber: {
    name: 'entry_number',
    type: 'integer',
    value: 'number',
    parquet: 'int32',
    readBy: ['rebuild'],
  },
  outcomeCode: {
    name: 'outcome_code',
    type: 'integer',
    value: 'number',
    parquet: 'int32',
    readBy: ['rebuild'],
  },
  kind: {
    name: 'kind',
    type: 'smallint',
    value: 'number',
    parquet: 'smallInt32',
    readBy: ['rebuild', 'keptAudit'],
  },
  playerId: {
    name: 'player_id',
    type: 'text',
    isSent: true,
    value: 'string',
    parquet: 'dictionary',
    readBy: ['rebuild', 'keptAudit'],
  },
  requestId: {
    name: 'request_id',
    type: 'text',
    isSent: true,
    isNullable: true,
    value: 'string',
    parquet: 'text',
    readBy: ['rebuild', 'keptAudit'],
  },
} as const satisfies Readonly<Record<string, LedgerColumn>>;

type Columns = typeof LEDGER_COLUMNS;
export type LedgerMember = keyof Columns;

interface Values {
  bigint: bigint;
  number: number;
  string: string;
}
type ValueOf<C extends LedgerColumn> =
  | Values[C['value']]
  | (C extends { readonly isNullable: true } ? null : never);

/** Values of a ledger row by member, with the code of its kind. */
export type LedgerRow = { -readonly [M in LedgerMember]: ValueOf<Columns[M]> };

export interface LedgerEntry extends Omit<LedgerRow, 'kind'> {
  kind: EntryKind;
}

/** A row as a query returns it, with every bigint as a BigInt. */
export type EntryRow = {
  [M in LedgerMember as M extends 'id' ? 'entryId' : M]:
    | (Columns[M]['type'] extends 'bigint' ? bigint : Values[Columns[M]['value']])
    | (Columns[M] extends { readonly isNullable: true } ? null : never);
};

export type MembersReadBy<R extends LedgerReader> = {
  [M in LedgerMember]: R extends Columns[M]['readBy'][number] ? M : never;
}[LedgerMember];

/** All members with their columns, in the order of the ledger's table. */
export const LEDGER_MEMBERS = Object.entries(LEDGER_COLUMNS) as unknown as readonly (readonly [
  LedgerMember,
  LedgerColumn,
])[];

export type SentMember = {
  [M in LedgerMember]: Columns[M] extends { readonly isSent: true } ? M : never;
}[LedgerMember];
export const SENT_MEMBERS = LEDGER_MEMBERS.filter(([, { isSent }]) => isSent).map(
  ([member]) => member as SentMember,
);

export const membersReadBy = <R extends LedgerReader>(reader: R): MembersReadBy<R>[] =>
  LEDGER_MEMBERS.filter(([, { readBy }]) => readBy.includes(reader)).map(
    ([member]) => member as MembersReadBy<R>,
  );

/** Columns of the archive's large_wins.parquet, in their order. */
export const LARGE_WIN_MEMBERS = [
  'id',
  'partnerId',
  'gameId',
  'playerId',
  'wagerMicros',
  'creditMicros',
  'balanceMicros',
] as const satisfies readonly LedgerMember[];
