/**
 * The audit's own rules about the kinds of ledger entries. They repeat ledgerEntry.ts deliberately, so that
 * the audit notices a wrong rule there. A ledger kind without rules here does not compile.
 */
import type { LedgerEntryKind } from './ledgerEntry.js';

interface AuditedKind {
  readonly code: number;
  /** Whether an entry of this kind takes the player's next entry number. */
  readonly isNumbered: boolean;
  /** Name space of the request id that an entry of this kind binds. Undefined if it binds none. */
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

/** Returns the kind of a ledger row. Undefined if no kind has the code. */
export const auditedKindOf = (code: number): LedgerEntryKind | undefined => BY_CODE[code];

/** Lists the codes of the kinds that satisfy a condition, for the operator IN of SQL. */
export const auditedCodesSql = (holds: (kind: AuditedKind) => boolean): string =>
  `(${Object.values<AuditedKind>(AUDITED_KINDS)
    .filter(holds)
    .map(({ code }) => code)
    .join(', ')})`;
