/** The columns of the files of a day, as docs/archive.md describes them. Money is whole micro-USD. */
import type { ArchiveFile } from '../domain/ledgerDay.js';
import type { Column } from './parquetFile.js';

const int64 = (name: string): Column => ({ name, type: 'int64' });
const int32 = (name: string): Column => ({ name, type: 'int32' });
/** One of few values. */
const few = (name: string): Column => ({ name, type: 'smallInt32' });
const dictionary = (name: string): Column => ({ name, type: 'dictionary' });
const requestId: Column = { name: 'request_id', type: 'text', isNullable: true };

export const COLUMNS: { readonly [File in ArchiveFile]: readonly Column[] } = {
  ledger: [
    ...['entry_id', 'previous_id', 'wager_micros', 'credit_micros', 'balance_micros', 'outcome_index'].map(
      int64,
    ),
    ...[few('partner_id'), few('game_id'), int32('entry_number'), int32('outcome_code'), few('kind')],
    ...[dictionary('player_id'), requestId],
  ],
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
  large_wins: [
    ...[int64('entry_id'), few('partner_id'), few('game_id'), dictionary('player_id')],
    ...[int64('wager_micros'), int64('credit_micros'), int64('balance_micros')],
  ],
};
