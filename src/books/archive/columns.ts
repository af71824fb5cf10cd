/** Columns of the archive files of a day, as docs/archive.md describes them. Amounts are whole micro-USD. */
import {
  LARGE_WIN_MEMBERS,
  LEDGER_COLUMNS,
  LEDGER_MEMBERS,
  type LedgerColumn,
  type LedgerMember,
} from '../../domain/ledgerColumns.js';
import type { ArchiveFile } from '../../domain/ledgerDay.js';
import type { ParquetColumn } from './parquetFile.js';

const int64 = (name: string): ParquetColumn => ({ name, type: 'int64' });
/** Type of a column with few distinct values. A dictionary encoding makes such a column smallest. */
const few = (name: string): ParquetColumn => ({ name, type: 'smallInt32' });
const dictionary = (name: string): ParquetColumn => ({ name, type: 'dictionary' });
const requestId: ParquetColumn = { name: 'request_id', type: 'text', isNullable: true };

const ofLedger = (member: LedgerMember): ParquetColumn => {
  const { name, parquet, isNullable }: LedgerColumn = LEDGER_COLUMNS[member];
  return { name, type: parquet, isNullable: isNullable === true };
};

export const COLUMNS: { readonly [File in ArchiveFile]: readonly ParquetColumn[] } = {
  ledger: LEDGER_MEMBERS.map(([member]) => ofLedger(member)),
  rounds: [
    ...[
      few('game_id'),
      int64('shoe_index'),
      few('partner_id'),
      dictionary('player_id'),
      requestId,
      int64('deal_id'),
    ],
    ...[dictionary('status'), ...['moves', 'entry_ids', 'wagers_micros', 'balances_micros'].map(dictionary)],
    { name: 'payout_micros', type: 'int64', isNullable: true },
  ],
  voids: [
    ...[few('game_id'), int64('from_index'), int64('to_index'), int64('epoch'), dictionary('reason')],
    int64('voided_at_ms'),
  ],
  large_wins: LARGE_WIN_MEMBERS.map(ofLedger),
};
