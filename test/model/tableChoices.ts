/**
 * Types of a blackjack scenario of the model: the rules, and the operations of players and operator, which
 * fast-check draws and shrinks.
 */
import fc from 'fast-check';
import type { ReferenceRules } from '../domain/blackjack/reference.js';

export interface TableScenario {
  readonly rules: ReferenceRules & { readonly decks: number };
  readonly isEnforced: boolean;
  /** Opening balance in USD. */
  readonly opening: string;
  /** Funding by the operator in USD. Null means no limit. */
  readonly funding: string | null;
  readonly operations: readonly TableOperation[];
}

/** An operation. Numbers select from the existing items, modulo their count. */
export type TableOperation =
  | {
      readonly op: 'deal';
      readonly front: number;
      readonly player: number;
      readonly requestId: number;
      readonly isWagerRight: boolean;
      /** Number of equal requests that are sent concurrently to all front ends. */
      readonly copies: number;
    }
  /** An action in the player's newest round. */
  | {
      readonly op: 'act';
      readonly front: number;
      readonly player: number;
      /** Selects the action. Every eighth choice may be illegal, and all others are legal. */
      readonly choice: number;
      readonly seq: Seq;
      readonly copies: number;
    }
  /** Repeats the newest action of the player's newest round. */
  | { readonly op: 'repeat'; readonly front: number; readonly player: number }
  | {
      readonly op: 'end';
      readonly front: number;
      readonly player: number;
      readonly how: 'close' | 'void' | 'timeout';
    };

/** Difference between the sequence number of the request and that of the newest action. */
const SEQS = { next: 1, same: 0, older: -1, later: 2 } as const;
export type Seq = keyof typeof SEQS;

/** @returns a sequence number of at least 1 */
export const seqOf = (seq: Seq, newest: number): number => Math.max(1, newest + SEQS[seq]);

export const PLAYERS = ['p', '\u{1f3b0}:{c0}'] as const;
const REQUEST_IDS = 20;

const few = (max: number) => fc.integer({ min: 0, max });
const front = few(1);
const player = few(PLAYERS.length - 1);
const copies = fc.oneof({ weight: 4, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.constant(4) });

const operation: fc.Arbitrary<TableOperation> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      op: fc.constant('deal' as const),
      front,
      player,
      requestId: few(REQUEST_IDS - 1),
      isWagerRight: few(9).map((n) => n > 0),
      copies,
    }),
  },
  {
    weight: 12,
    arbitrary: fc.record({
      op: fc.constant('act' as const),
      front,
      player,
      choice: few(1000),
      seq: fc.oneof(
        { weight: 8, arbitrary: fc.constant('next' as const) },
        { weight: 2, arbitrary: fc.constantFrom<Seq>('same', 'older', 'later') },
      ),
      copies,
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('repeat' as const), front, player }) },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('end' as const),
      front,
      player,
      how: fc.constantFrom('close', 'void', 'timeout'),
    }),
  },
);

export const tableScenarios = (operationsMax: number): fc.Arbitrary<TableScenario> =>
  fc.record({
    rules: fc.record({
      decks: fc.constantFrom(1, 6),
      dealerHitsSoft17: fc.boolean(),
      blackjackPays: fc.constantFrom('3:2', '6:5'),
      doubleOn: fc.constantFrom('any2', '9-11'),
      doubleAfterSplit: fc.boolean(),
      maxHands: fc.integer({ min: 1, max: 4 }),
      resplitAces: fc.boolean(),
      hitSplitAces: fc.boolean(),
      peek: fc.boolean(),
      insurance: fc.boolean(),
      lateSurrender: fc.boolean(),
    }),
    isEnforced: fc.boolean(),
    opening: fc.constantFrom('1000', '0.375', '1.25'),
    funding: fc.option(fc.constantFrom('4', '4.5'), { freq: 3 }),
    operations: fc.array(operation, { minLength: 20, maxLength: operationsMax, size: 'max' }),
  });
