/** Commands that spin: drawn outcomes of a slot game, raffle tickets, retries and refused spins. */
import fc from 'fast-check';
import { until } from '../../support/wait.js';
import { bonusText } from '../communal.js';
import { amount, at, type Json, usd } from '../decimal.js';
import { type Command, gameOf, NOTHING, PLAYERS, pathPart, pick, type Touched } from './command.js';
import { count, type Told } from './pot.js';
import { Difference, isUnavailable, type Reply, type Session, same } from './session.js';
import { balanceOf, book, type Game, isBlocked, playerOf, type Spin, type State } from './state.js';

interface Ask {
  readonly playerId: string;
  readonly requestId?: string | undefined;
  /** True if the request has the requestId in a header. */
  readonly isInHeader?: boolean;
  readonly hasOtherWager?: boolean;
}

const numberOf = (micros: bigint): number => Number(usd(micros));

async function spin(session: Session, state: State, game: Game, ask: Ask): Promise<Touched> {
  const { playerId, requestId, isInHeader = false, hasOtherWager = false } = ask;
  const wager = hasOtherWager ? game.wager * 2n : game.wager;
  const named = requestId !== undefined && !isInHeader ? { requestId } : {};
  const body = { gameId: game.gameId, playerId, wagerUsd: numberOf(wager), ...named };
  const header = requestId !== undefined && isInHeader ? { 'Idempotency-Key': requestId } : {};
  const send = () => session.partnerApi('POST', '/spin', body, header);
  const reply = await send().then((first) => settled(session, state, playerId, first, send));
  const what = game.kind === 'raffle' ? 'ticket' : 'spin';
  const request = `spin ${game.gameId} ${playerId} ${wager}`;
  const bound = requestId === undefined ? undefined : state.bound.get(requestId);
  if (bound !== undefined) {
    if (bound.request !== request) session.expect(reply, what, '409 KS-4111');
    else isReplayOf(session, reply, what, bound);
    return NOTHING;
  }
  const refusal = refusalOf(state, game, playerId, hasOtherWager);
  if (refusal !== undefined) {
    session.expect(reply, what, refusal);
    return NOTHING;
  }
  session.expect(reply, what, '200');
  same('a first answer is a replay', reply.isReplayed, false);
  const players = dealt(session, state, game, playerId, requestId, reply);
  if (requestId !== undefined) state.bound.set(requestId, { request, status: 200, text: reply.text });
  return { players, games: [game.gameId] };
}

/**
 * A spin without a requestId that was answered with KS-5002 may have happened (docs/contract.md §8.4), so the
 * player's history is read. If the spin did not happen, it is sent again.
 * @returns the response, or the spin in the history
 */
async function settled(
  session: Session,
  state: State,
  playerId: string,
  first: Reply,
  send: () => Promise<Reply>,
): Promise<Reply> {
  let reply = first;
  const isDone = async (): Promise<boolean> => {
    if (!isUnavailable(reply)) return true;
    session.saw('refused for the moment, without an id');
    const path = `/players/${pathPart(playerId)}/spins?limit=1`;
    const { status, json } = await session.partnerApi('GET', path);
    const known = state.players.get(playerId)?.spins.length ?? 0;
    const total = status === 404 ? 0 : Number(at(json, 'total'));
    if (total === known) reply = await send();
    else {
      same('spins of a player after one that may have happened', total, known + 1);
      reply = await session.partnerApi('GET', `/spins/${String(at(json, 'spins', 0, 'spinId'))}`);
    }
    return false;
  };
  await until(isDone, 'the spin is answered', session.world.patienceMs);
  return reply;
}

export function isReplayOf(
  session: Session,
  reply: Reply,
  what: string,
  bound: { readonly status: number; readonly text: string },
): void {
  session.expect(reply, what, String(bound.status));
  session.saw(`${what} replayed`);
  same(`the replay of a ${what} says that it is one`, reply.isReplayed, true);
  same(`the replay of a ${what} has the bytes of the first answer`, reply.text, bound.text);
}

/** Returns the refusal of a spin that is not a replay, or undefined if the service must deal the spin. */
function refusalOf(state: State, game: Game, playerId: string, hasOtherWager: boolean): string | undefined {
  if (game.isSuspended) return '400 KS-4202';
  if (game.kind === 'raffle' && game.ticketsLeft === 0) return '410 KS-4218';
  if (hasOtherWager) return '400 KS-4103';
  if (isBlocked(state, playerId)) return '403 KS-4115';
  if (state.isEnforced && balanceOf(state, playerId) < game.wager) return '400 KS-4225';
  return undefined;
}

