/**
 * Reads the ledger without the service, with another driver, and compares it with the answers of the clients.
 */
import postgres from 'postgres';
import { SpinIds } from '../../src/domain/spinId.js';
import { nameOf, type SpinRecord, STRANGER } from './records.js';

interface LedgerRow {
  readonly entry_id: string;
  readonly previous_id: string;
  readonly wager_micros: string;
  readonly credit_micros: string;
  readonly balance_micros: string;
  readonly outcome_index: string;
  readonly partner_id: number;
  readonly game_id: number;
  readonly entry_number: number;
  readonly kind: number;
  readonly player_id: string;
  readonly request_id: string | null;
}

interface VoidRow {
  readonly game_id: number;
  readonly from_index: string;
  readonly to_index: string;
}

interface Booked {
  readonly entryId: bigint;
  readonly partnerId: number;
  readonly gameId: number;
  readonly playerId: string;
  readonly payoutMicros: number;
  readonly balanceMicros: number;
}

/** Violations, grouped by the promise that they break. */
export interface Findings {
  /** Spins that were answered with 200 and are missing or different in the ledger. */
  lost: string[];
  /** Outcomes that were dealt twice, and request ids with more than one row in the ledger. */
  twice: string[];
  /** Outcome indices that are neither committed nor voided. */
  missing: string[];
  other: string[];
  /** Numbers of spins in doubt (without an answer) that the ledger has zero times, once, or more often. */
  unknowns: [none: number, one: number, more: number];
}

/** The state of a run before its stores are restored. */
export interface RestoredKnown {
  /**
   * `records` are all records of the run. `touched` are the records that are checked at the end of the round.
   */
  readonly records: readonly SpinRecord[];
  readonly touched: readonly SpinRecord[];
  readonly shown: readonly string[];
}

interface PlayerChain {
  number: number;
  id: bigint;
  balance: bigint;
}

const SPIN = 1;
const OPENING = 2;
const ROUND_DEAL = 6;
/** Kinds of entries without an entry number: adjustments and entries of rounds. */
const NUMBERLESS = [3, 6, 7, 8];
const MAX_ID = 2n ** 63n - 1n;
/** Returns the cell of an entry id, which has 41 bits of time, 8 bits of cell and 14 bits of sequence. */
const cellOf = (entryId: bigint): number => Number((entryId >> 14n) & 255n);
const placeOf = (spin: { partnerId: number; gameId: number; playerId: string }): string =>
  `${spin.partnerId}:${spin.gameId}:${spin.playerId}`;
const keyOf = (partnerId: number, id: string): string => `${partnerId}:${id}`;

/** Reads the ledger incrementally, so that the cost of a round depends only on the rows of the round. */
export class Books {
  #spinIds: SpinIds | undefined;
  /** The newest entry that was read, by cell. Entry ids are ordered only within a cell. */
  readonly #newest = new Map<number, bigint>();
  #rows = 0;
  readonly #players = new Map<string, PlayerChain>();
  readonly #nextIndex = new Map<number, bigint>();
  readonly #voided = new Set<string>();
  readonly #byRequest = new Map<string, Booked>();
  readonly #repeated = new Set<string>();
  /** Spins without a requestId for which no record was found yet. */
  readonly #anonymous = new Map<bigint, Booked>();

  /** Outcomes that a client has seen and that a restore removed from the ledger, as `game/index`. */
  readonly #cut = new Set<string>();

  constructor(private readonly url: string) {}

  /**
   * Reads the new rows and checks the records against all committed entries. The ledger must be at rest.
   * Afterwards it is known for every record whether its spin was dealt.
   */
  async reconcile(records: readonly SpinRecord[]): Promise<Findings> {
    const findings: Findings = { lost: [], twice: [], missing: [], other: [], unknowns: [0, 0, 0] };
    await this.#read(findings);
    for (const record of records) {
      if (record.requestId === undefined) this.#judgeAnonymous(record, findings);
      else this.#judge(record, record.requestId, findings);
    }
    this.#settleAnonymous(records, findings);
    return findings;
  }

