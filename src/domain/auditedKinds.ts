/**
 * The kinds of ledger entries as the audit judges them, a second time: a wrong rule in ledgerEntry.ts must not pass unnoticed. A kind
 * that is booked and has no rules here does not compile.
 */
import type { LedgerEntryKind } from './ledgerEntry.js';

interface AuditedKind {
  readonly code: number;
  /** Takes the player's next entry number. */
  readonly isNumbered: boolean;
  /** Among which request ids it can bind one; undefined: it binds none. */
  readonly binds: 'spins' | 'adjustments' | undefined;
  readonly isOfRound: boolean;
}

export const AUDITED_KINDS = {
  spin: { code: 1, isNumbered: true, binds: 'spins', isOfRound: false },
  opening: { code: 2, isNumbered: true, binds: undefined, isOfRound: false },
  adjustment: { code: 3, isNumbered: false, binds: 'adjustments', isOfRound: false },
  communalShare: { code: 4, isNumbered: true, binds: undefined, isOfRound: false },
  roundDeal: { code: 6, isNumbered: false, binds: 'spins', isOfRound: true },
  roundAction: { code: 7, isNumbered: false, binds: undefined, isOfRound: true },
  roundVoid: { code: 8, isNumbered: false, binds: undefined, isOfRound: true },
  forcedSpin: { code: 9, isNumbered: true, binds: 'spins', isOfRound: false },
} as const satisfies { readonly [K in LedgerEntryKind]: AuditedKind };

const BY_CODE: (LedgerEntryKind | undefined)[] = [];
for (const [kind, { code }] of Object.entries(AUDITED_KINDS)) BY_CODE[code] = kind as LedgerEntryKind;

/** The kind of a row of the ledger; undefined: there is none of the code. */
export const auditedKindOf = (code: number): LedgerEntryKind | undefined => BY_CODE[code];

/** The codes of the kinds of which something holds, as a list for SQL's IN. */
export const auditedCodesSql = (holds: (kind: AuditedKind) => boolean): string =>
  `(${Object.values<AuditedKind>(AUDITED_KINDS)
    .filter(holds)
    .map(({ code }) => code)
    .join(', ')})`;
