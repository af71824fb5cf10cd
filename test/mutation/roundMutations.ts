/** Deliberate faults in the rounds of blackjack. */
import { built, type Fault, lua } from './mutant.js';

const game = (file: string, find: string, replace: string): Fault =>
  built(`domain/games/${file}.js`, find, replace);
const act = (find: string, replace: string): Fault => lua('roundAct', find, replace);

export const ROUND_MUTATIONS: readonly { name: string; faults: readonly Fault[]; found: string }[] = [
  {
    name: 'a card is dealt twice',
    faults: [game('blackjack', 'this.drawn++;', 'if (this.drawn !== 5) this.drawn++;')],
    found: 'rounds',
  },
  {
    name: 'a push is paid',
    faults: [
      game('blackjack', 'return ours === theirs ? stake : 0;', 'return ours === theirs ? 2 * stake : 0;'),
    ],
    found: 'rounds',
  },
  {
    name: 'a split ace is hit',
    faults: [
      game(
        'blackjack',
        'const isLocked = isFromSplit && isAce(cards[0]) && !rules.hitSplitAces;',
        'const isLocked = false;',
      ),
      game('blackjack', 'return !isFromSplit || ', 'return true || '),
    ],
    found: 'rounds',
  },
  {
    name: 'a timeout runs twice',
    faults: [
      act(
        'local hasMoved = not before or index ~= tonumber(ARGV[11]) or steps ~= tonumber(ARGV[12])',
        'local hasMoved = not before',
      ),
      act("call('HDEL', roundsKey, roundField)", "call('HSET', roundsKey, roundField, openRound)"),
    ],
    // With this fault, the ledger refuses the entry of the second timeout and halts the cell.
    found: 'cursors',
  },
  {
    name: 'the hole card is shown',
    faults: [game('round', "phase === 'SETTLED' ? dealer : dealer.slice(0, 1)", 'dealer')],
    found: 'hole card',
  },
];
