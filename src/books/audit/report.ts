/** Collects the findings of an audit and defines its report. */

/** Names of the checks, each with the statement that is confirmed if the check finds nothing. */
export const CHECKS = {
  balances: 'every balance follows from the previous entries and equals the balance in Redis',
  indices: 'every outcome index is dealt or voided exactly once, and the counters agree',
  outcomes: 'every dealt outcome equals the sealed outcome and pays as the PAR sheet says',
  log: 'the public log matches its records and has every entry of a game once, and a published checkpoint covers every loaded block',
  blocks: 'blocks match their commitments, have no gaps and are the same in Redis',
  'double-entry': 'postings sum to zero, and the totals by day and of all balances match the ledger',
  requests:
    'every requestId belongs to one entry and is bound to it, and those of tickets are recorded permanently',
  rounds:
    'every blackjack round follows from its shoe and moves, and Redis has the same open rounds as the ledger',
  statuses: 'players have the same status in Redis as in Postgres',
  'audit-log': 'the hash of every audit log entry covers the entry and the previous hash',
  communal: 'counters, events, payouts and notices of every communal progressive follow from the ledger',
  cursors: 'cursors, outboxes and epochs match the ledger, and no cell is halted',
} as const;
export type CheckName = keyof typeof CHECKS;

/** Position of a violation. Ids are decimal, except that `spin` is the id that partners see. */
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
  /** Number of checked items by type of item. */
  readonly looked: Readonly<Record<string, number>>;
  readonly violations: number;
  /** The first violations, up to the limit. */
  readonly listed: readonly Violation[];
}

export interface AuditReport {
  readonly startedAt: Date;
  readonly seconds: number;
  /** Number of ledger rows read, and the rate during the ledger pass. */
  readonly rows: number;
  readonly rowsPerSecond: number;
  readonly checks: readonly Check[];
  readonly violations: number;
  /**
   * Reason why the audit did not finish; undefined if it finished. Findings until the interruption are in
   * `checks`.
   */
  readonly interrupted: string | undefined;
  /** Partners that moved to another cell during the audit. Their Redis data is excluded from `checks`. */
  readonly moving: readonly MovingPartner[];
}

export interface MovingPartner {
  readonly partnerId: number;
  readonly slug: string;
  readonly fromCell: number;
  readonly toCell: number;
}

export type Value = string | number | bigint;

interface Gathered {
  readonly looked: Record<string, number>;
  violations: number;
  listed: Violation[];
  /**
   * Number of violations by {@link ownerOf} that were found when Redis was compared with the snapshot.
   * `listedBefore` is the number of violations listed before that comparison.
   */
  readonly compared: Map<string, number>;
  listedBefore: number;
}

const placeOf = (at: Place | (() => Place)): Place => (typeof at === 'function' ? at() : at);

/** Returns the owner of the data at a position: the partner if one is named, otherwise the game. */
const ownerOf = ({ partner, game }: Place): string =>
  partner === undefined ? `game ${game}` : `partner ${partner}`;

/** Checks whose findings stay valid even if a partner moves to another cell during the audit. */
const WHEREVER: ReadonlySet<CheckName> = new Set(['requests']);

/** Counts checked items and keeps the first violations of each check. */
export class Findings {
  readonly #checks = Object.fromEntries(
    Object.keys(CHECKS).map((name): [string, Gathered] => [
      name,
      { looked: {}, violations: 0, listed: [], compared: new Map(), listedBefore: 0 },
    ]),
  ) as Record<CheckName, Gathered>;
  #isComparing = false;

  /** @param limit maximum number of violations kept for each check */
  constructor(private readonly limit: number) {}

  looked(check: CheckName, what: string, count: number): void {
    const { looked } = this.#checks[check];
    looked[what] = (looked[what] ?? 0) + count;
  }

  /** @param at a function is called only if its place is needed */
  found(check: CheckName, problem: string, at: Place | (() => Place), expected?: Value, found?: Value): void {
    const gathered = this.#checks[check];
    gathered.violations++;
    if (this.#isComparing) {
      const owner = ownerOf(placeOf(at));
      gathered.compared.set(owner, (gathered.compared.get(owner) ?? 0) + 1);
    }
    if (gathered.listed.length >= this.limit) return;
    gathered.listed.push({
      problem,
      at: placeOf(at),
      ...(expected === undefined ? {} : { expected: String(expected) }),
      ...(found === undefined ? {} : { found: String(found) }),
    });
  }

  /**
   * Returns whether the next violation of a check would be listed, so that a caller can skip expensive
   * details.
   */
  lists(check: CheckName): boolean {
    return this.#checks[check].listed.length < this.limit;
  }

  /**
   * Marks the start of the comparison of Redis with the snapshot. Later findings may be withdrawn by {@link
   * leaveOut}.
   */
  beginComparing(): void {
    this.#isComparing = true;
    for (const gathered of Object.values(this.#checks)) gathered.listedBefore = gathered.listed.length;
  }

  /**
   * Withdraws the findings about a partner from the comparison of Redis with the snapshot, because the
   * partner moved to another cell meanwhile.
   */
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
