/**
 * Return to player of a blackjack table if players follow basic strategy, for rules with a published house
 * edge.
 */
import { type BlackjackRules, DEFAULT_RULES, rulesHash } from './blackjackRules.js';

interface KnownRules {
  readonly rules: BlackjackRules;
  /** Published house edge of a round, as a fraction of the initial wager. */
  readonly houseEdge: number;
  /**
   * Sum of all stakes of a round including doubles and splits, in initial wagers: the mean of 20 million
   * simulated rounds.
   */
  readonly stakesPerRound: number;
}

const KNOWN: readonly KnownRules[] = [
  { rules: DEFAULT_RULES, houseEdge: 0.0046, stakesPerRound: 1.1273 },
  {
    rules: { ...DEFAULT_RULES, decks: 1, blackjackPays: '6:5' },
    houseEdge: 0.01263,
    stakesPerRound: 1.1349,
  },
];

const BY_HASH: ReadonlyMap<string, number> = new Map(
  KNOWN.flatMap(({ rules, houseEdge, stakesPerRound }) =>
    // Basic strategy never takes insurance.
    [true, false].map((insurance) => [
      rulesHash({ ...rules, insurance }).toString('hex'),
      1 - houseEdge / stakesPerRound,
    ]),
  ),
);

/**
 * Returns the payouts as a fraction of all stakes, including doubles and splits, for rounds played by basic
 * strategy.
 * @param hash hash of the rules (blackjackRules.ts)
 * @returns undefined if the return is not known for these rules
 */
export const basicStrategyReturn = (hash: Buffer): number | undefined => BY_HASH.get(hash.toString('hex'));
