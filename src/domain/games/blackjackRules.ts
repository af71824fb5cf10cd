/**
 * Rules of a blackjack game. They are validated and completed with defaults when the table is created. They
 * never change afterwards, and their hash identifies them.
 */
import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import { type Static, Type } from '#typebox';
import { choice } from '../schema.js';

export const BlackjackPays = choice(['3:2', '6:5'], 'Payout of a natural in relation to the wager');

export const DoubleOn = choice(
  ['any2', '9-11'],
  'First two cards on which a hand may be doubled: `any2` allows all, `9-11` only totals from 9 to 11',
);

export const BlackjackRules = Type.Object({
  decks: Type.Integer({ minimum: 1, maximum: 8, description: '6 where absent' }),
  dealerHitsSoft17: Type.Boolean({ description: 'Whether the dealer hits a soft 17; default false' }),
  blackjackPays: BlackjackPays,
  doubleOn: DoubleOn,
  doubleAfterSplit: Type.Boolean({
    description: 'Whether a hand may be doubled after a split; default true',
  }),
  maxHands: Type.Integer({
    minimum: 1,
    maximum: 4,
    description: 'Maximum number of hands of a player after splits; 1 allows no split; default 2',
  }),
  resplitAces: Type.Boolean({ description: 'Whether aces may be split again; default false' }),
  hitSplitAces: Type.Boolean({ description: 'Whether split aces may be hit; default false' }),
  peek: Type.Boolean({
    description: 'Whether the dealer checks for a natural before the player acts; default true',
  }),
  insurance: Type.Boolean({ description: 'Whether the player may take insurance; default true' }),
  lateSurrender: Type.Boolean({
    description: 'Whether the player may surrender the first two cards for half of the wager; default false',
  }),
});

export type BlackjackRules = Readonly<Static<typeof BlackjackRules>>;

export const DEFAULT_RULES: BlackjackRules = {
  decks: 6,
  dealerHitsSoft17: false,
  blackjackPays: '3:2',
  doubleOn: 'any2',
  doubleAfterSplit: true,
  maxHands: 2,
  resplitAces: false,
  hitSplitAces: false,
  peek: true,
  insurance: true,
  lateSurrender: false,
};

export interface RuleFault {
  readonly path: string;
  readonly message: string;
}

/** Permitted values of each rule: a list or an inclusive range. */
const ALLOWED: {
  readonly [name in keyof BlackjackRules]: readonly unknown[] | { min: number; max: number };
} = {
  decks: { min: 1, max: 8 },
  dealerHitsSoft17: [true, false],
  blackjackPays: ['3:2', '6:5'],
  doubleOn: ['any2', '9-11'],
  doubleAfterSplit: [true, false],
  maxHands: { min: 1, max: 4 },
  resplitAces: [true, false],
  hitSplitAces: [true, false],
  peek: [true, false],
  insurance: [true, false],
  lateSurrender: [true, false],
};

/** Returns the rules completed with their defaults, or all faults. `given` may be any JSON object. */
export function checkRules(
  given: Readonly<Record<string, unknown>>,
): { rules: BlackjackRules } | { faults: RuleFault[] } {
  const faults: RuleFault[] = [];
  for (const [name, value] of Object.entries(given)) {
    const allowed = Object.hasOwn(ALLOWED, name) ? ALLOWED[name as keyof BlackjackRules] : undefined;
    const path = `/rules/${name}`;
    if (allowed === undefined) {
      faults.push({ path, message: 'is not a rule of this game' });
    } else if ('min' in allowed) {
      const { min, max } = allowed;
      if (!Number.isInteger(value) || (value as number) < min || (value as number) > max)
        faults.push({ path, message: `must be a whole number from ${min} to ${max}` });
    } else if (!allowed.includes(value)) {
      faults.push({
        path,
        message: `must be one of ${allowed.map((each) => JSON.stringify(each)).join(', ')}`,
      });
    }
  }
  return faults.length > 0 ? { faults } : { rules: { ...DEFAULT_RULES, ...given } };
}

/** Returns the rules as canonical JSON (RFC 8785). */
export const rulesText = (rules: BlackjackRules): string => canonicalize(rules)!;

/** Returns the SHA-256 of {@link rulesText}. */
export const rulesHash = (rules: BlackjackRules): Buffer =>
  createHash('sha256').update(rulesText(rules)).digest();

/**
 * Returns why a wager can't be used with the rules, or undefined. Half of the wager and the payout of a
 * natural must be whole micro-USD.
 */
export function stakeFault(rules: BlackjackRules, wagerMicros: number): string | undefined {
  if (wagerMicros % 2 !== 0) return 'half of the wager must be a whole number of micro-USD';
  if (rules.blackjackPays === '6:5' && wagerMicros % 5 !== 0)
    return 'a natural at 6:5 must pay a whole number of micro-USD';
  return undefined;
}

/** Returns the maximum payout of a round in micro-USD: every hand doubled and won. */
export const maxPayoutMicros = (rules: BlackjackRules, wagerMicros: number): number =>
  4 * rules.maxHands * wagerMicros;
