/**
 * The reference model: it derives the permitted responses to a partner's requests from the earlier responses.
 * It follows the rules of docs/contract.md, has no input or output, and uses no code of the service.
 *
 * Facts that can't be known from outside are represented by a set of possible states. A spin whose connection
 * was cut may have been dealt or not, with any payout of its sheet, at once or later. After each response,
 * only the states that explain it remain. If no state remains, the service is wrong. Requests that were in
 * progress together must be explained by some order of them.
 */
import { isDeepStrictEqual } from 'node:util';
import { type Changing, Violation, type WindowKind, type WindowSeen, Windows } from './changing.js';
import { fitsChoice, judgeChoice } from './choices.js';
import { type BonusRules, judgeNotice } from './communal.js';
import { amount, at, decimal, isSame, type Json, usd } from './decimal.js';
import {
  type Answer,
  type AuthFailures,
  CLOCK_SLACK_S,
  describe,
  type Exchange,
  fail,
  isReplayed,
  judgeError,
  type Key,
  outcomeOf,
  parsed,
  type SpinRequest,
  touchesState,
  windowKindOf,
  windowOf,
} from './exchange.js';
import { historyFault, withoutHistory } from './history.js';
import {
  type Bound,
  balanceWith,
  choiceOf,
  dealt,
  denialsOf,
  type ExpectedRow,
  type Game,
  judgeGames,
  type Lost,
  lostText,
  NO_STATE,
  ones,
  refusals,
  type Settings,
  type SpinRecord,
  type State,
  union,
} from './state.js';

/** Time in ms after which a waiting request may get the error for a timeout of a store. */
const PATIENCE_MS = 2000;
const STATES_MAX = 20_000;

/**
 * An exchange that passed the checks of its rate limit window, with the settings that may have been in force.
 */
interface Served {
  readonly exchange: Exchange;
  readonly answer: Answer;
  readonly settings: readonly Settings[];
  /** The spin in a response 200 to POST /spin. */
  readonly record: SpinRecord | undefined;
  /** True if the effect of the request is unknown. */
  readonly isUnheard?: true;
}

/**
 * Result of applying a response to one state: the following states, or a text that names the expected
 * response.
 */
type Failpoint = readonly State[] | string;

export class PartnerModel {
  readonly keys: Key[] = [];
  readonly games: Game[] = [];
  readonly #windows = { spin: new Windows('spin'), API: new Windows('API') };
  readonly #records = new Map<string, SpinRecord>();
  readonly #lost: Lost[] = [];
  /** Fields of a player that never change: userId and createdAt. */
  readonly #faces = new Map<string, string>();
  #states: State[] = [NO_STATE];

  /** @param clock converts a time of performance.now() to seconds since the epoch by the store's clock */
  constructor(
    readonly partnerId: number,
    readonly isSandbox: boolean,
    readonly settings: Changing<Settings>,
    readonly clock: (time: number) => number,
    readonly auth: AuthFailures,
  ) {}

  setPot(gameId: number, rules: BonusRules, budget: bigint): void {
    const pot = { rules, progress: 0, budget, recent: [] };
    this.#states = this.#states.map((state) => ({ ...state, pots: new Map(state.pots).set(gameId, pot) }));
  }

