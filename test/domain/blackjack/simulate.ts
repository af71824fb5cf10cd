/** `node simulate.js six|one ROUNDS SEED`: prints house edge, standard error and stakes of one of the two known rule sets, as JSON. */
import { DEFAULT_RULES } from '../../../src/domain/games/blackjackRules.js';
import { houseEdge, ONE_DECK, SIX_DECKS } from './basicStrategy.js';

const [decks, rounds, seed] = process.argv.slice(2);
const [rules, strategy] =
  decks === 'six'
    ? [DEFAULT_RULES, SIX_DECKS]
    : [{ ...DEFAULT_RULES, decks: 1, blackjackPays: '6:5' as const }, ONE_DECK];
process.stdout.write(JSON.stringify(houseEdge(rules, strategy, Number(rounds), Number(seed))));
