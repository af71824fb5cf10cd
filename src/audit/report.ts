/** What an audit finds, and how it is gathered. */

/** The checks, and what each of them says where it finds nothing. */
export const CHECKS = {
  balances: 'every balance follows from the entries before it, and Redis has the same',
  indices: 'every outcome index is dealt or voided, once; the counters agree',
  outcomes: 'what was dealt is what was sealed, and paid what the PAR sheet says',
  blocks: 'blocks are what their commitments say, without gaps, and the same in Redis',
  'double-entry': 'postings sum to zero; totals by day and of all balances are those of the ledger',
  requests: 'every requestId stands for one entry, and binds to it; those of tickets are noted for ever',
  rounds: 'every blackjack round is its shoe and its moves; Redis has open what the ledger has',
  statuses: 'players are blocked in Redis as they are on record',
  'audit-log': 'every entry of the audit log has the hash of itself and the one before',
  communal: 'every communal progressive counts, fires, pays and tells as follows from the ledger',
  cursors: 'cursors, outboxes and epochs fit the ledger; no cell is halted',
} as const;
export type CheckName = keyof typeof CHECKS;

/** Where something is wrong: ids in decimal, `spin` as partners know it. */
export type Place = Readonly<Record<string, string | number>>;

export interface Violation {
  readonly problem: string;
  readonly at: Place;
  readonly expected?: string;
  readonly found?: string;
}

export interface Check {
  readonly name: CheckName;
  readonly title: string;
  /** How many of what were looked at. */
  readonly looked: Readonly<Record<string, number>>;
  readonly violations: number;
  /** The first of them. */
  readonly listed: readonly Violation[];
}

export interface AuditReport {
  readonly startedAt: Date;
  readonly seconds: number;
  /** Ledger rows read, and how many a second while they were. */
  readonly rows: number;
  readonly rowsPerSecond: number;
  readonly checks: readonly Check[];
  readonly violations: number;
  /** Why it could not be finished; undefined where it was. What was found until then is in `checks`. */
  readonly interrupted: string | undefined;
}

type Value = string | number | bigint;

interface Gathered {
  readonly looked: Record<string, number>;
  violations: number;
  readonly listed: Violation[];
}

/** Counts what is looked at and keeps the first violations of each check. */
export class Findings {
  readonly #limit: number;
  readonly #checks = Object.fromEntries(
    Object.keys(CHECKS).map((name): [string, Gathered] => [name, { looked: {}, violations: 0, listed: [] }]),
  ) as Record<CheckName, Gathered>;

  /** @param limit violations kept of each check */
  constructor(limit: number) {
    this.#limit = limit;
  }

  looked(check: CheckName, what: string, count: number): void {
    const { looked } = this.#checks[check];
    looked[what] = (looked[what] ?? 0) + count;
  }

  found(check: CheckName, problem: string, at: Place, expected?: Value, found?: Value): void {
    const gathered = this.#checks[check];
    gathered.violations++;
    if (gathered.listed.length >= this.#limit) return;
    gathered.listed.push({
      problem,
      at,
      ...(expected === undefined ? {} : { expected: String(expected) }),
      ...(found === undefined ? {} : { found: String(found) }),
    });
  }

  /** The next violation of this check would be listed: particulars that cost something are worth getting. */
  lists(check: CheckName): boolean {
    return this.#checks[check].listed.length < this.#limit;
  }

  checks(): Check[] {
    return (Object.keys(CHECKS) as CheckName[]).map((name) => ({
      name,
      title: CHECKS[name],
      ...this.#checks[name],
    }));
  }
}
