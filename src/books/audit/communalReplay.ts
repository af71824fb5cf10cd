/**
 * Replays every communal progressive from the ledger. Rules and fundings apply from their noted entry on, and
 * spins count in their order. Counters, events, winners, shares and budgets must equal the committed ones.
 * The audit has its own implementation of the rules, so that an error in domain/communal.ts or in lua/ does
 * not go unnoticed.
 */

import type { CopyRow } from '../../postgres/copy.js';
import { LEDGER } from './auditColumns.js';
import type { CommunalFacts } from './communalAuditReads.store.js';
import type { BoundaryPot } from './communalBoundary.store.js';
import type { Findings, Place } from './report.js';
import { idOf, type PlayerTable } from './tables.js';

const MINUTE_MS = 60_000n;
/** Number of bits below the timestamp in an entry id. */
const TIME_SHIFT = 22n;
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

export class CommunalReplay {
  readonly #pots = new Map<number, Pot>();
  /** Number of pending share notices by player. */
  readonly #waiting = new Map<string, number>();
  /** Newest share that each player was notified of. */
  readonly #notifiedUpTo = new Map<string, bigint>();
  /** Paid shares by game and day. */
  readonly #days = new Map<string, { readonly shares: bigint; readonly micros: bigint }>();
  #spins = 0;
  #fired = 0;
  #paid = 0;

