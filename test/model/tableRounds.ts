/**
 * Models the rounds of one blackjack table by docs/blackjack.md: the expected responses, and the rounds in
 * them. Cards and money come from the reference implementation in test/domain/blackjack with the shoe of the
 * round. This model uses no code of the service.
 */
import { createCipheriv } from 'node:crypto';
import { type ReferenceRound, reference } from '../domain/blackjack/reference.js';
import { amount, at, type Json, usd } from './decimal.js';
import { seqOf, type TableOperation, type TableScenario } from './tableChoices.js';

/** The wager of 0.25 USD, in micro-USD. */
export const WAGER = 250_000n;
/** The reference implementation counts money in units of 1/20 of the wager. */
const UNIT = WAGER / 20n;
const ACTIONS = ['hit', 'stand', 'double', 'split', 'insurance', 'noInsurance', 'surrender'] as const;
const RANKS = '23456789TJQKA';
const SUITS = 'shdc';

/** Returns the cards of a sealed shoe in dealing order, by the format in docs/blackjack.md. */
export function shoeCards(decks: number, seed: Buffer): string[] {
  const cards = Array.from({ length: decks * 52 }, (_, i) => RANKS[(i % 52) >> 2]! + SUITS[i % 4]!);
  const stream = createCipheriv('aes-256-ctr', seed, Buffer.alloc(16));
  const nextWord = (): number => stream.update(Buffer.alloc(4)).readUInt32LE(0);
  for (let i = cards.length - 1; i > 0; i--) {
    const mask = 2 ** i.toString(2).length - 1;
    let j = nextWord() & mask;
    while (j > i) j = nextWord() & mask;
    [cards[i], cards[j]] = [cards[j]!, cards[i]!];
  }
  return cards;
}

export interface TableRound {
  readonly roundId: string;
  readonly playerId: string;
  readonly requestId: string;
  readonly shoe: readonly string[];
  /** Text of the response to the deal of the round. */
  readonly text: string;
  /** Moves for the reference implementation, including the moves of a timeout. */
  readonly moves: string[];
  actions: number;
  newest: { readonly action: string; readonly text: string } | undefined;
  ended: 'close' | 'timeout' | 'void' | undefined;
}

/** Expected result of a deal or an action. */
export type Expected =
  /** The status and code of the refusal. */
  | string
  /** The text of the earlier response, if the request has no further effect. */
  | { readonly text: string }
  | 'effect';

export class TableRounds {
  readonly all: TableRound[] = [];
  readonly #opening: bigint;
  readonly #funding: bigint | null;

  constructor(private readonly scenario: TableScenario) {
    this.#opening = amount(scenario.opening)!;
    this.#funding = scenario.funding === null ? null : amount(scenario.funding)!;
  }

  newestOf(playerId: string): TableRound | undefined {
    return this.all.findLast((round) => round.playerId === playerId);
  }

  stateOf({ shoe, moves }: Pick<TableRound, 'shoe' | 'moves'>): ReferenceRound {
    return reference(this.scenario.rules, [...shoe], moves)!;
  }

  isOpen(round: TableRound): boolean {
    return round.ended === undefined && !this.stateOf(round).over;
  }

  /** Returns the players' payouts minus their stakes, in micro-USD. */
  netOf(rounds: readonly TableRound[]): bigint {
    let net = 0n;
    for (const round of rounds) {
      if (round.ended === 'void') continue;
      const { staked, returned } = this.stateOf(round);
      net += BigInt(returned - staked) * UNIT;
    }
    return net;
  }

  balanceOf(playerId: string): bigint {
    return this.#opening + this.netOf(this.all.filter((round) => round.playerId === playerId));
  }