/**
 * Applies the response to a spin to the reference.
 * @returns the players whose balances changed
 */
function dealt(
  session: Session,
  state: State,
  game: Game,
  playerId: string,
  requestId: string | undefined,
  { json, text }: Reply,
): string[] {
  const shown = at(json, 'presentation', game.kind === 'raffle' ? 'prizeName' : 'comboString');
  const payout = amount(at(json, 'outcome', 'payoutUsd'));
  const outcome = `${String(at(json, 'outcome', 'prizeTier'))} ${payout} ${String(shown)}`;
  if (payout === undefined || !game.outcomes.has(outcome)) {
    throw new Difference(`The game has no outcome «${outcome}»`);
  }
  const place = `${game.gameId} ${playerId}`;
  const forced = game.kind === 'slot' ? state.forced.get(place) : undefined;
  state.forced.delete(place);
  if (forced !== undefined) same('the outcome that was chosen is dealt', outcome, forced);
  same(
    'the spin is marked as forced',
    at(json, 'sandbox', 'forced'),
    forced === undefined ? undefined : true,
  );

  const player = playerOf(state, playerId);
  const spinId = String(at(json, 'spinId'));
  const isForced = forced !== undefined;
  const kind = isForced ? 'forcedSpin' : 'spin';
  book(player, { kind, gameId: game.gameId, wager: game.wager, credit: payout, requestId, spinId });
  const before = new Map([...state.players].map(([id, { balance }]) => [id, balance]));
  const told = isForced ? undefined : count(state, game, player, spinId);
  judgeNotice(at(json, 'communityBonus'), told);
  same('the balance', amount(at(json, 'balance', 'balanceUsd')), player.balance, text);
  same('the requestId comes back', at(json, 'requestId'), requestId);

  const made: Spin = {
    spinId,
    gameId: game.gameId,
    playerId,
    requestId,
    text,
    wager: game.wager,
    payout,
    isForced,
    prizeTier: Number(at(json, 'outcome', 'prizeTier')),
    balance: player.balance,
  };
  player.spins.push(made);
  state.spins.push(made);
  if (!isForced) {
    game.totals.spins++;
    game.totals.wagered += game.wager;
    game.totals.paid += payout;
    if (game.kind === 'raffle') takeTicket(game, outcome);
  } else session.saw('spin forced');
  if (payout > state.threshold) state.largeWins.push({ id: spinId, gameId: game.gameId, playerId, payout });
  if (told?.isTrigger) session.saw('bonus fired');
  else if (told !== undefined) session.saw('bonus told');
  const moved = [...state.players.values()].filter(({ playerId: id, balance }) => before.get(id) !== balance);
  return [...new Set([playerId, ...moved.map((each) => each.playerId)])];
}

function takeTicket(game: Game, outcome: string): void {
  const left = game.left.get(outcome) ?? 0;
  if (left === 0) throw new Difference(`More tickets «${outcome}» than the pool had`);
  game.left.set(outcome, left - 1);
  game.ticketsLeft--;
}

function judgeNotice(found: Json | undefined, told: Told | undefined): void {
  if (told === undefined) {
    same('communityBonus', found, null);
    return;
  }
  const { event } = told;
  event.eventId ??= String(at(found, 'eventId'));
  same('communityBonus', found, {
    triggered: true,
    tierName: event.name,
    tierLevel: String(event.level),
    totalAmountUsd: bonusText(event.total),
    yourShareUsd: bonusText(told.amount),
    isTriggerPlayer: told.isTrigger,
    eventId: event.eventId,
  });
}

export const rarely = fc.integer({ min: 0, max: 9 }).map((number) => number === 9);
const player = fc.constantFrom(...PLAYERS);
/** There are only a few request ids, so that sequences use them repeatedly. */
export const requestId = fc.constantFrom('r1', '+r2', '=r"3', 'r4', 'r5', 'r6');

interface Spins {
  readonly playerId: string;
  readonly requestId: string | undefined;
  readonly isInHeader: boolean;
  readonly hasOtherWager: boolean;
}

const asked: fc.Arbitrary<Spins> = fc.record({
  playerId: player,
  requestId: fc.option(requestId, { nil: undefined }),
  isInHeader: fc.boolean(),
  hasOtherWager: rarely,
});

