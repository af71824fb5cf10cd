/** What an audit finds, and how it is gathered. */

/** The checks, and what each of them says where it finds nothing. */
export const CHECKS = {
  balances: 'every balance follows from the entries before it, and Redis has the same',
  indices: 'every outcome index is dealt or voided, once; the counters agree',
  outcomes: 'what was dealt is what was sealed, and paid what the PAR sheet says',
  log: 'the public log is its records; every entry of a game is in it once, every loaded block in a published checkpoint',
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
  /** Partners that changed their cell meanwhile: what Redis holds of them is left out of `checks`. */
  readonly moving: readonly MovingPartner[];
}

export interface MovingPartner {
  readonly partnerId: number;
  readonly slug: string;
  readonly fromCell: number;
  readonly toCell: number;
}

type Value = string | number | bigint;

interface Gathered {
  readonly looked: Record<string, number>;
  violations: number;
  listed: Violation[];
  /** Violations that came of comparing Redis with the snapshot, by {@link ownerOf}, and how many were listed before. */
  readonly compared: Map<string, number>;
  listedBefore: number;
}

/** Whose data a place is: a partner's, or a game's where it names no partner. */
const ownerOf = ({ partner, game }: Place): string =>
  partner === undefined ? `game ${game}` : `partner ${partner}`;

/** Of these the stores agree wherever a partner lives. */
const WHEREVER: ReadonlySet<CheckName> = new Set(['requests']);

/** Counts what is looked at and keeps the first violations of each check. */
export class Findings {
  readonly #limit: number;
  readonly #checks = Object.fromEntries(
    Object.keys(CHECKS).map((name): [string, Gathered] => [
      name,
      { looked: {}, violations: 0, listed: [], compared: new Map(), listedBefore: 0 },
    ]),
  ) as Record<CheckName, Gathered>;
  #isComparing = false;

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
    if (this.#isComparing) {
      const owner = ownerOf(at);
      gathered.compared.set(owner, (gathered.compared.get(owner) ?? 0) + 1);
    }
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

  /** What is found from here on comes of comparing Redis with the snapshot. */
  beginComparing(): void {
    this.#isComparing = true;
    for (const gathered of Object.values(this.#checks)) gathered.listedBefore = gathered.listed.length;
  }

  /** Takes back what comparing Redis with the snapshot found of a partner: it changed its cell meanwhile. */
  leaveOut(partnerId: number, gameIds: readonly number[]): void {
    const owners = new Set([`partner ${partnerId}`, ...gameIds.map((gameId) => `game ${gameId}`)]);
    for (const name of (Object.keys(CHECKS) as CheckName[]).filter((each) => !WHEREVER.has(each))) {
      const gathered = this.#checks[name];
      for (const owner of owners) {
        gathered.violations -= gathered.compared.get(owner) ?? 0;
        gathered.compared.delete(owner);
      }
      gathered.listed = gathered.listed.filter(
        ({ at }, i) => i < gathered.listedBefore || !owners.has(ownerOf(at)),
      );
    }
  }

  checks(): Check[] {
    return (Object.keys(CHECKS) as CheckName[]).map((name) => {
      const { looked, violations, listed } = this.#checks[name];
      return { name, title: CHECKS[name], looked, violations, listed };
    });
  }
}
