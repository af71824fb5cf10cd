/** What basic strategy gets back at a blackjack table, for the rules whose house edge is known. */
import { type BlackjackRules, DEFAULT_RULES, rulesHash } from './blackjackRules.js';

interface KnownRules {
  readonly rules: BlackjackRules;
  /** What the house gains in a round, as a fraction of the initial wager: published figures. */
  readonly houseEdge: number;
  /** What is staked in a round with doubles and splits, in initial wagers: the mean of 20 million simulated rounds. */
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
 * Payouts as a fraction of all stakes, those of doubles and splits included, that rounds by basic strategy come to.
 * @param hash of the rules (blackjackRules.ts)
 * @returns undefined: it is not known for these rules
 */
export const basicStrategyReturn = (hash: Buffer): number | undefined => BY_HASH.get(hash.toString('hex'));