  /** Ids of the known spins, oldest first. */
  get spinIds(): string[] {
    return [...this.#records.keys()];
  }

  /** Players that have spun in at least one state. */
  get players(): string[] {
    return [...new Set(this.#states.flatMap((state) => [...state.players.keys()]))];
  }

  /** Possible states, including those in which lost spins were dealt meanwhile. */
  get states(): readonly State[] {
    return this.#landed(this.#states);
  }

  /** Number of lost spins of which it is unknown whether they were dealt, or with which outcome. */
  get undecided(): number {
    return this.#lost.filter((_, place) => !this.#isDecided(place)).length;
  }

  /** Lost spins with an unknown result that can be retried because they have a requestId. */
  get unresolved(): SpinRequest[] {
    return this.#lost
      .filter(({ request }, place) => request.requestId !== undefined && !this.#isDecided(place))
      .map(({ request }) => request);
  }

  /**
   * Accepts exchanges that were in progress together and may have taken effect in any order.
   * @throws Violation if nothing explains the responses
   */
  take(exchanges: readonly Exchange[]): void {
    // A lost spin may have been dealt before any of the other requests.
    for (const exchange of exchanges) if (exchange.answer === undefined) this.#lose(exchange);
    // All responses are checked against what the model knew before them. What they reveal is applied
    // afterwards.
    const learnt: (() => void)[] = [];
    const seen: Record<WindowKind, WindowSeen[]> = { spin: [], API: [] };
    const served: Served[] = [];
    for (const exchange of exchanges) {
      const { answer } = exchange;
      if (answer === undefined) continue;
      if (answer.status >= 400) judgeError(exchange, answer);
      if (this.#isUnheard(exchange, answer, exchanges)) {
        if (exchange.request.kind === 'choose')
          served.push({ exchange, answer, settings: [], record: undefined, isUnheard: true });
        continue;
      }
      if (!this.#authenticates(exchange, answer, learnt)) continue;
      const counted = this.#count(exchange, answer, seen, learnt);
      if (counted !== undefined) served.push(counted);
    }
    this.#windows.spin.take(seen.spin);
    this.#windows.API.take(seen.API);
    for (const each of served) if (each.isUnheard !== true) this.#judgeAlone(each, learnt);
    this.#states = this.#explain(served.filter((each) => touchesState(each.exchange.request)));
    for (const learn of learnt) learn();
  }

  // Lost spins --------------------------------------------------------------------------------------------

  #lose({ request, sentAt, isPartial }: Exchange): void {
    if (isPartial || request.kind !== 'spin') return;
    this.#windows.spin.addStray();
    this.#lost.push({ request, sentAt });
  }

  #isDecided(place: number): boolean {
    const { requestId } = this.#lost[place]!.request;
    return this.#states.every((state) => {
      const deal = state.lostDeals.get(place);
      if (deal !== undefined) return deal.spinId !== undefined;
      return requestId !== undefined && state.bound.has(requestId);
    });
  }

  /**
   * Accepts responses that leave the effect of the request open: responses that ask for a retry, and
   * responses without a store.
   */
  #isUnheard(exchange: Exchange, answer: Answer, together: readonly Exchange[]): boolean {
    const { request, sentAt, receivedAt } = exchange;
    const isTroubled = exchange.isTroubled || receivedAt - sentAt > PATIENCE_MS;
    const outcome = outcomeOf(answer);
    if (request.kind === 'spin') {
      const { requestId } = request;
      const isTwin = (other: Exchange | Lost): boolean =>
        other !== exchange && other.request.kind === 'spin' && other.request.requestId === requestId;
      if (outcome === '409 KS-4110' && requestId !== undefined && [...together, ...this.#lost].some(isTwin)) {
        // An earlier request with the same id is still in progress. This request may already count towards
        // the rate limit.
        this.#windows.spin.addStray();
        return true;
      }
      if (!isTroubled) return false;
      if (outcome === (requestId === undefined ? '503 KS-5002' : '409 KS-4110')) {
        this.#lose(exchange);
        return true;
      }
      // A response with one of these codes states that nothing happened.
      if (outcome !== '503 KS-5002' && outcome !== '500 KS-5004') return false;
    } else if (!isTroubled || answer.status < 500) return false;
    this.#windows[windowKindOf(request)].addStray();
    return true;
  }

  /** Returns the states together with those in which further lost spins were dealt. */
  #landed(states: readonly State[]): State[] {
    if (this.#lost.length === 0) return [...states];
    const all = [...states];
    let newest: readonly State[] = states;
    while (newest.length > 0) {
      newest = union(newest.flatMap((state) => this.#lost.flatMap((_, place) => this.#land(state, place))));
      all.push(...newest);
      if (all.length > STATES_MAX)
        throw new Error('Too many spins are unknown at once for the model to follow');
    }
    return union(all);
  }

  #land(state: State, place: number): State[] {
    const { request, sentAt } = this.#lost[place]!;
    if (state.lostDeals.has(place)) return [];
    if (request.requestId !== undefined && state.bound.has(request.requestId)) return [];
    const game = this.#game(request.gameId);
    if (game === undefined || !isSame(decimal(request.wager), game.sheet.denomination)) return [];
    if (game.isSuspended.since(sentAt).every((isSuspended) => isSuspended)) return [];
    const openings = new Set<bigint>();
    for (const settings of this.settings.since(sentAt)) {
      if (settings.isActive && refusals(state, settings, game, request.playerId).length === 0) {
        openings.add(settings.opening);
      }
    }
    // The opening balance affects only the first spin of a player.
    const distinct = state.players.has(request.playerId) ? [...openings].slice(0, 1) : [...openings];
    const choice = choiceOf(state, request.gameId, request.playerId);
    return distinct.flatMap((opening) =>
      (choice === undefined ? game.sheet.payouts : [choice.payout]).map((payout) => {
        const next = dealt(state, place, request, game.sheet.wager, payout, opening);
        const { balance } = next.players.get(request.playerId)!;
        return { ...next, lostDeals: new Map(state.lostDeals).set(place, { payout, after: balance }) };
      }),
    );
  }

  // Checks of a single response -----------------------------------------------------------------------------

  /** Returns whether the key was accepted. */
  #authenticates(exchange: Exchange, answer: Answer, learnt: (() => void)[]): boolean {
    const { key, front, sentAt } = exchange;
    const revoked = key.isRevoked.possible(front, sentAt);
    const settings = this.settings.possible(front, sentAt);
    const allowed = [
      ...(revoked.includes(true) ? ['401 KS-4003'] : []),
      ...(settings.some((each) => !each.isActive) ? ['401 KS-4005'] : []),
    ];
    const outcome = outcomeOf(answer);
    if (outcome.startsWith('401') || outcome === '429 KS-4293') {
      this.auth.take(exchange, answer, allowed, this.clock);
      if (outcome === '401 KS-4003') learnt.push(() => key.isRevoked.showed(front, sentAt, [true]));
      if (outcome === '401 KS-4005') {
        const inactive = settings.filter((each) => !each.isActive);
        learnt.push(() => this.settings.showed(front, sentAt, inactive));
      }
      return false;
    }
    if (!revoked.includes(false)) fail(exchange, 'The key is revoked: expected 401 KS-4003');
    if (!settings.some((each) => each.isActive))
      fail(exchange, 'The partner is deactivated: expected 401 KS-4005');
    return true;
  }

  /**
   * Reads the rate limit window of a response. Undefined if the request was refused before it was counted.
   */
  #count(
    exchange: Exchange,
    answer: Answer,
    seen: Record<WindowKind, WindowSeen[]>,
    learnt: (() => void)[],
  ): Served | undefined {
    const { request, front, sentAt, receivedAt } = exchange;
    const kind = windowKindOf(request);
    const possible = this.settings.possible(front, sentAt).filter((each) => each.isActive);
    // Nobody knows the window of a request that was perhaps not counted.
    const isUncounted = ['503 KS-5002', '409 KS-4110'].includes(outcomeOf(answer));
    if (isUncounted && !answer.headers.has('x-ratelimit-limit'))
      return { exchange, answer, settings: possible, record: undefined };
    const window = windowOf(answer, this.clock(sentAt), this.clock(receivedAt));
    if (typeof window === 'string') fail(exchange, window);
    const limitOf = (each: Settings) => (kind === 'spin' ? each.spinRateLimit : each.apiRateLimit);
    const settings = possible.filter((each) => limitOf(each) === window.limit);
    if (settings.length === 0) fail(exchange, `The limit should be ${possible.map(limitOf).join(' or ')}`);
    learnt.push(() => this.settings.showed(front, sentAt, settings));
    const isLimited = outcomeOf(answer) === (kind === 'spin' ? '429 KS-4291' : '429 KS-4292');
    seen[kind].push({ ...window, isLimited });
    if (isLimited) return undefined;
    const isSpun = request.kind === 'spin' && answer.status === 200;
    return {
      exchange,
      answer,
      settings,
      record: isSpun ? this.#recordOf(exchange, request, answer) : undefined,
    };
  }

