/**
 * Commands at a blackjack table. The responses state which actions are legal. The costs and payouts of
 * actions must agree with every balance.
 */
import fc from 'fast-check';
import { until } from '../../support/wait.js';
import { amount, at, type Json, usd } from '../decimal.js';
import { type Command, gameOf, NOTHING, PLAYERS, pick, type Touched } from './command.js';
import { isUnavailable, type Reply, type Session, same } from './session.js';
import { isReplayOf, rarely, requestId } from './spins.js';
import { balanceOf, book, isBlocked, playerOf, type Round, type State } from './state.js';

interface Deal {
  readonly playerId: string;
  readonly requestId: string | undefined;
  readonly hasOtherWager: boolean;
  readonly isMisnamed: boolean;
  /** True if the request has the requestId in a header. */
  readonly isInHeader: boolean;
}

const open = (state: State, playerId: string): Round | undefined =>
  state.players.get(playerId)?.rounds.find(({ status }) => status === 'OPEN');

export const dealRound: Command<Deal> = {
  name: 'deal round',
  weight: 4,
  arbitrary: () =>
    fc.record({
      playerId: fc.constantFrom(...PLAYERS),
      requestId: fc.option(requestId, { nil: undefined }),
      hasOtherWager: rarely,
      isMisnamed: rarely,
      isInHeader: rarely,
    }),
  applies: (state) => gameOf(state, 'blackjack') !== undefined,
  async run(session, state, { playerId, requestId: id, hasOtherWager, isMisnamed, isInHeader }) {
    const game = gameOf(state, 'blackjack')!;
    const wager = hasOtherWager ? game.wager * 2n : game.wager;
    const inBody = isMisnamed ? 'request_id' : 'requestId';
    const isNamed = id !== undefined && (isMisnamed || !isInHeader);
    const named = isNamed ? { [inBody]: id } : {};
    const header = id !== undefined && !isNamed ? { 'Idempotency-Key': id } : {};
    const body = { gameId: game.gameId, playerId, wagerUsd: Number(usd(wager)), ...named };
    const reply = await dealt(session, state, playerId, () => session.play('POST', '/deal', body, header));
    if (isMisnamed && id !== undefined) {
      session.expect(reply, 'deal', '400 KS-4101');
      return NOTHING;
    }
    const request = `deal ${game.gameId} ${playerId} ${wager}`;
    const bound = id === undefined ? undefined : state.bound.get(id);
    if (bound !== undefined) {
      if (bound.request !== request) session.expect(reply, 'deal', '409 KS-4111');
      else isReplayOf(session, reply, 'deal', bound);
      return NOTHING;
    }
    const refusal = refusalOf(state, playerId, hasOtherWager);
    if (refusal !== undefined) {
      session.expect(reply, 'deal', refusal);
      const round = open(state, playerId);
      if (refusal === '409 KS-4222') {
        same('the open round', at(reply.json, 'details', 0, 'roundId'), round!.roundId);
        const seq = at(reply.json, 'details', 0, 'lastActionSeq');
        same('its last action', seq, String(round!.lastActionSeq));
      }
      return NOTHING;
    }
    session.expect(reply, 'deal', '201');
    if (id !== undefined) state.bound.set(id, { request, status: 201, text: reply.text });
    const round: Round = {
      roundId: String(at(reply.json, 'roundId')),
      gameId: game.gameId,
      playerId,
      status: 'OPEN',
      lastActionSeq: 0,
      wagered: 0n,
      payout: null,
      balance: 0n,
      legal: [],
      actions: [],
      dealer: [],
      lastText: reply.text,
    };
    playerOf(state, playerId).rounds.push(round);
    game.totals.spins++;
    return applied(state, round, reply, { kind: 'roundDeal', cost: game.wager, requestId: id });
  },
};

/**
 * A deal without a requestId that was answered with KS-5002 may have happened (docs/contract.md §8.4), so the
 * player's rounds are read. If the deal did not happen, it is sent again.
 */
async function dealt(
  session: Session,
  state: State,
  playerId: string,
  send: () => Promise<Reply>,
): Promise<Reply> {
  let reply = await send();
  const isDone = async (): Promise<boolean> => {
    if (!isUnavailable(reply)) return true;
    session.saw('refused for the moment, without an id');
    const { json } = await session.play('GET', `/rounds?playerId=${encodeURIComponent(playerId)}&limit=1`);
    // The first response to the deal is missing, so no replay could be compared with that response. Therefore
    // the deal must not have happened.
    same('rounds of a player', at(json, 'total'), String(state.players.get(playerId)?.rounds.length ?? 0));
    reply = await send();
    return false;
  };
  await until(isDone, 'the deal is answered', session.world.patienceMs);
  return reply;
}

/** Returns the refusal of a deal that is not a replay, or undefined if the service must deal it. */
function refusalOf(state: State, playerId: string, hasOtherWager: boolean): string | undefined {
  const game = gameOf(state, 'blackjack')!;
  if (game.isSuspended) return '400 KS-4202';
  if (hasOtherWager) return '400 KS-4103';
  if (isBlocked(state, playerId)) return '403 KS-4115';
  if (open(state, playerId) !== undefined) return '409 KS-4222';
  if (state.isEnforced && balanceOf(state, playerId) < game.wager) return '400 KS-4225';
  return undefined;
}