export const spinSlot: Command<Spins> = {
  name: 'spin slot',
  weight: 6,
  arbitrary: () => asked,
  applies: (state) => gameOf(state, 'slot') !== undefined,
  run: (session, state, choice) => spin(session, state, gameOf(state, 'slot')!, choice),
};

export const buyTicket: Command<Spins> = {
  name: 'buy ticket',
  weight: 3,
  arbitrary: () => asked,
  applies: (state) => gameOf(state, 'raffle') !== undefined,
  run: (session, state, choice) => spin(session, state, gameOf(state, 'raffle')!, choice),
};

/** Sends so many spins that a communal progressive fires. */
export const spinMany: Command<readonly string[]> = {
  name: 'spin many',
  weight: 4,
  arbitrary: () => fc.array(player, { minLength: 6, maxLength: 14 }),
  applies: (state) => gameOf(state, 'slot') !== undefined,
  async run(session, state, choice) {
    const players = new Set<string>();
    for (const playerId of choice) {
      const touched = await spin(session, state, gameOf(state, 'slot')!, { playerId });
      for (const each of touched.players) players.add(each);
    }
    return { players: [...players], games: [gameOf(state, 'slot')!.gameId] };
  },
};

/** Repeats an earlier request. */
export const replay: Command<number> = {
  name: 'replay',
  weight: 4,
  arbitrary: () => fc.nat(20),
  applies: (state) => state.spins.some((each) => each.requestId !== undefined),
  async run(session, state, choice) {
    const { gameId, ...ask } = pick(
      state.spins.filter((each) => each.requestId !== undefined),
      choice,
    )!;
    const game = state.games.find((each) => each.gameId === gameId)!;
    return spin(session, state, game, { playerId: ask.playerId, requestId: ask.requestId });
  },
};

interface Misnamed {
  readonly playerId: string;
  readonly how: string;
}

/**
 * Sends a spin with a request id in a form that the service must refuse, or with two different request ids.
 * Nothing may be dealt.
 */
export const misnamedId: Command<Misnamed> = {
  name: 'misnamed id',
  weight: 1,
  arbitrary: () =>
    fc.record({
      playerId: player,
      how: fc.constantFrom('request_id', 'requestID', 'idempotencyKey', 'Idempotency-Key'),
    }),
  applies: (state) => gameOf(state, 'slot') !== undefined,
  async run(session, state, { playerId, how }) {
    const game = gameOf(state, 'slot')!;
    const isHeader = how === 'Idempotency-Key';
    const named = isHeader ? { requestId: 'one' } : { [how]: 'one' };
    const body = { gameId: game.gameId, playerId, wagerUsd: numberOf(game.wager), ...named };
    const reply = await session.partnerApi('POST', '/spin', body, isHeader ? { [how]: 'other' } : {});
    session.expect(reply, 'misnamed id', '400 KS-4101');
    return NOTHING;
  },
};

interface Chosen {
  readonly playerId: string;
  readonly combination: number;
  /** True to choose a combination that the PAR sheet does not have. */
  readonly isBeyond: boolean;
}

/**
 * Chooses a player's next outcome as a tester. The player's next spin that is not refused takes the chosen
 * outcome.
 */
export const chooseOutcome: Command<Chosen> = {
  name: 'choose outcome',
  weight: 2,
  arbitrary: () => fc.record({ playerId: player, combination: fc.nat(7), isBeyond: rarely }),
  applies: (state) => gameOf(state, 'slot') !== undefined,
  async run(session, state, { playerId, combination, isBeyond }) {
    const { gameId, outcomes } = gameOf(state, 'slot')!;
    const place = isBeyond ? outcomes.size + combination : combination % outcomes.size;
    const body = { gameId, playerId, combinationIndex: place };
    const reply = await session.partnerApi('POST', '/sandbox/next-outcome', body);
    if (isBeyond) {
      session.expect(reply, 'choose', '400 KS-4101');
      return NOTHING;
    }
    const chosen = [...outcomes][place]!;
    session.expect(reply, 'choose', '200');
    const [tier, payout] = chosen.split(' ');
    same('the chosen tier', at(reply.json, 'outcome', 'prizeTier'), tier);
    same('the chosen payout', String(amount(at(reply.json, 'outcome', 'payoutUsd'))), payout);
    state.forced.set(`${gameId} ${playerId}`, chosen);
    return NOTHING;
  },
};