  /**
   * Reads the restored ledger from the beginning and compares it with the answers. Records of spins that the
   * restore may remove are treated as never sent.
   * @param kept the newest entry of each cell that must have survived; undefined if all entries must survive
   */
  async restored(
    { records, touched, shown }: RestoredKnown,
    kept: ReadonlyMap<number, bigint> | undefined,
  ): Promise<Findings & { readonly cut: number }> {
    for (const known of [this.#newest, this.#players, this.#nextIndex, this.#byRequest, this.#anonymous])
      known.clear();
    for (const known of [this.#voided, this.#repeated]) known.clear();
    this.#rows = 0;
    const findings: Findings = { lost: [], twice: [], missing: [], other: [], unknowns: [0, 0, 0] };
    await this.#read(findings);
    const left = new Set(await shownOutcomes(this.url));
    for (const outcome of shown) if (!left.has(outcome)) this.#cut.add(outcome);
    let cut = 0;
    for (const record of records) {
      const { dealt } = record;
      if (dealt === undefined || this.#isBooked(record)) continue;
      const { entryId } = this.#spinIds!.decode(dealt.spinId)!;
      if (kept === undefined || entryId <= (kept.get(cellOf(entryId)) ?? 0n))
        findings.lost.push(`${nameOf(record)}: answered ${JSON.stringify(dealt)}, lost in the restore`);
      Object.assign(record, { dealt: undefined, isUnknown: false, isCounted: false, fresh: 0, replayed: 0 });
      cut++;
    }
    const judgedLater = touched.flatMap(({ requestId, dealt }) =>
      requestId === undefined && dealt !== undefined ? [this.#spinIds!.decode(dealt.spinId)!.entryId] : [],
    );
    const anonymous = new Map(this.#anonymous);
    this.#anonymous.clear();
    for (const id of judgedLater) this.#anonymous.set(id, anonymous.get(id)!);
    return { ...findings, cut };
  }

  #isBooked(record: SpinRecord): boolean {
    const { partnerId, requestId, dealt } = record;
    const booked =
      requestId === undefined
        ? this.#anonymous.get(this.#spinIds!.decode(dealt!.spinId)!.entryId)
        : this.#byRequest.get(keyOf(partnerId, requestId));
    return booked !== undefined && isFor(booked, record) && this.#isSame(booked, record);
  }

  /** Every row without a requestId and without an answer must belong to a spin in doubt. */
  #settleAnonymous(records: readonly SpinRecord[], findings: Findings): void {
    const left = new Map<string, number>();
    for (const booked of this.#anonymous.values())
      left.set(placeOf(booked), (left.get(placeOf(booked)) ?? 0) + 1);
    for (const record of records) {
      if (record.requestId !== undefined || record.dealt !== undefined || !record.isUnknown) continue;
      const rows = left.get(placeOf(record)) ?? 0;
      findings.unknowns[rows > 0 ? 1 : 0]++;
      if (rows > 0) left.set(placeOf(record), rows - 1);
    }
    for (const [place, rows] of left) {
      if (rows > 0 && !place.endsWith(`:${STRANGER}`))
        findings.other.push(`${rows} rows without requestId that nobody asked for: ${place}`);
    }
    this.#anonymous.clear();
  }

  async #read(findings: Findings): Promise<void> {
    const sql = postgres(this.url, { max: 1, onnotice: () => {}, connect_timeout: 10 });
    try {
      this.#spinIds ??= await spinIdsOf(sql);
      const [cells] = await sql<{ used: string }[]>`SELECT count(*) AS used FROM cells WHERE cursor_id > 0`;
      const isEachKnown = this.#newest.size === Number(cells!.used);
      const oldest = isEachKnown ? [...this.#newest.values()].reduce((a, b) => (a < b ? a : b), MAX_ID) : 0n;
      const candidates = await sql<LedgerRow[]>`
        SELECT entry_id, previous_id, wager_micros, credit_micros, balance_micros, outcome_index, partner_id, game_id,
               entry_number, kind, player_id, request_id
        FROM ledger WHERE entry_id > ${String(oldest)} ORDER BY entry_id`;
      const rows = candidates.filter(({ entry_id }) => {
        const id = BigInt(entry_id);
        return id > (this.#newest.get(cellOf(id)) ?? 0n);
      });
      const shares = await sql<{ event_id: string; amount_micros: string }[]>`
        SELECT event_id, amount_micros FROM communal_shares WHERE is_trigger AND event_id > ${String(oldest)}`;
      const ownShares = new Map(shares.map((row) => [row.event_id, Number(row.amount_micros)]));
      const voids = await sql<VoidRow[]>`SELECT game_id, from_index, to_index FROM voids`;
      const [counted] = await sql<{ rows: string }[]>`SELECT count(*) AS rows FROM ledger`;
      const ranges = new Map<number, [from: bigint, to: bigint][]>();
      const add = (gameId: number, from: bigint, to: bigint): void => {
        const list = ranges.get(gameId);
        if (list === undefined) ranges.set(gameId, [[from, to]]);
        else list.push([from, to]);
      };
      for (const row of rows) {
        this.#enter(row, ownShares.get(row.entry_id) ?? 0, findings);
        if (row.kind === SPIN || row.kind === ROUND_DEAL)
          add(row.game_id, BigInt(row.outcome_index), BigInt(row.outcome_index) + 1n);
      }
      for (const { game_id, from_index, to_index } of voids) {
        const name = `${game_id}:${from_index}:${to_index}`;
        if (this.#voided.has(name)) continue;
        this.#voided.add(name);
        add(game_id, BigInt(from_index), BigInt(to_index));
      }
      for (const [gameId, list] of ranges) this.#follow(gameId, list, findings);
      this.#rows += rows.length;
      if (Number(counted!.rows) !== this.#rows) {
        findings.other.push(
          `the ledger has ${counted!.rows} rows; one after the other ${this.#rows} were read`,
        );
        this.#rows = Number(counted!.rows);
      }
    } finally {
      await sql.end();
    }
  }

  /**
   * Adds a row to the entries of its player and to the maps by which it is found.
   * @param ownShareMicros the player's own share of the bonus that the spin fired; the balance of the answer
   * includes it
   */
  #enter(row: LedgerRow, ownShareMicros: number, findings: Findings): void {
    const entryId = BigInt(row.entry_id);
    this.#newest.set(cellOf(entryId), entryId);
    const player = keyOf(row.partner_id, row.player_id);
    const before = this.#players.get(player) ?? { number: 0, id: 0n, balance: 0n };
    const isSpin = row.kind === SPIN;
    const balance = before.balance - BigInt(row.wager_micros) + BigInt(row.credit_micros);
    const number = before.number + (NUMBERLESS.includes(row.kind) ? 0 : 1);
    if (
      row.entry_number !== number ||
      BigInt(row.previous_id) !== before.id ||
      BigInt(row.balance_micros) !== balance ||
      (row.kind === OPENING) !== (before.number === 0)
    ) {
      findings.other.push(
        `the chain of player ${player} breaks at entry ${row.entry_id}: number ${row.entry_number} after ` +
          `${before.number}, previous ${row.previous_id} where ${before.id} is, balance ${row.balance_micros} where ` +
          `${balance} is expected`,
      );
    }
    this.#players.set(player, { number: row.entry_number, id: entryId, balance: BigInt(row.balance_micros) });
    const outcome = `${row.game_id}/${row.outcome_index}`;
    if ((isSpin || row.kind === ROUND_DEAL) && this.#cut.has(outcome))
      findings.twice.push(
        `outcome ${outcome} was shown before a restore, and is dealt again as ${row.entry_id}`,
      );
    if (!isSpin) return;
    const booked: Booked = {
      entryId,
      partnerId: row.partner_id,
      gameId: row.game_id,
      playerId: row.player_id,
      payoutMicros: Number(row.credit_micros),
      balanceMicros: Number(row.balance_micros) + ownShareMicros,
    };
    if (row.request_id === null) {
      this.#anonymous.set(entryId, booked);
      return;
    }
    const request = keyOf(row.partner_id, row.request_id);
    const first = this.#byRequest.get(request);
    if (first === undefined) this.#byRequest.set(request, booked);
    else {
      this.#repeated.add(request);
      findings.twice.push(`requestId ${request} is booked as entry ${first.entryId} and as ${entryId}`);
    }
  }

  /** Checks that the committed and voided indices of a game form a sequence without a gap or a repetition. */
  #follow(gameId: number, ranges: [from: bigint, to: bigint][], findings: Findings): void {
    let next = this.#nextIndex.get(gameId) ?? 0n;
    for (const [from, to] of ranges.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))) {
      if (from < next)
        findings.twice.push(`game ${gameId}: indices ${from} to ${to} after ${next} was reached`);
      if (from > next) findings.missing.push(`game ${gameId}: indices ${next} to ${from}`);
      if (to > next) next = to;
    }
    this.#nextIndex.set(gameId, next);
  }

  #judge(record: SpinRecord, requestId: string, findings: Findings): void {
    const booked = this.#byRequest.get(keyOf(record.partnerId, requestId));
    if (booked !== undefined && !isFor(booked, record)) {
      findings.other.push(`entry ${booked.entryId} is of another game or player than ${nameOf(record)}`);
    }
    if (record.isUnknown && !record.isCounted) {
      record.isCounted = true;
      findings.unknowns[this.#effectsOf(record, requestId, booked)]++;
    }
    const { dealt } = record;
    if (dealt !== undefined) {
      if (booked === undefined || !this.#isSame(booked, record)) {
        findings.lost.push(`${nameOf(record)}: answered ${JSON.stringify(dealt)}, booked ${show(booked)}`);
      }
    } else if (booked !== undefined && !record.isUnknown) {
      findings.other.push(`${nameOf(record)} was refused, and booked as ${show(booked)}`);
    } else if (booked !== undefined) {
      const spinId = this.#spinIds!.encodeOne(booked.entryId, booked.partnerId);
      const { payoutMicros, balanceMicros } = booked;
      record.dealt = { spinId, payoutMicros, balanceMicros, digest: undefined, told: undefined };
    } else {
      // No request of the record is in flight any more, so it is known whether its spin was dealt.
      record.isUnknown = false;
      record.isCounted = false;
    }
  }

  /**
   * Returns how many of the unanswered requests took effect. If a retry was dealt as a new spin, none of them
   * did.
   */
  #effectsOf(record: SpinRecord, requestId: string, booked: Booked | undefined): 0 | 1 | 2 {
    if (this.#repeated.has(keyOf(record.partnerId, requestId))) return 2;
    return booked === undefined || record.fresh > 0 ? 0 : 1;
  }

  #judgeAnonymous(record: SpinRecord, findings: Findings): void {
    if (record.dealt === undefined) return;
    const meant = this.#spinIds!.decode(record.dealt.spinId);
    const booked = meant === undefined ? undefined : this.#anonymous.get(meant.entryId);
    if (booked === undefined || !isFor(booked, record) || !this.#isSame(booked, record)) {
      findings.lost.push(
        `${nameOf(record)}: answered ${JSON.stringify(record.dealt)}, booked ${show(booked)}`,
      );
      return;
    }
    this.#anonymous.delete(booked.entryId);
  }

  #isSame(booked: Booked, { dealt }: SpinRecord): boolean {
    return (
      dealt !== undefined &&
      this.#spinIds!.encodeOne(booked.entryId, booked.partnerId) === dealt.spinId &&
      booked.payoutMicros === dealt.payoutMicros &&
      booked.balanceMicros === dealt.balanceMicros
    );
  }
}

const isFor = (booked: Booked, { partnerId, gameId, playerId }: SpinRecord): boolean =>
  booked.partnerId === partnerId && booked.gameId === gameId && booked.playerId === playerId;

const show = (booked: Booked | undefined): string =>
  booked === undefined
    ? 'nothing'
    : `entry ${booked.entryId}, payout ${booked.payoutMicros}, balance ${booked.balanceMicros}`;

export async function spinIdsOf(sql: postgres.Sql): Promise<SpinIds> {
  const [row] = await sql<{ spin_id_key: Buffer }[]>`SELECT spin_id_key FROM installation`;
  return new SpinIds(row!.spin_id_key);
}

/** Returns every committed outcome of slots, raffles and blackjack tables as `game/index`. */
export async function shownOutcomes(url: string): Promise<string[]> {
  const sql = postgres(url, { max: 1, onnotice: () => {}, connect_timeout: 10 });
  try {
    const rows = await sql<{ outcome: string }[]>`
      SELECT game_id || '/' || outcome_index AS outcome FROM ledger WHERE kind IN (${SPIN}, ${ROUND_DEAL})`;
    return rows.map(({ outcome }) => outcome);
  } finally {
    await sql.end();
  }
}