/** Applies a step of a round to the reference and compares the response with the reference. */
function applied(
  state: State,
  round: Round,
  { json, text }: Reply,
  step: { readonly kind: string; readonly cost: bigint; readonly requestId?: string | undefined },
): Touched {
  const player = state.players.get(round.playerId)!;
  const game = gameOf(state, 'blackjack')!;
  const payout = amount(at(json, 'payoutUsd')) ?? null;
  const isOver = at(json, 'status') !== 'OPEN';
  same('a round pays when it is over', payout !== null, isOver);
  if (isOver) same('the round is settled', at(json, 'status'), 'SETTLED');
  round.status = isOver ? 'SETTLED' : 'OPEN';
  round.wagered += step.cost;
  round.payout = payout;
  round.lastText = text;
  const { kind, cost: wager, requestId: id } = step;
  book(player, { kind, gameId: game.gameId, wager, credit: payout ?? 0n, requestId: id });
  round.balance = player.balance;
  game.totals.wagered += wager;
  game.totals.paid += payout ?? 0n;
  // The payout of the whole round decides whether the round is a large win.
  if ((payout ?? 0n) > state.threshold) {
    state.largeWins.push({
      id: round.roundId,
      gameId: game.gameId,
      playerId: round.playerId,
      payout: payout!,
    });
  }
  same('what was wagered', amount(at(json, 'wageredUsd')), round.wagered, text);
  same('the balance', amount(at(json, 'balance', 'balanceUsd')), player.balance, text);
  same('the last action', at(json, 'lastActionSeq'), String(round.lastActionSeq));
  const hands = at(json, 'hands') as readonly Json[];
  const stakes = hands.reduce((sum: bigint, hand) => sum + amount(at(hand, 'wagerUsd'))!, 0n);
  const insured = amount(at(json, 'insurance', 'wagerUsd')) ?? 0n;
  same('the stakes of the hands and the insurance', stakes + insured, round.wagered, text);
  if (isOver) {
    const paid = hands.reduce((sum: bigint, hand) => sum + (amount(at(hand, 'payoutUsd')) ?? 0n), 0n);
    same('what the hands pay', paid + (amount(at(json, 'insurance', 'payoutUsd')) ?? 0n), payout, text);
  }
  const dealer = at(json, 'dealer', 'cards') as readonly string[];
  same('cards that were shown stay', dealer.slice(0, round.dealer.length), round.dealer, text);
  round.dealer = dealer;
  const legal = at(json, 'legalActions') as readonly Json[];
  same('an open round has something to do', legal.length > 0, !isOver, text);
  round.legal = legal.map((each) => ({
    action: String(at(each, 'action')),
    cost: amount(at(each, 'costUsd')) ?? 0n,
  }));
  return { players: [round.playerId], games: [game.gameId] };
}

interface Action {
  readonly round: number;
  readonly action: number;
  readonly how: string;
}

const roundsOf = (state: State): Round[] => [...state.players.values()].flatMap(({ rounds }) => rounds);

/** Plays an action. Blocked players can finish their rounds, and so can players of a suspended table. */
export const act: Command<Action> = {
  name: 'act',
  weight: 6,
  arbitrary: () =>
    fc.record({
      round: fc.nat(10),
      action: fc.nat(10),
      how: fc.constantFrom('next', 'next', 'next', 'next', 'again', 'stale', 'illegal'),
    }),
  applies: (state) => roundsOf(state).length > 0,
  async run(session, state, choice) {
    const isOpen = roundsOf(state).filter(({ status }) => status === 'OPEN');
    const round = pick(choice.how === 'next' && isOpen.length > 0 ? isOpen : roundsOf(state), choice.round)!;
    if (choice.how === 'again') return again(session, round);
    const seq = round.lastActionSeq + (choice.how === 'stale' ? 2 : 1);
    const legal = choice.how === 'illegal' ? undefined : pick(round.legal, choice.action);
    // The table's rules do not allow surrender, so this action is illegal.
    const action = legal?.action ?? 'surrender';
    const reply = await session.play('POST', '/action', { roundId: round.roundId, action, seq });
    if (choice.how === 'stale') {
      session.expect(reply, 'act', '409 KS-4224');
      return NOTHING;
    }
    if (legal === undefined) {
      session.expect(reply, 'act', '409 KS-4223');
      return NOTHING;
    }
    if (state.isEnforced && balanceOf(state, round.playerId) < legal.cost) {
      session.expect(reply, 'act', '400 KS-4225');
      return NOTHING;
    }
    session.expect(reply, 'act', '200');
    round.lastActionSeq++;
    round.actions.push(action);
    const cost = action === 'noInsurance' ? 0n : legal.cost;
    return applied(state, round, reply, { kind: 'roundAction', cost });
  },
};

/** Repeats the last action. The response must be the same. */
async function again(session: Session, round: Round): Promise<Touched> {
  const action = round.actions.at(-1);
  if (action === undefined) return NOTHING;
  const body = { roundId: round.roundId, action, seq: round.lastActionSeq };
  const reply = await session.play('POST', '/action', body);
  isReplayOf(session, reply, 'act', { status: 200, text: round.lastText });
  return NOTHING;
}
