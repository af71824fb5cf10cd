import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { basicStrategyReturn } from '../../../src/domain/games/basicStrategy.js';
import { PlayedRound } from '../../../src/domain/games/blackjack.js';
import { DEFAULT_RULES, rulesHash } from '../../../src/domain/games/blackjackRules.js';
import { handTotal, isNatural } from '../../../src/domain/games/cards.js';
import { IS_WHOLE } from '../../support/root.js';
import { generator, SimulatedShoe } from './basicStrategy.js';
import { cardOf } from './cardOf.js';
import { dealerOutcomes } from './dealerOutcomes.js';

const ERRORS_MAX = 4;
/**
 * Number of simulated rounds; `npm run test:scale` plays ten times as many. The tolerance follows from the
 * standard error of the sample.
 */
const SIMULATED_ROUNDS = IS_WHOLE ? 20_000_000 : 2_000_000;
const DEALER_ROUNDS = IS_WHOLE ? 300_000 : 60_000;
const NATURAL_ROUNDS = IS_WHOLE ? 4_000_000 : 500_000;
/**
 * Permitted range of the standard deviation of a round's gain, in wagers, if the player follows basic
 * strategy.
 */
const DEVIATION = [0.9, 1.3] as const;
/**
 * The stakes of a round have a standard deviation of 0.36 wagers. The tolerance also covers the rounding of
 * the published figures.
 */
const STAKES_OFF_MAX = Math.max(0.0005, (ERRORS_MAX * 0.36) / Math.sqrt(SIMULATED_ROUNDS));

describe('published figures of blackjack', () => {
  test.concurrent.each([
    ['six', 0.0046, DEFAULT_RULES],
    ['one', 0.01263, { ...DEFAULT_RULES, decks: 1, blackjackPays: '6:5' as const, insurance: false }],
  ])(
    'simulating millions of blackjack rounds by basic strategy gives the published house edge: %s deck(s)',
    async (decks, known, rules) => {
      // The simulation runs in a separate process of plain JavaScript, because it takes four times as long
      // inside the test runner.
      const program = join(import.meta.dirname, '../../../dist/test/domain/blackjack/simulate.js');
      const { stdout } = await promisify(execFile)(process.execPath, [
        program,
        decks,
        String(SIMULATED_ROUNDS),
        '20',
      ]);
      const simulated = JSON.parse(stdout) as Record<'edge' | 'standardError' | 'stakesPerRound', number>;
      const { edge, standardError, stakesPerRound } = simulated;
      expect(standardError).toBeGreaterThan(DEVIATION[0] / Math.sqrt(SIMULATED_ROUNDS));
      expect(standardError).toBeLessThan(DEVIATION[1] / Math.sqrt(SIMULATED_ROUNDS));
      expect(Math.abs(edge - known) / standardError).toBeLessThan(ERRORS_MAX);
      // The return that a worker reports for such a table refers to all stakes, not to initial wagers.
      const told = basicStrategyReturn(rulesHash(rules))!;
      const returned = 1 - edge / stakesPerRound;
      expect(Math.abs(returned - told) / (standardError / stakesPerRound)).toBeLessThan(ERRORS_MAX);
      expect(Math.abs(stakesPerRound - known / (1 - told))).toBeLessThan(STAKES_OFF_MAX);
    },
  );

  test('the dealer reaches each total as often as an exact count of one deck says, for each up card', () => {
    const exact = dealerOutcomes();
    expect(exact.get('6')!.bust).toBeCloseTo(0.420823, 6);
    expect(exact.get('T')!.bust).toBeCloseTo(0.232499, 6);
    expect(exact.get('all')!.bust).toBeCloseTo(0.297967, 6);
    for (const up of '23456789TA') {
      const rounds = DEALER_ROUNDS;
      const counts = dealerCounts(up, rounds);
      for (const [outcome, share] of Object.entries(exact.get(up)!)) {
        const error = Math.sqrt((share * (1 - share)) / rounds);
        expect(
          Math.abs((counts.get(outcome) ?? 0) / rounds - share),
          `${up}: ${outcome}`,
        ).toBeLessThanOrEqual(ERRORS_MAX * error);
      }
    }
  });

  test('a natural comes in 0.0474895 of hands from six decks, and insurance costs 23/311 of its stake', () => {
    const shoe = new SimulatedShoe(6, 21);
    const rounds = NATURAL_ROUNDS;
    let naturals = 0;
    let aces = 0;
    let tens = 0;
    for (let i = 0; i < rounds; i++) {
      shoe.play((cards) => {
        const round = new PlayedRound(DEFAULT_RULES, cards);
        if (isNatural(round.hands[0]!.cards)) naturals++;
        if (round.phase === 'INSURANCE') {
          aces++;
          if (isNatural(round.dealer)) tens++;
        }
      });
    }
    expect(Math.abs(naturals / rounds - 0.0474895)).toBeLessThan(ERRORS_MAX * Math.sqrt(0.0474895 / rounds));
    const cost = 1 - 3 * (tens / aces);
    expect(Math.abs(cost - 23 / 311)).toBeLessThan(ERRORS_MAX * 3 * Math.sqrt(0.21 / aces));
  });
});

/**
 * Counts how often the dealer reaches each total after the peek, with one deck from which the player takes no
 * cards.
 */
function dealerCounts(up: string, rounds: number): Map<string, number> {
  const below = generator(22);
  const upCard = cardOf(`${up}s`);
  const deck = Array.from({ length: 52 }, (_, card) => card).filter((card) => card !== upCard);
  // The player's cards come from another deck and make a total on which the player stands.
  const [first, second] = [cardOf('Ts'), cardOf('7s')];
  const rules = { ...DEFAULT_RULES, insurance: false };
  const counts = new Map<string, number>();
  for (let done = 0; done < rounds; ) {
    for (let i = 0; i < 12; i++) {
      const j = i + below(deck.length - i);
      [deck[i], deck[j]] = [deck[j]!, deck[i]!];
    }
    const round = new PlayedRound(rules, [first, upCard, second, ...deck.slice(0, 12)]);
    if (round.phase === 'SETTLED') continue;
    round.move('stand');
    const total = handTotal(round.dealer);
    const outcome = total > 21 ? 'bust' : String(total);
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    done++;
  }
  return counts;
}