  #game(gameId: number): Game | undefined {
    return this.games.find((game) => game.gameId === gameId);
  }

  /**
   * Returns the spin of a response 200. The spin must fit its sheet, repeat the fields of its request, and
   * agree with earlier responses.
   */
  #recordOf(exchange: Exchange, request: SpinRequest, answer: Answer): SpinRecord {
    const isReplay = isReplayed(answer);
    const json = parsed(answer.text);
    const game = this.#game(request.gameId);
    if (game === undefined) fail(exchange, 'The game is not of this partner');
    const record = this.#learn(exchange, json, game, request);
    if (record.text !== undefined && record.text !== answer.text) {
      fail(exchange, `Its bytes were ${record.text}`);
    }
    if (!isReplay && record.during !== undefined)
      fail(exchange, 'The same spin was answered as fresh before');
    record.text = answer.text;
    if (!isReplay) record.during = { sentAt: exchange.sentAt, receivedAt: exchange.receivedAt };
    return record;
  }

  #learn(
    exchange: Exchange,
    json: Json | undefined,
    game: Game,
    { playerId, requestId }: Pick<SpinRequest, 'playerId' | 'requestId'>,
  ): SpinRecord {
    const spinId = at(json, 'spinId');
    if (json === undefined || typeof spinId !== 'string') fail(exchange, 'There is no spinId');
    const payout = game.sheet.judge(json, game.strip);
    if (typeof payout === 'string') fail(exchange, payout);
    const after = amount(at(json, 'balance', 'balanceUsd'));
    if (after === undefined) fail(exchange, 'The balance is no amount');
    if (at(json, 'requestId') !== requestId) fail(exchange, `The requestId should be ${requestId}`);
    const known = this.#records.get(spinId);
    if (known === undefined) {
      const record = { spinId, gameId: game.gameId, playerId, requestId, payout, after, json };
      this.#records.set(spinId, record);
      return record;
    }
    const isKnown = known.gameId === game.gameId && known.playerId === playerId;
    if (!isKnown || !isDeepStrictEqual(known.json, json)) {
      fail(exchange, `Spin ${spinId} was ${JSON.stringify(known.json)}`);
    }
    return known;
  }

  #judgeAlone({ exchange, answer }: Served, learnt: (() => void)[]): void {
    const { request, front, sentAt } = exchange;
    const outcome = outcomeOf(answer);
    switch (request.kind) {
      case 'spin': {
        const status = this.#game(request.gameId)?.isSuspended;
        if (outcome === '400 KS-4202') learnt.push(() => status?.showed(front, sentAt, [true]));
        else if (isReplayed(answer) || outcome === '409 KS-4111') return;
        else learnt.push(() => status?.showed(front, sentAt, [false]));
        return;
      }
      case 'fixed':
        if (!request.allowed.includes(outcome)) fail(exchange, `Expected ${request.allowed.join(' or ')}`);
        return;
      case 'lookup': {
        const record = this.#records.get(request.spinId);
        if (record === undefined) {
          if (outcome !== '404 KS-4215') fail(exchange, 'Expected 404 KS-4215');
          return;
        }
        if (outcome !== '200') fail(exchange, 'Expected 200');
        const json = parsed(answer.text);
        this.#judgeCopy(exchange, json, record);
        if (at(json, 'playerId') !== record.playerId)
          fail(exchange, `The player should be ${record.playerId}`);
        return;
      }
      case 'games': {
        if (outcome !== '200') fail(exchange, 'Expected 200');
        judgeGames(exchange, answer, this.games);
        return;
      }
      default:
        return;
    }
  }

  /**
   * Checks a spin in the response to a GET: it must be the spin that the player got, with its time and game.
   */
  #judgeCopy(exchange: Exchange, json: Json | undefined, record: SpinRecord): void {
    const createdAt = at(json, 'createdAt');
    const fault = historyFault(json, this.#game(record.gameId)!.sheet.wager, record);
    if (fault !== undefined) fail(exchange, `Spin ${record.spinId}: ${fault}`);
    if (typeof createdAt !== 'string' || Number.isNaN(Date.parse(createdAt))) fail(exchange, 'No createdAt');
    if (createdAt !== (record.createdAt ?? createdAt)) fail(exchange, `It was made at ${record.createdAt}`);
    record.createdAt = createdAt;
    if (record.during === undefined) return;
    const seconds = Date.parse(createdAt) / 1000;
    const { sentAt, receivedAt } = record.during;
    if (seconds < this.clock(sentAt) - CLOCK_SLACK_S || seconds > this.clock(receivedAt) + CLOCK_SLACK_S) {
      fail(exchange, `Spin ${record.spinId} was not made at ${createdAt}`);
    }
  }

  // Checks over all orders of concurrent requests ---------------------------------------------------------

  /** Returns the possible states after all of these exchanges, in any of their orders. */
  #explain(served: readonly Served[]): State[] {
    const whole = (1 << served.length) - 1;
    const reached: (State[] | undefined)[] = [this.#states];
    let furthest = 0;
    let reasons: string[] = [];
    for (let done = 0; done < whole; done++) {
      if (reached[done] === undefined) continue;
      const states = this.#landed(reached[done]!);
      const expected: string[] = [];
      for (const [place, each] of served.entries()) {
        if ((done & (1 << place)) !== 0) continue;
        const wanted = new Set<string>();
        const after: State[] = [];
        for (const state of states) {
          const step = this.#step(state, each);
          if (typeof step === 'string') wanted.add(step);
          else after.push(...step);
        }
        if (after.length === 0)
          expected.push(`${describe(each.exchange)}\n    expected ${[...wanted].slice(0, 5).join(', or ')}`);
        else reached[done | (1 << place)] = union([...(reached[done | (1 << place)] ?? []), ...after]);
      }
      if (ones(done) >= furthest && expected.length === served.length - ones(done)) {
        furthest = ones(done);
        reasons = expected;
      }
    }
    const left = reached[whole];
    if (left !== undefined) return left;
    const order = served.length > 1 ? ` in any order (${furthest} of ${served.length} can be)` : '';
    throw new Violation(`Can't be explained${order}:\n  ${reasons.join('\n  ')}`);
  }

  #step(state: State, served: Served): Failpoint {
    const { request } = served.exchange;
    switch (request.kind) {
      case 'spin':
        return this.#spin(state, request, served);
      case 'choose': {
        const game = this.#game(request.gameId);
        return judgeChoice(state, request, game, this.isSandbox, served.answer, served.isUnheard === true);
      }
      case 'player':
        return this.#player(state, request.playerId, served);
      case 'page':
        return this.#page(state, request.playerId, request.page, request.limit, served);
      default:
        return [state];
    }
  }

  #spin(state: State, request: SpinRequest, { exchange, answer, settings, record }: Served): Failpoint {
    const outcome = outcomeOf(answer);
    const bound = request.requestId === undefined ? undefined : state.bound.get(request.requestId);
    if (bound !== undefined) return this.#replay(state, request, bound, answer, record);

    const game = this.#game(request.gameId);
    const states: State[] = [];
    const expected = new Set<string>();
    const isFresh = outcome === '200' && !isReplayed(answer);
    for (const each of settings) {
      for (const isSuspended of game?.isSuspended.possible(exchange.front, exchange.sentAt) ?? [false]) {
        const denials = denialsOf(state, each, game, isSuspended, request);
        if (denials.includes(outcome)) states.push(state);
        if (denials.length > 0) {
          for (const denial of denials) expected.add(denial);
          continue;
        }
        const before = state.players.get(request.playerId)?.balance ?? each.opening;
        const choice = choiceOf(state, request.gameId, request.playerId);
        const what = choice === undefined ? 'drawn' : `forced to «${choice.text}»`;
        expected.add(`200, fresh, ${what}, from a balance of ${usd(before)}`);
        if (!isFresh || record === undefined || !fitsChoice(record, choice)) continue;
        const { sheet } = game!;
        const after = dealt(state, record.spinId, request, sheet.wager, record.payout, each.opening);
        const share = after.told.get(record.spinId);
        const eventIds = judgeNotice(at(record.json, 'communityBonus'), share, after.eventIds);
        if (typeof eventIds === 'string') expected.add(eventIds);
        else if (record.after === balanceWith(before - sheet.wager + record.payout, share))
          states.push({ ...after, eventIds });
      }
    }
    if (states.length === 0) return [...expected].join(' or ');
    return states;
  }

  #replay(
    state: State,
    request: SpinRequest,
    bound: Bound,
    answer: Answer,
    record: SpinRecord | undefined,
  ): Failpoint {
    const first = bound.request;
    const isSameRequest =
      first.gameId === request.gameId &&
      first.playerId === request.playerId &&
      isSame(decimal(first.wager), decimal(request.wager));
    if (!isSameRequest) return outcomeOf(answer) === '409 KS-4111' ? [state] : '409 KS-4111';
    const { spin } = bound;
    const expected = `200, a replay of ${typeof spin === 'string' ? `spin ${spin}` : 'the lost spin'}`;
    if (record === undefined || !isReplayed(answer)) return expected;
    if (typeof spin === 'string') return record.spinId === spin ? [state] : expected;
    const told = this.#tell(state, spin, record);
    return told === undefined ? `${expected} ${lostText(state.lostDeals.get(spin)!)}` : [told];
  }

  /**
   * Returns the state in which a lost spin is identified with a spin in a response. Undefined if this is
   * impossible.
   */
  #tell(state: State, place: number, record: SpinRecord): State | undefined {
    const deal = state.lostDeals.get(place)!;
    const { gameId, requestId } = this.#lost[place]!.request;
    if (deal.spinId !== undefined) return deal.spinId === record.spinId ? state : undefined;
    if (record.gameId !== gameId || record.requestId !== requestId) return undefined;
    if (record.payout !== deal.payout || record.after !== deal.after) return undefined;
    if (!fitsChoice(record, state.forced.get(place))) return undefined;
    for (const { entries } of state.players.values()) if (entries.includes(record.spinId)) return undefined;
    for (const other of state.lostDeals.values()) if (other.spinId === record.spinId) return undefined;
    const eventIds = judgeNotice(at(record.json, 'communityBonus'), state.told.get(place), state.eventIds);
    if (typeof eventIds === 'string') return undefined;
    const lostDeals = new Map(state.lostDeals).set(place, { ...deal, spinId: record.spinId });
    return { ...state, lostDeals, eventIds };
  }

  #player(state: State, playerId: string, { exchange, answer }: Served): Failpoint {
    const player = state.players.get(playerId);
    if (player === undefined) return outcomeOf(answer) === '404 KS-4204' ? [state] : '404 KS-4204';
    const json = parsed(answer.text);
    const isRight =
      answer.status === 200 &&
      at(json, 'playerId') === playerId &&
      amount(at(json, 'balanceUsd')) === player.balance;
    if (!isRight) return `200 with a balance of ${usd(player.balance)}`;
    const face = JSON.stringify([at(json, 'userId'), at(json, 'createdAt')]);
    const before = this.#faces.get(playerId) ?? face;
    if (before !== face) fail(exchange, `userId and createdAt were ${before}`);
    this.#faces.set(playerId, face);
    return [state];
  }

  #page(
    state: State,
    playerId: string,
    page: number,
    limit: number,
    { exchange, answer }: Served,
  ): Failpoint {
    const player = state.players.get(playerId);
    if (player === undefined) return outcomeOf(answer) === '404 KS-4204' ? [state] : '404 KS-4204';
    const json = parsed(answer.text);
    // Shares are separate ledger entries and appear in no list of spins.
    const spins = player.entries.filter((entry) => typeof entry !== 'object');
    const newestFirst = spins.toReversed().slice((page - 1) * limit, page * limit);
    const items = at(json, 'spins');
    const head = ['page', 'limit', 'total'].map((name) => at(json, name)).join();
    if (answer.status !== 200 || !Array.isArray(items) || items.length !== newestFirst.length) {
      return `200 with ${newestFirst.length} spins`;
    }
    if (head !== [page, limit, spins.length].join())
      return `page, limit, total ${page}, ${limit}, ${spins.length}`;
    let next = state;
    for (const [place, spin] of newestFirst.entries()) {
      const item = items[place] as Json;
      const { createdAt: _, gameId, ...shown } = item as { [name: string]: Json };
      const game = this.#game(Number(gameId));
      if (game === undefined) fail(exchange, `There is no game ${gameId}`);
      const rest = withoutHistory(shown);
      const requestId = at(rest, 'requestId') as string | undefined;
      const record = this.#learn(exchange, rest, game, { playerId, requestId });
      this.#judgeCopy(exchange, item, record);
      const told =
        typeof spin === 'number' ? this.#tell(next, spin, record) : record.spinId === spin ? next : undefined;
      if (told === undefined)
        return `its place ${place} to be ${typeof spin === 'number' ? 'a lost spin' : spin}`;
      next = told;
    }
    return [next];
  }

  /** Returns the ledger rows that a player has in a state of the model, without the opening, oldest first. */
  rowsOf(state: State, playerId: string): ExpectedRow[] {
    return state.players.get(playerId)!.entries.map((entry) => {
      if (typeof entry === 'object') {
        const { gameId, amount: credit, balance } = entry;
        return { kind: 'share', playerId, gameId, requestId: null, wager: 0n, credit, balance };
      }
      const lost = typeof entry === 'number' ? this.#lost[entry]!.request : undefined;
      const { payout, after } =
        typeof entry === 'number' ? state.lostDeals.get(entry)! : this.#records.get(entry)!;
      const { gameId, requestId } = lost ?? this.#records.get(entry as string)!;
      const share = state.told.get(entry);
      return {
        kind: state.forced.has(entry) ? 'forced' : 'spin',
        playerId,
        gameId,
        requestId: requestId ?? null,
        wager: this.#game(gameId)!.sheet.wager,
        credit: payout,
        // The share of the triggering player is a separate entry after the spin.
        balance: after - balanceWith(0n, share),
      };
    });
  }

  /**
   * Describes a wrong order of a player's spins in a state: a spin precedes another spin, although it was
   * sent only after the response to that other spin. Undefined if the order is possible.
   */
  orderFault(state: State, playerId: string): string | undefined {
    const spins = state.players.get(playerId)!.entries.filter((entry) => typeof entry === 'string');
    let latest = { sentAt: Number.NEGATIVE_INFINITY, spinId: '' };
    for (const spinId of spins) {
      const { during } = this.#records.get(spinId)!;
      if (during === undefined) continue;
      if (during.receivedAt < latest.sentAt) return `${spinId} was answered before ${latest.spinId} was sent`;
      if (during.sentAt > latest.sentAt) latest = { sentAt: during.sentAt, spinId };
    }
    return undefined;
  }
}
