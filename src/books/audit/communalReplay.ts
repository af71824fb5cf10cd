/**
 * Replays every communal progressive from the ledger. Rules and fundings apply from their noted entry on, and
 * spins count in their order. Counters, events, winners, shares and budgets must equal the committed ones.
 * The audit has its own implementation of the rules, so that an error in domain/communal.ts or in lua/ does
 * not go unnoticed.
 */
import { dayOf } from '../../domain/days.js';
import type { CopyRow } from '../../postgres/copy.js';
import type { Facts, Snapshot } from './auditReads.store.js';
import { type BoundaryPot, DROPPED_DAYS, DROPPED_EVENTS, DROPPED_SHARES } from './boundary.store.js';
import type { CommunalFacts } from './communalAuditReads.store.js';
import { timeMsOf } from './ids.js';
import { type CheckedEntry, isDealt, type LedgerCheck } from './ledgerCheck.js';
import type { Findings, Place, Value } from './report.js';
import type { PlayerTable } from './tables.js';

const MINUTE_MS = 60_000;
const WHOLE = 10_000n;
const REMEMBERED_MAX = 201;

/**
 * Maximum balance of a player, in micro-USD, that still receives a share. A higher balance has no room for
 * the largest tier.
 */
const BALANCE_MAX = 9e15 - 1e12;
/** Maximum number of pending share notices of a player. A player with this many gets no further shares. */
const WAITING_MAX = 10_000;

type RulesFact = CommunalFacts['rules'][number];

interface Paid {
  readonly shares: bigint;
  readonly micros: bigint;
}

const NOTHING: Paid = { shares: 0n, micros: 0n };
const paidText = ({ shares, micros }: Paid): string => `${shares} shares, ${micros}`;

/** State of a pot at the current entry of the ledger. */
interface Pot {
  rules: RulesFact | undefined;
  /** Rule changes and fundings still to be applied, oldest first. */
  ahead: {
    readonly id: bigint;
    /** Version of the rules that the change puts into force; undefined for a funding. */
    readonly version?: number;
    readonly apply: (pot: Pot) => void;
  }[];
  remembers: boolean;
  progress: bigint;
  budget: bigint;
  /** Entry id of the newest spin of each player. The player who spun last comes last. */
  readonly recent: Map<string, bigint>;
  /** Shares that must follow next in the ledger, in this order. */
  due: {
    readonly eventId: bigint;
    readonly playerId: string;
    readonly micros: bigint;
    readonly isTrigger: boolean;
  }[];
}

export class CommunalReplay implements LedgerCheck {
  readonly #pots = new Map<number, Pot>();
  /** Number of pending share notices by player. */
  readonly #waiting = new Map<string, number>();
  /** Newest share that each player was notified of. */
  readonly #notifiedUpTo = new Map<string, bigint>();
  /** Paid shares by game and day. */
  readonly #days = new Map<string, Paid>();
  #spins = 0;
  #fired = 0;
  #paid = 0;

