/** Writes spins as CSV: their columns and rows. */
import type { CsvText } from '../../domain/csv.js';
import { entryTimeMs } from '../../domain/entryId.js';
import { type LedgerEntry, SENT_MEMBERS, type SentMember } from '../../domain/ledgerColumns.js';
import { microsToUsdText } from '../../domain/money.js';
import type { SpinTail } from '../../domain/spinTail.js';

interface CsvSpin {
  readonly spinId: string;
  readonly entry: LedgerEntry;
  readonly prizeTier: number;
  /** Balance after the spin, as its response stated it, in micro-USD. */
  readonly balanceMicros: number;
  readonly outcomeIndex: number | null;
  readonly tail: SpinTail;
}

type SpinColumn = (spin: CsvSpin, csvText: CsvText) => string | number;

const sent =
  (member: SentMember): SpinColumn =>
  ({ entry: { [member]: text } }, csvText) =>
    text === null ? '' : csvText(text);

/** The columns of `GET /spins`, in output order. */
const SPIN_COLUMNS: Record<string, SpinColumn> = {
  spinId: ({ spinId }) => spinId,
  createdAt: ({ entry }) => new Date(entryTimeMs(entry.id)).toISOString(),
  gameId: ({ entry }) => entry.gameId,
  playerId: sent('playerId'),
  requestId: sent('requestId'),
  wagerUsd: ({ entry }) => microsToUsdText(entry.wagerMicros),
  payoutUsd: ({ entry }) => microsToUsdText(entry.creditMicros),
  prizeTier: ({ prizeTier }) => prizeTier,
  balanceUsd: ({ balanceMicros }) => microsToUsdText(balanceMicros),
  sandbox: ({ tail }) => (tail.isForced ? 'forced' : ''),
  outcomeIndex: ({ outcomeIndex }) => outcomeIndex ?? '',
};
const LATER_MEMBERS = SENT_MEMBERS.filter((member) => SPIN_COLUMNS[member] === undefined);
for (const member of LATER_MEMBERS) SPIN_COLUMNS[member] = sent(member);

const SPIN_COLUMN_VALUES = Object.values(SPIN_COLUMNS);

export const SPIN_CSV_HEAD = `${Object.keys(SPIN_COLUMNS).join()}\r\n`;

export const spinCsvRow = (spin: CsvSpin, csvText: CsvText): string =>
  `${SPIN_COLUMN_VALUES.map((column) => column(spin, csvText)).join()}\r\n`;

export const SPIN_CSV_EXAMPLE = `${SPIN_CSV_HEAD}04f965c9ca0a730d47062f0635d6a943,2026-11-22T04:14:01.121Z,3,"alice","0197d2c4-9c1e-7a55-8f6e-3b1f0a2c4d5e",0.25,0.5,1,1000.25,,1041${LATER_MEMBERS.map(() => ',').join('')}\r\n`;