  expectDeal(
    { isWagerRight }: TableOperation & { op: 'deal' },
    playerId: string,
    requestId: string,
  ): Expected {
    const { isEnforced, rules } = this.scenario;
    const bound = this.all.find((round) => round.requestId === requestId);
    if (bound !== undefined)
      return bound.playerId === playerId && isWagerRight ? { text: bound.text } : '409 KS-4111';
    if (!isWagerRight) return '400 KS-4103';
    const open = this.newestOf(playerId);
    if (open !== undefined && this.isOpen(open)) return '409 KS-4222';
    if (isEnforced && this.balanceOf(playerId) < WAGER) return '400 KS-4225';
    const largest = WAGER * BigInt(4 * rules.maxHands);
    if (this.#funding !== null && this.#funding - this.netOf(this.all) < largest) return '503 KS-5011';
    return 'effect';
  }

  /** Returns the action and the sequence number that a choice means. */
  chosen(
    round: TableRound,
    { choice, seq }: TableOperation & { op: 'act' },
  ): { action: string; seq: number } {
    const { allowed } = this.stateOf(round);
    const from = choice % 8 === 0 || allowed.length === 0 ? ACTIONS : allowed;
    const action = from[Math.floor(choice / 8) % from.length]!;
    return { action, seq: seqOf(seq, round.actions) };
  }

  expectAction(round: TableRound, { action, seq }: { action: string; seq: number }): Expected {
    const { newest, actions, moves, shoe } = round;
    if (newest !== undefined && seq === actions && action === newest.action) return { text: newest.text };
    if (seq !== actions + 1) return '409 KS-4224';
    if (!this.isOpen(round)) return '409 KS-4223';
    const after = reference(this.scenario.rules, [...shoe], [...moves, action]);
    if (after === undefined) return '409 KS-4223';
    const cost = BigInt(after.staked - this.stateOf(round).staked) * UNIT;
    if (this.scenario.isEnforced && this.balanceOf(round.playerId) < cost) return '400 KS-4225';
    return 'effect';
  }

  act(round: TableRound, action: string, text: string): void {
    round.moves.push(action);
    round.actions++;
    round.newest = { action, text };
  }

  end(round: TableRound, how: 'close' | 'timeout' | 'void'): void {
    round.ended = how;
    if (how === 'void') return;
    for (let state = this.stateOf(round); !state.over; state = this.stateOf(round))
      round.moves.push(state.asksInsurance ? 'noInsurance' : 'stand');
  }

  /** Describes the fault of a round in a response. Undefined if it is correct. */
  faultOf(round: TableRound, json: Json | undefined): string | undefined {
    const state = this.stateOf(round);
    const isVoid = round.ended === 'void';
    const isOver = isVoid || state.over;
    const status = isVoid ? 'VOIDED' : isOver ? 'SETTLED' : 'OPEN';
    const list = (value: Json | undefined): readonly Json[] => (Array.isArray(value) ? value : []);
    const money = (value: Json | undefined): string => (value === null ? 'null' : usd(amount(value) ?? -1n));
    const staked = usd(BigInt(state.staked) * UNIT);
    const expected = {
      roundId: round.roundId,
      playerId: round.playerId,
      requestId: round.requestId,
      status,
      phase: isOver ? status : state.asksInsurance ? 'INSURANCE' : 'PLAYER',
      lastActionSeq: String(round.actions),
      wageredUsd: staked,
      payoutUsd: isVoid ? staked : isOver ? usd(BigInt(state.returned) * UNIT) : 'null',
      dealer: state.over ? state.dealer : state.dealer.slice(0, 1),
      hands: state.hands.map(({ cards, stakes }) => `${cards} ${usd(WAGER * BigInt(stakes))}`),
      activeHand: isOver || state.turn < 0 ? null : String(state.turn),
      legal: isOver ? [] : state.allowed,
      balance: usd(this.balanceOf(round.playerId)),
      autoCompleted: round.ended === 'close' || round.ended === 'timeout',
      hasSeed: isOver,
    };
    const found = {
      roundId: at(json, 'roundId'),
      playerId: at(json, 'playerId'),
      requestId: at(json, 'requestId'),
      status: at(json, 'status'),
      phase: at(json, 'phase'),
      lastActionSeq: at(json, 'lastActionSeq'),
      wageredUsd: money(at(json, 'wageredUsd')),
      payoutUsd: money(at(json, 'payoutUsd')),
      dealer: at(json, 'dealer', 'cards'),
      hands: list(at(json, 'hands')).map((hand) => `${at(hand, 'cards')} ${money(at(hand, 'wagerUsd'))}`),
      activeHand: at(json, 'activeHand'),
      legal: list(at(json, 'legalActions'))
        .map((each) => at(each, 'action') as string)
        .sort(),
      balance: money(at(json, 'balance', 'balanceUsd')),
      autoCompleted: at(json, 'autoCompleted') === true,
      hasSeed: at(json, 'shoe', 'seed') !== undefined,
    };
    const [is, should] = [JSON.stringify(found), JSON.stringify(expected)];
    return is === should ? undefined : `the round is shown as\n  ${is}, and should be\n  ${should}`;
  }
}