  /** @param players state of the players at the entry being replayed */
  constructor(
    private readonly facts: CommunalFacts,
    private readonly findings: Findings,
    private readonly players: PlayerTable,
  ) {
    for (const rules of facts.rules) {
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
    for (const { gameId, noteId, amountMicros, budgetMicros } of facts.fundings) {
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
   * Initializes a pot at the boundary, where the oldest kept day begins.
   * @param fromId first entry id of the kept ledger
   */
  begin(at: BoundaryPot, fromId: bigint): void {
    const pot = this.#pot(at.gameId);
    // Rules that a recovery puts into force carry the id of the newest entry of their cell. That id may lie
    // before the boundary, so rule changes are selected by version, not by id.
    pot.ahead = pot.ahead.filter(({ id, version }) =>
      version === undefined ? id >= fromId : version > at.version,
    );
    pot.rules = this.facts.rules.find(
      ({ gameId, version }) => gameId === at.gameId && version === at.version,
    );
    pot.remembers = at.remembersPlayers;
    pot.progress = at.progress;
    pot.budget = at.budgetMicros;
    for (const { playerId, spinId } of at.recent) pot.recent.set(playerId, spinId);
    pot.due = [...at.due];
  }

  /**
   * Initializes the share notices of a player.
   * @param waiting number of pending notices
   * @param notifiedTo newest share already notified; 0 if none
   */
  beginPlayer(partnerId: number, playerId: string, waiting: number, notifiedTo: bigint): void {
    const key = `${partnerId}:${playerId}`;
    if (waiting > 0) this.#waiting.set(key, waiting);
    if (notifiedTo > 0n) this.#notifiedUpTo.set(key, notifiedTo);
  }

  /** Adds the payout of a game's pot on a dropped day. */
  droppedDay(gameId: number, day: string, shares: bigint, micros: bigint): void {
    this.#days.set(`${gameId}/${day}`, { shares, micros });
  }

  spin(row: CopyRow, high: number, low: number, playerId: string): void {
    if (this.#pots.size === 0) return;
    const id = idOf(high, low);
    if (this.facts.pots.length === 0) return;
    const gameId = row.int(LEDGER.gameId);
    this.#notified(row, id, playerId);
    const pot = this.#pots.get(gameId);
    if (pot === undefined) {
      if (!row.isNull(LEDGER.eventGame)) this.#notFired(gameId, id);
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
    if (isCounted && pot.progress % rules.triggerInterval === 0n) this.#fire(pot, rules, row, id, playerId);
    else if (!row.isNull(LEDGER.eventGame)) this.#notFired(gameId, id);
    if (!pot.remembers) return;
    pot.recent.delete(playerId);
    pot.recent.set(playerId, id);
    if (pot.recent.size > REMEMBERED_MAX) pot.recent.delete(pot.recent.keys().next().value!);
  }

  share(row: CopyRow, id: bigint, ms: number, playerId: string): void {
    this.#paid++;
    const gameId = row.int(LEDGER.gameId);
    const partnerId = row.int(LEDGER.partnerId);
    const micros = row.big(LEDGER.creditMicros);
    this.#sum(gameId, new Date(ms).toISOString().slice(0, 10), micros);
    const at = { game: gameId, entry: id.toString(), partner: partnerId, player: playerId };
    const rest = [row.safe(LEDGER.wagerMicros), row.safe(LEDGER.outcomeIndex), row.int(LEDGER.outcomeCode)];
    if (rest.some((value) => value !== 0) || !row.isNull(LEDGER.requestId)) {
      this.#found(
        'a share must not have a wager, index, outcome or requestId',
        at,
        '0, 0, 0',
        rest.join(', '),
      );
    }
    const isBooked = this.facts.pots.length > 0 && !row.isNull(LEDGER.shareEvent);
    if (!isBooked) {
      this.#found('a share of the ledger has no share record', at);
    } else {
      const wanted = [micros, gameId, playerId].join(', ');
      const booked = [row.big(LEDGER.shareAmount), row.int(LEDGER.shareGame), row.text(LEDGER.sharePlayer)];
      if (booked.join(', ') !== wanted)
        this.#found('a share record differs from the ledger', at, wanted, booked.join(', '));
    }
    const pot = this.#pots.get(gameId);
    const due = pot?.due.shift();
    if (pot === undefined || due === undefined) {
      this.#found('the ledger has a share that no event pays', at);
      return;
    }
    if (due.playerId !== playerId || due.micros !== micros) {
      this.#found(
        'the player or amount of a share does not follow from its event',
        at,
        `${due.playerId} ${due.micros}`,
        `${playerId} ${micros}`,
      );
    }
    if (isBooked && row.big(LEDGER.shareEvent) !== due.eventId) {
      this.#found('a share record names the wrong event', at, due.eventId, row.big(LEDGER.shareEvent));
    }
    pot.budget -= micros;
    if (due.isTrigger) return;
    const player = `${partnerId}:${playerId}`;
    this.#waiting.set(player, (this.#waiting.get(player) ?? 0) + 1);
  }

  finish(): void {
    this.#compareDays();
    for (const [gameId, pot] of this.#pots) {
      this.#advance(pot, 2n ** 63n);
      const booked = this.facts.pots.find((each) => each.gameId === gameId);
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

  #sum(gameId: number, day: string, micros: bigint): void {
    const sum = this.#days.get(`${gameId}/${day}`) ?? { shares: 0n, micros: 0n };
    this.#days.set(`${gameId}/${day}`, { shares: sum.shares + 1n, micros: sum.micros + micros });
  }

  #compareDays(): void {
    const booked = new Map(
      this.facts.days.map(({ gameId, day, shares, paidMicros }) => [
        `${gameId}/${day}`,
        `${shares} shares, ${paidMicros}`,
      ]),
    );
    for (const key of new Set([...booked.keys(), ...this.#days.keys()])) {
      const sum = this.#days.get(key) ?? { shares: 0n, micros: 0n };
      const expected = `${sum.shares} shares, ${sum.micros}`;
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
  #notified(row: CopyRow, id: bigint, playerId: string): void {
    if (row.isNull(LEDGER.toldShare)) return;
    const partnerId = row.int(LEDGER.partnerId);
    const shareId = row.big(LEDGER.toldShare);
    const isTrigger = row.int(LEDGER.toldTrigger) === 1;
    const at = { entry: shareId.toString(), notified: id.toString(), partner: partnerId, player: playerId };
    const isOwn = row.int(LEDGER.toldPartner) === partnerId && row.text(LEDGER.toldPlayer) === playerId;
    const isLater = isTrigger ? row.big(LEDGER.toldEvent) === id : shareId < id;
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

  #fire(pot: Pot, rules: RulesFact, row: CopyRow, id: bigint, playerId: string): void {
    const tier = rules.tiers.findLast(({ triggerAtSpins }) => pot.progress % triggerAtSpins === 0n);
    const gameId = row.int(LEDGER.gameId);
    const isBooked = !row.isNull(LEDGER.eventGame);
    const at = { game: gameId, event: id.toString(), progress: Number(pot.progress) };
    if (tier === undefined) {
      if (isBooked) this.#found('an event is on record although no tier fires', at);
      return;
    }
    this.#fired++;
    let amount = tier.amountMicros;
    let isPaid = true;
    if (pot.budget < amount) {
      isPaid = rules.paysRemaining && pot.budget > 0n;
      amount = isPaid ? pot.budget : 0n;
    }
    if (isPaid)
      pot.due = this.#sharesOf(pot, rules, { id, partnerId: row.int(LEDGER.partnerId), playerId }, amount);
    const paid = pot.due.reduce((sum, { micros }) => sum + micros, 0n);
    const status = isPaid ? 'PAID' : 'SKIPPED_BUDGET';
    const expected = [gameId, rules.version, pot.progress, tier.level, paid, pot.due.length, status].join(
      ', ',
    );
    const found = isBooked
      ? [
          row.int(LEDGER.eventGame),
          row.int(LEDGER.eventVersion),
          row.big(LEDGER.eventProgress),
          row.int(LEDGER.eventTier),
          row.big(LEDGER.eventPaid),
          row.int(LEDGER.eventWinners),
          row.text(LEDGER.eventStatus),
        ].join(', ')
      : 'none';
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
    { id, partnerId, playerId }: { id: bigint; partnerId: number; playerId: string },
    amount: bigint,
  ): Pot['due'] {
    const oldestMs = (id >> TIME_SHIFT) - BigInt(rules.windowMinutes) * MINUTE_MS;
    const { balance } = this.players;
    const hasRoom = (player: string): boolean => {
      const slot = this.players.find(partnerId, player);
      return slot !== undefined && balance[slot]! <= BALANCE_MAX;
    };
    const community = [...pot.recent]
      .reverse()
      .filter(([player, spin]) => player !== playerId && spin >> TIME_SHIFT >= oldestMs)
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

  #found(
    problem: string,
    at: Place,
    expected?: bigint | number | string,
    found?: bigint | number | string,
  ): void {
    this.findings.found('communal', problem, at, expected, found);
  }
}
