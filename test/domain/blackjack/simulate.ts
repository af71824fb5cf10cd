/**
 * Prints the simulated house edge, standard error and stakes of one of the two published rule sets as JSON.
 * Usage: `node simulate.js six|one ROUNDS SEED`.
 */
import { DEFAULT_RULES } from '../../../src/domain/games/blackjackRules.js';
import { houseEdge, ONE_DECK, SIX_DECKS } from './basicStrategy.js';

const [decks, rounds, seed] = process.argv.slice(2);
const [rules, strategy] =
  decks === 'six'
    ? [DEFAULT_RULES, SIX_DECKS]
    : [{ ...DEFAULT_RULES, decks: 1, blackjackPays: '6:5' as const }, ONE_DECK];
process.stdout.write(JSON.stringify(houseEdge(rules, strategy, Number(rounds), Number(seed))));
