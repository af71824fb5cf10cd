/** Groups the entries of the audit log that belong to one void, so that the list shows the void once. */
import type { Schemas } from './api.js';
import { count } from './format.js';

type Entry = Schemas['AuditEntry'];

export interface AuditRow {
  /** The newest entry of the row that an operator or the system wrote for the void itself. */
  readonly entry: Entry;
  readonly subjects: readonly string[];
  /** Number of the voided rounds or refunded tickets, in words. Undefined: the action has no count. */
  readonly counted: string | undefined;
}

const member = (of: unknown, name: string): unknown => (of as Record<string, unknown> | null)?.[name];

/** Returns whether two entries void rounds by the same actor for the same reason. */
const isSameVoid = (a: Entry, b: Entry): boolean =>
  a.action === 'round.void' &&
  b.action === 'round.void' &&
  a.actor === b.actor &&
  member(a.after, 'reason') === member(b.after, 'reason');

/** Returns the number of refunded tickets in words, from the entry that ends the refunds of a raffle. */
function ticketsIn({ after }: Entry): string {
  const tickets = Number(member(after, 'tickets'));
  const refunded = Number(member(after, 'refunded'));
  return refunded === tickets
    ? `${count(tickets)} tickets refunded`
    : `${count(refunded)} of ${count(tickets)} tickets refunded`;
}

/**
 * Returns the rows of a page of the audit log. Voids of rounds that follow each other are one row with their
 * number. The end of the refunds of a raffle belongs to the row of its void, if the page has both.
 *
 * @param entries entries, newest first
 */
export function auditRows(entries: readonly Entry[]): AuditRow[] {
  const voidedRaffles = new Set(
    entries.filter(({ action }) => action === 'raffle.void').map(({ subject }) => subject),
  );
  const refunds = new Map<string, Entry>();
  const rows: AuditRow[] = [];
  for (const entry of entries) {
    const { action, subject } = entry;
    const last = rows.at(-1);
    if (action === 'raffle.refund' && voidedRaffles.has(subject)) refunds.set(subject, entry);
    else if (action === 'raffle.refund') rows.push({ entry, subjects: [subject], counted: ticketsIn(entry) });
    else if (last !== undefined && isSameVoid(last.entry, entry)) {
      const subjects = [...last.subjects, subject];
      rows[rows.length - 1] = { ...last, subjects, counted: `${count(subjects.length)} rounds` };
    } else {
      const refund = action === 'raffle.void' ? refunds.get(subject) : undefined;
      const counted =
        refund !== undefined ? ticketsIn(refund) : action === 'round.void' ? '1 round' : undefined;
      rows.push({ entry, subjects: [subject], counted });
    }
  }
  return rows;
}
