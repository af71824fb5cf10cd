/**
 * Record of a round: its shoe, its moves and its ledger entries. Rules + shoe + moves give its state
 * (blackjack.ts). This file also encodes steps as outcome codes of entries, and renders rounds for partners.
 */
import { entryTimeMs } from '../entryId.js';
import { microsToUsdText } from '../money.js';
import {
  type Action,
  COST_HALVES,
  type Hand,
  handPayoutMicros,
  legalActions,
  type Move,
  type Round,
  replayRound,
  roundMoney,
  stakeOf,
} from './blackjack.js';
import { cardText, handTotal, isNatural, isSoft } from './cards.js';
import { shoeCommitment, shuffleShoe } from './shoe.js';
import type { BlackjackTable } from './tableTerms.js';

export const ROUND_STATUSES = ['OPEN', 'SETTLED', 'VOIDED'] as const;
export type RoundStatus = (typeof ROUND_STATUSES)[number];

export interface RoundRecord {
  readonly gameId: number;
  readonly partnerId: number;
  readonly playerId: string;
  /** Index of the shoe in the game's sequence. Game and index identify the round. */
  readonly shoeIndex: number;
  readonly requestId: string | null;
  readonly status: RoundStatus;
  readonly moves: readonly Move[];
  /**
   * Entry ids of the deal, of each move, and of the void. `wagersMicros` and `balancesMicros` have one
   * element for each of these entries, in the same order.
   */
  readonly entryIds: readonly bigint[];
  readonly wagersMicros: readonly number[];
  /** Balance of the player after each entry of the round, in micro-USD. */
  readonly balancesMicros: readonly number[];
  /** Undefined while the round is open. */
  readonly payoutMicros: number | undefined;
  /**
   * Whether an open round must be voided: Postgres was restored, and later cards of the shoe may have been
   * shown. Its only possible step is the void.
   */
  readonly isToVoid: boolean;
}

/** Number of steps that no real round reaches. It marks a round that must be voided. */
const STEPS_TO_VOID = 0xffff;

/**
 * Number of steps after the deal, as Redis stores it for an open round. A round that must be voided has a
 * number that no step other than the void expects.
 */
export const openSteps = ({ entryIds, isToVoid }: Pick<RoundRecord, 'entryIds' | 'isToVoid'>): number =>
  isToVoid ? STEPS_TO_VOID : entryIds.length - 1;

// Steps in the ledger --------------------------------------------------------------------------------------

/** The code of a move is its index in this list and must never change. */
const MOVES: readonly Move[] = [
  'hit',
  'stand',
  'double',
  'split',
  'insurance',
  'noInsurance',
  'surrender',
  'timeout',
];
const MOVE_BITS = 4;
const VOID_CODE = 15;
const ENDED = 0x8000;
const STEP_MAX = 0x7ff;

/** Effect of a ledger entry after the deal on its round. */
export interface RoundStep {
  /** Number of the step; 1 is the first entry after the deal. */
  readonly step: number;
  readonly move: Move | 'void';
  readonly isEnd: boolean;
}

/**
 * Encodes a step as the outcome code of its entry: bit 15 is set at the end, bits 14 to 4 are the step, bits
 * 3 to 0 the move (15: void).
 */
export function stepCode({ step, move, isEnd }: RoundStep): number {
  if (step < 1 || step > STEP_MAX) throw new RangeError(`A round has no step ${step}`);
  const code = move === 'void' ? VOID_CODE : MOVES.indexOf(move);
  return (isEnd ? ENDED : 0) | (step << MOVE_BITS) | code;
}

/** Inverse of {@link stepCode}. */
export function readStep(code: number): RoundStep {
  const moveCode = code & ((1 << MOVE_BITS) - 1);
  const move = moveCode === VOID_CODE ? 'void' : MOVES[moveCode];
  if (move === undefined) throw new RangeError(`No move has the code ${moveCode}`);
  return { step: (code >> MOVE_BITS) & STEP_MAX, move, isEnd: (code & ENDED) !== 0 };
}

export const moveCode = (move: Move): number => MOVES.indexOf(move);
export const moveOfCode = (code: number): Move => {
  const move = MOVES[code];
  if (move === undefined) throw new RangeError(`No move has the code ${code}`);
  return move;
};

// Playing --------------------------------------------------------------------------------------------------

/** @throws IllegalActionError */
export const playRound = (table: BlackjackTable, seed: Uint8Array, moves: readonly Move[]): Round =>
  replayRound(table.rules, shuffleShoe(table.rules.decks, seed), moves);

export interface MoveMoney {
  readonly stakeMicros: number;
  readonly payoutMicros: number;
  readonly isEnd: boolean;
}