  /** @param players must have passed an entry before this check gets it */
  constructor(
    private readonly facts: Pick<Facts, 'communal' | 'boundary'>,
    private readonly findings: Findings,
    private readonly players: Pick<PlayerTable, 'find' | 'balance'>,
  ) {
    for (const rules of facts.communal.rules) {
      if (rules.inForceFrom === null) continue;
      this.#pot(rules.gameId).ahead.push({
        id: rules.inForceFrom,
        version: rules.version,
        apply: (pot) => {
          pot.rules = rules;
          if (rules.resetsProgress) pot.progress = 0n;
          if (rules.isEnabled) pot.remembers = true;
        },
      });
    }
    for (const { gameId, noteId, amountMicros, budgetMicros } of facts.communal.fundings) {
      this.#pot(gameId).ahead.push({
        id: noteId,
        apply: (pot) => {
          pot.budget += amountMicros;
          if (pot.budget === budgetMicros) return;
          const at = { game: gameId, entry: noteId.toString() };
          this.#found('the budget after a funding is wrong', at, pot.budget, budgetMicros);
        },
      });
    }
    // The sort is stable, so rules that took effect at the same entry stay in the order of their versions.
    for (const { ahead } of this.#pots.values())
      ahead.sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
  }

  /**
   * Starts at the boundary, and checks the dropped days before it: archived payouts equal the recorded
   * shares, the shares of an event sum to its payout, and budgets follow from payouts and fundings.
   */
  async begin({ droppedPots }: Pick<Snapshot, 'droppedPots'>): Promise<void> {
    const { fromId, pots } = this.facts.boundary;
    if (fromId === 0n) return;
    const paid = new Map<number, bigint>();
    await droppedPots.days((row) => {
      const gameId = row.int(DROPPED_DAYS.gameId);
      const micros = this.#droppedDay(row, gameId, row.text(DROPPED_DAYS.day));
      paid.set(gameId, (paid.get(gameId) ?? 0n) + micros);
    });
    for (const pot of pots) this.#beginPot(pot, fromId, paid.get(pot.gameId) ?? 0n);
    let events = 0;
    await droppedPots.events((row) => {
      events++;
      this.#droppedEvent(row);
    });
    this.findings.looked('communal', 'events of dropped days', events);
    await droppedPots.shares((row) => {
      const key = `${row.int(DROPPED_SHARES.partnerId)}:${row.text(DROPPED_SHARES.playerId)}`;
      const waiting = row.safe(DROPPED_SHARES.waiting);
      const notifiedTo = row.big(DROPPED_SHARES.notifiedTo);
      if (waiting > 0) this.#waiting.set(key, waiting);
      if (notifiedTo > 0n) this.#notifiedUpTo.set(key, notifiedTo);
    });
  }

  /** Returns what the game's pot paid on a dropped day, by the archive. */
  #droppedDay(row: CopyRow, gameId: number, day: string): bigint {
    const sum = (shares: number, micros: number): Paid =>
      row.isNull(shares) ? NOTHING : { shares: row.big(shares), micros: row.big(micros) };
    const archived = sum(DROPPED_DAYS.archived, DROPPED_DAYS.archivedMicros);
    const [expected, found] = [archived, sum(DROPPED_DAYS.booked, DROPPED_DAYS.bookedMicros)].map(paidText);
    if (expected !== found) {
      const problem = 'the shares of a dropped day differ from its archive';
      this.#found(problem, { game: gameId, day }, expected, found);
    }
    if (archived !== NOTHING) this.#days.set(`${gameId}/${day}`, archived);
    return archived.micros;
  }

  #beginPot(at: BoundaryPot, fromId: bigint, paid: bigint): void {
    const { rules, fundings } = this.facts.communal;
    const budget = fundings
      .filter(({ gameId, noteId }) => gameId === at.gameId && noteId < fromId)
      .reduce((sum, { amountMicros }) => sum + amountMicros, -paid);
    if (at.budgetMicros !== budget) {
      const problem = 'the budget at the start of the oldest kept day is not fundings − shares';
      this.#found(problem, { game: at.gameId }, budget, at.budgetMicros);
    }
    for (const { playerId, spinId } of at.recent) {
      if (spinId < fromId) continue;
      const problem = 'the recent players at the start of the oldest kept day include a later spin';
      this.#found(problem, { game: at.gameId, player: playerId, entry: spinId.toString() });
    }
    const pot = this.#pot(at.gameId);
    // Rules that a recovery puts into force carry the id of the newest entry of their cell. That id may lie
    // before the boundary, so rule changes are selected by version, not by id.
    pot.ahead = pot.ahead.filter(({ id, version }) =>
      version === undefined ? id >= fromId : version > at.version,
    );
    pot.rules = rules.find(({ gameId, version }) => gameId === at.gameId && version === at.version);
    pot.remembers = at.remembersPlayers;
    pot.progress = at.progress;
    pot.budget = at.budgetMicros;
    for (const { playerId, spinId } of at.recent) pot.recent.set(playerId, spinId);
    pot.due = [...at.due];
  }

  #droppedEvent(row: CopyRow): void {
    const at = { game: row.int(DROPPED_EVENTS.gameId), event: row.big(DROPPED_EVENTS.eventId).toString() };
    const progress = row.big(DROPPED_EVENTS.progress);
    const paid = row.big(DROPPED_EVENTS.paid);
    const its = this.facts.communal.rules.find(
      ({ gameId, version }) => gameId === at.game && version === row.int(DROPPED_EVENTS.version),
    );
    const tier = its?.tiers.findLast(({ triggerAtSpins }) => progress % triggerAtSpins === 0n);
    const isPaid = row.text(DROPPED_EVENTS.status) === 'PAID';
    const isOfRules =
      its?.isEnabled === true &&
      progress % its.triggerInterval === 0n &&
      tier?.level === row.int(DROPPED_EVENTS.tier) &&
      paid <= tier.amountMicros &&
      (isPaid || paid === 0n);
    if (!isOfRules) this.#found('an event of a dropped day does not follow from its rules', at);
    const expected = `${row.int(DROPPED_EVENTS.winners)} shares, ${paid}`;
    const found = `${row.big(DROPPED_EVENTS.shares)} shares, ${row.big(DROPPED_EVENTS.shared)}`;
    if (expected !== found)
      this.#found('the shares of an event of a dropped day do not sum to its payout', at, expected, found);
  }

  row(entry: CheckedEntry): void {
    if (isDealt(entry.kind)) this.#spin(entry);
    else if (entry.kind === 'communalShare') this.#share(entry);
  }

  #spin(entry: CheckedEntry): void {
    if (this.#pots.size === 0 || this.facts.communal.pots.length === 0) return;
    const { id, gameId, playerId, event } = entry;
    this.#notified(entry);
    const pot = this.#pots.get(gameId);
    if (pot === undefined) {
      if (event !== undefined) this.#notFired(gameId, id);
      return;
    }
    this.#advance(pot, id);
    if (pot.due.length > 0) {
      const { eventId, playerId: player } = pot.due[0]!;
      this.#found('a share of an event is missing in the ledger', {
        game: gameId,
        event: eventId.toString(),
        player,
      });
      pot.due = [];
    }
    const { rules } = pot;
    const isCounted = rules?.isEnabled === true;
    if (isCounted) {
      this.#spins++;
      pot.progress++;
    }
    if (isCounted && pot.progress % rules.triggerInterval === 0n) this.#fire(pot, rules, entry);
    else if (event !== undefined) this.#notFired(gameId, id);
    if (!pot.remembers) return;
    pot.recent.delete(playerId);
    pot.recent.set(playerId, id);
    if (pot.recent.size > REMEMBERED_MAX) pot.recent.delete(pot.recent.keys().next().value!);
  }

  #share(entry: CheckedEntry): void {
    this.#paid++;
    const { id, gameId, partnerId, playerId, share } = entry;
    const micros = BigInt(entry.credit);
    const key = `${gameId}/${dayOf(entry.timeMs)}`;
    const sum = this.#days.get(key) ?? NOTHING;
    this.#days.set(key, { shares: sum.shares + 1n, micros: sum.micros + micros });
    const at = { game: gameId, entry: id.toString(), partner: partnerId, player: playerId };
    const rest = [entry.wager, entry.index, entry.code];
    if (rest.some((value) => value !== 0) || entry.requestId !== undefined) {
      const problem = 'a share must not have a wager, index, outcome or requestId';
      this.#found(problem, at, '0, 0, 0', rest.join(', '));
    }
    if (share === undefined) this.#found('a share of the ledger has no share record', at);
    else {
      const wanted = [micros, gameId, playerId].join(', ');
      const booked = [share.micros, share.gameId, share.playerId].join(', ');
      if (booked !== wanted) this.#found('a share record differs from the ledger', at, wanted, booked);
    }
    const pot = this.#pots.get(gameId);
    const due = pot?.due.shift();
    if (pot === undefined || due === undefined) {
      this.#found('the ledger has a share that no event pays', at);
      return;
    }
    if (due.playerId !== playerId || due.micros !== micros) {
      const problem = 'the player or amount of a share does not follow from its event';
      this.#found(problem, at, `${due.playerId} ${due.micros}`, `${playerId} ${micros}`);
    }
    if (share !== undefined && share.eventId !== due.eventId)
      this.#found('a share record names the wrong event', at, due.eventId, share.eventId);
    pot.budget -= micros;
    if (due.isTrigger) return;
    const player = `${partnerId}:${playerId}`;
    this.#waiting.set(player, (this.#waiting.get(player) ?? 0) + 1);
  }

  end(): void {
    this.#compareDays();
    for (const [gameId, pot] of this.#pots) {
      this.#advance(pot, 2n ** 63n);
      const booked = this.facts.communal.pots.find((each) => each.gameId === gameId);
      const at = { game: gameId };
      for (const { eventId, playerId } of pot.due) {
        this.#found('a share of an event is missing in the ledger', {
          ...at,
          event: eventId.toString(),
          player: playerId,
        });
      }
      if (booked === undefined) this.#found('a pot is not committed', at);
      else {
        if (booked.progress !== pot.progress)
          this.#found(
            'the counter differs from the number of counted spins',
            at,
            pot.progress,
            booked.progress,
          );
        if (booked.budgetMicros !== pot.budget)
          this.#found('the budget is not fundings − shares', at, pot.budget, booked.budgetMicros);
        if (booked.version !== pot.rules?.version)
          this.#found(
            'the committed version of the rules in force is wrong',
            at,
            pot.rules?.version,
            booked.version,
          );
      }
    }
    const findings = this.findings;
    findings.looked('communal', 'pots', this.#pots.size);
    findings.looked('communal', 'spins counted', this.#spins);
    findings.looked('communal', 'events', this.#fired);
    findings.looked('communal', 'shares', this.#paid);
  }

  #compareDays(): void {
    const booked = new Map(
      this.facts.communal.days.map(({ gameId, day, shares, paidMicros: micros }) => [
        `${gameId}/${day}`,
        paidText({ shares, micros }),
      ]),
    );
    for (const key of new Set([...booked.keys(), ...this.#days.keys()])) {
      const expected = paidText(this.#days.get(key) ?? NOTHING);
      const found = booked.get(key) ?? 'no row';
      const at = { game: Number(key.split('/')[0]), day: key.split('/')[1]! };
      if (found !== expected)
        this.#found('communal_days differs from the sum of the ledger', at, expected, found);
    }
  }

  #pot(gameId: number): Pot {
    let pot = this.#pots.get(gameId);
    if (pot === undefined) {
      pot = {
        rules: undefined,
        ahead: [],
        remembers: false,
        progress: 0n,
        budget: 0n,
        recent: new Map(),
        due: [],
      };
      this.#pots.set(gameId, pot);
    }
    return pot;
  }

  #advance(pot: Pot, id: bigint): void {
    while (pot.ahead.length > 0 && pot.ahead[0]!.id < id) pot.ahead.shift()!.apply(pot);
  }

  #notFired(gameId: number, id: bigint): void {
    this.#found('an event is on record for a spin that did not trigger it', {
      game: gameId,
      event: id.toString(),
    });
  }

  /**
   * Verifies the share that a spin notified its player of. The share must belong to the player, lie before
   * the spin, and be the oldest pending one.
   */
  #notified({ told, id, partnerId, playerId }: CheckedEntry): void {
    if (told === undefined) return;
    const { shareId, isTrigger } = told;
    const at = { entry: shareId.toString(), notified: id.toString(), partner: partnerId, player: playerId };
    const isOwn = told.partnerId === partnerId && told.playerId === playerId;
    const isLater = isTrigger ? told.eventId === id : shareId < id;
    if (!isOwn || !isLater) this.#found('a share was not notified by a later spin of its player', at);
    if (isTrigger) return;
    const key = `${partnerId}:${playerId}`;
    if ((this.#notifiedUpTo.get(key) ?? 0n) >= shareId)
      this.#found('a share was notified before an older one', at);
    this.#notifiedUpTo.set(key, shareId);
    const left = (this.#waiting.get(key) ?? 0) - 1;
    if (left > 0) this.#waiting.set(key, left);
    else this.#waiting.delete(key);
  }

  #fire(pot: Pot, rules: RulesFact, entry: CheckedEntry): void {
    const { id, gameId, event } = entry;
    const tier = rules.tiers.findLast(({ triggerAtSpins }) => pot.progress % triggerAtSpins === 0n);
    const at = { game: gameId, event: id.toString(), progress: Number(pot.progress) };
    if (tier === undefined) {
      if (event !== undefined) this.#found('an event is on record although no tier fires', at);
      return;
    }
    this.#fired++;
    let amount = tier.amountMicros;
    let isPaid = true;
    if (pot.budget < amount) {
      isPaid = rules.paysRemaining && pot.budget > 0n;
      amount = isPaid ? pot.budget : 0n;
    }
    if (isPaid) pot.due = this.#sharesOf(pot, rules, entry, amount);
    const paid = pot.due.reduce((sum, { micros }) => sum + micros, 0n);
    const status = isPaid ? 'PAID' : 'SKIPPED_BUDGET';
    const { version } = rules;
    const winners = pot.due.length;
    const expected = [gameId, version, pot.progress, tier.level, paid, winners, status].join(', ');
    const found = event === undefined ? 'none' : Object.values(event).join(', ');
    if (found !== expected)
      this.#found('an event differs from the event that follows from the ledger', at, expected, found);
  }

  /**
   * Returns the shares of an event in ledger order: the triggering player first, then the community, most
   * recent player first.
   */
  #sharesOf(
    pot: Pot,
    rules: RulesFact,
    { id, timeMs, partnerId, playerId }: CheckedEntry,
    amount: bigint,
  ): Pot['due'] {
    const oldestMs = timeMs - rules.windowMinutes * MINUTE_MS;
    const { balance } = this.players;
    const hasRoom = (player: string): boolean => {
      const slot = this.players.find(partnerId, player);
      return slot !== undefined && balance[slot]! <= BALANCE_MAX;
    };
    const community = [...pot.recent]
      .reverse()
      .filter(([player, spin]) => player !== playerId && timeMsOf(spin) >= oldestMs)
      .slice(0, rules.communitySize)
      .map(([player]) => player)
      .filter(
        (player) => hasRoom(player) && (this.#waiting.get(`${partnerId}:${player}`) ?? 0) < WAITING_MAX,
      );
    let part = (amount * rules.triggerSplit) / WHOLE;
    const rest = amount - part;
    const count = BigInt(community.length);
    if (count === 0n && !rules.returnsToBudget) part = amount;
    if (!hasRoom(playerId)) part = 0n;
    const shares = community.map((player, i) => ({
      eventId: id,
      playerId: player,
      micros: rest / count + (BigInt(i) < rest % count ? 1n : 0n),
      isTrigger: false,
    }));
    return [{ eventId: id, playerId, micros: part, isTrigger: true }, ...shares].filter(
      ({ micros }) => micros > 0n,
    );
  }

  #found(problem: string, at: Place, expected?: Value, found?: Value): void {
    this.findings.found('communal', problem, at, expected, found);
  }
}