export function moneyOfMove(table: BlackjackTable, before: Round, after: Round): MoveMoney {
  const { wageredMicros } = roundMoney(before, table.wagerMicros);
  const money = roundMoney(after, table.wagerMicros);
  return {
    stakeMicros: money.wageredMicros - wageredMicros,
    payoutMicros: money.payoutMicros ?? 0,
    isEnd: after.phase === 'SETTLED',
  };
}

const costMicros = (table: BlackjackTable, action: Action): number =>
  (COST_HALVES[action] * table.wagerMicros) / 2;

export const sumOf = (amounts: readonly number[]): number =>
  amounts.reduce((total, amount) => total + amount, 0);

/** Returns the player's own actions among the moves, which `seq` counts. */
export const actionsOf = ({ moves }: Pick<RoundRecord, 'moves'>): Action[] =>
  moves.filter((move): move is Action => move !== 'timeout');

/** Returns the time at which an open round is played out automatically, in milliseconds since the epoch. */
const expiryMs = (table: BlackjackTable, record: Pick<RoundRecord, 'entryIds'>): number =>
  entryTimeMs(record.entryIds[0]!) + table.roundTimeoutSeconds * 1000;

// Rendering ------------------------------------------------------------------------------------------------

const usd = (micros: number): number => Number(microsToUsdText(micros));

/**
 * Renders a round for the partner. Before the round has ended, the result does not depend on the hole card or
 * on undrawn cards.
 * @param entries number of entries after which the round is shown (1: the deal); the default is all of them
 * @param roundId id of the deal's entry
 */
export function viewRound(
  table: BlackjackTable,
  record: RoundRecord,
  seed: Uint8Array,
  roundId: string,
  entries = record.entryIds.length,
) {
  const isVoided = record.status === 'VOIDED' && entries === record.entryIds.length;
  const moves = record.moves.slice(0, entries - 1);
  const round = playRound(table, seed, moves);
  const isEnd = round.phase === 'SETTLED' || isVoided;
  const { wageredMicros, payoutMicros } = roundMoney(round, table.wagerMicros);
  const { gameId, playerId, requestId, shoeIndex } = record;
  const commitment = shoeCommitment({ gameId, index: shoeIndex, rulesHash: table.rulesHash, seed });
  return {
    roundId,
    gameId,
    playerId,
    status: isVoided ? ('VOIDED' as const) : isEnd ? ('SETTLED' as const) : ('OPEN' as const),
    phase: isVoided ? ('VOIDED' as const) : round.phase,
    lastActionSeq: actionsOf({ moves }).length,
    wageredUsd: usd(wageredMicros),
    payoutUsd: isVoided ? usd(wageredMicros) : payoutMicros === undefined ? null : usd(payoutMicros),
    dealer: viewDealer(round),
    activeHand: isVoided ? null : (round.activeHand ?? null),
    hands: round.hands.map((hand) => viewHand(table, round, hand)),
    legalActions: isEnd ? [] : legalActions(round).map((action) => viewAction(table, action)),
    insurance: viewInsurance(table, round),
    ...(moves.at(-1) === 'timeout' ? { autoCompleted: true } : {}),
    rulesHash: table.rulesHash.toString('hex'),
    shoe: {
      index: shoeIndex,
      commitment: commitment.toString('hex'),
      ...(isEnd ? { seed: Buffer.from(seed).toString('hex') } : {}),
    },
    expiresAt: new Date(expiryMs(table, record)).toISOString(),
    balance: { balanceUsd: usd(record.balancesMicros[entries - 1]!) },
    ...(requestId === null ? {} : { requestId }),
  };
}

function viewDealer({ phase, dealer }: Round) {
  const cards = phase === 'SETTLED' ? dealer : dealer.slice(0, 1);
  return { cards: cards.map(cardText), total: handTotal(cards) };
}

function viewHand(table: BlackjackTable, round: Round, hand: Hand) {
  return {
    cards: hand.cards.map(cardText),
    total: handTotal(hand.cards),
    isSoft: isSoft(hand.cards),
    wagerUsd: usd(stakeOf(hand, table.wagerMicros)),
    status: hand.status,
    ...(round.phase === 'SETTLED'
      ? { payoutUsd: usd(handPayoutMicros(round, hand, table.wagerMicros)) }
      : {}),
  };
}

function viewAction(table: BlackjackTable, action: Action) {
  const cost = costMicros(table, action);
  return { action, ...(cost === 0 ? {} : { costUsd: usd(cost) }) };
}

/** Null if none was taken. */
function viewInsurance(table: BlackjackTable, { isInsured, phase, dealer }: Round) {
  if (isInsured !== true) return null;
  const stake = table.wagerMicros / 2;
  const payout = isNatural(dealer) ? 3 * stake : 0;
  return { wagerUsd: usd(stake), ...(phase === 'SETTLED' ? { payoutUsd: usd(payout) } : {}) };
}
