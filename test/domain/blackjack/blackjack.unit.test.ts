import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  ACTIONS,
  IllegalActionError,
  legalActions,
  type Move,
  PlayedRound,
  replayRound,
  roundMoney,
} from '../../../src/domain/games/blackjack.js';
import {
  type BlackjackRules,
  checkRules,
  DEFAULT_RULES,
  rulesHash,
  stakeFault,
} from '../../../src/domain/games/blackjackRules.js';
import { cardText, DECK_CARDS, handTotal, isSoft } from '../../../src/domain/games/cards.js';
import { shoeCommitment, shuffleShoe } from '../../../src/domain/games/shoe.js';
import { cardOf } from './cardOf.js';
import { reference } from './reference.js';

/** The wager in micro-USD. Every stake must be divisible into halves and fifths. */
const WAGER = 100;
const cards = (text: string): number[] => text.split(' ').map(cardOf);
const play = (rules: Partial<BlackjackRules>, shoe: string, ...moves: Move[]) =>
  replayRound({ ...DEFAULT_RULES, ...rules }, cards(shoe), moves);
const money = (...args: Parameters<typeof play>) => {
  const { wageredMicros, payoutMicros } = roundMoney(play(...args), WAGER);
  return [wageredMicros, payoutMicros];
};

describe('blackjack cards', () => {
  test('gives each of the 52 cards a unique text, and reads each text back as the same card', () => {
    const texts = Array.from({ length: DECK_CARDS }, (_, card) => cardText(card));
    expect(new Set(texts).size).toBe(DECK_CARDS);
    expect(texts.map(cardOf)).toEqual(Array.from({ length: DECK_CARDS }, (_, card) => card));
    for (const wrong of ['', '1s', 'Tx', '10s', 'th']) expect(() => cardOf(wrong)).toThrow(RangeError);
  });

  test.each([
    ['As 6d', 17, true],
    ['As 6d Th', 17, false],
    ['As Ad', 12, true],
    ['As Ad 9h', 21, true],
    ['Ts Jd 2c', 22, false],
  ])('counts the hand %s as %i', (text, total, soft) => {
    expect(handTotal(cards(text))).toBe(total);
    expect(isSoft(cards(text))).toBe(soft);
  });
});

describe('a blackjack round', () => {
  test.each<[string, Partial<BlackjackRules>, string, Move[], number, number]>([
    ['a natural pays 3:2 at once', {}, 'As 9d Ks 7c', [], 100, 250],
    ['a natural pays 6:5 where the rules say so', { blackjackPays: '6:5' }, 'As 9d Ks 7c', [], 100, 220],
    ['two naturals push', {}, 'As Td Ks Ac', [], 100, 100],
    ['a dealer that peeks a natural takes the stake at once', {}, '9s Td Ks Ac', [], 100, 0],
    ['insurance pays 2:1', {}, '9s Ad Ks Tc', ['insurance'], 150, 150],
    ['insurance that is not needed is lost', {}, '9s Ad Ks 7c', ['insurance', 'stand'], 150, 200],
    ['even money: an insured natural against a natural', {}, 'As Ad Ks Tc', ['insurance'], 150, 250],
    ['a doubled hand wins twice its stake', {}, '6s 6d 5h Tc Td Kc', ['double'], 200, 400],
    ['a bust hand loses without a card for the dealer', {}, 'Ts 6d 6h Tc Td', ['hit'], 100, 0],
    ['surrender returns half', { lateSurrender: true }, 'Ts Td 6h 9c', ['surrender'], 100, 50],
    [
      'split hands play one after the other',
      {},
      '8s 6d 8h Tc 3h Td 9c Kd',
      ['split', 'stand', 'stand'],
      200,
      400,
    ],
    ['a split ace with a ten is no natural', {}, 'As 6d Ah Tc Kh Qd Kd', ['split'], 200, 400],
    [
      'without a peek a natural takes doubled stakes too',
      { peek: false },
      '6s Td 5h Ac Ts',
      ['double'],
      200,
      0,
    ],
    ['a push returns the stake', {}, 'Ts 9d 9h Tc', ['stand'], 100, 100],
    ['a timeout declines insurance and stands', {}, 'Ts Ad 9h 7c', ['timeout'], 100, 200],
  ])('blackjack rule: %s', (_name, rules, shoe, moves, wagered, payout) => {
    expect(money(rules, shoe, ...moves)).toEqual([wagered, payout]);
  });

  test('stands automatically on a blackjack hand with a total of 21', () => {
    const round = play({}, '5s 6d 6h Tc Td 5c', 'hit');
    expect(round.phase).toBe('SETTLED');
    expect(round.hands[0]!.status).toBe('STOOD');
  });

  test('deals a waiting blackjack hand its second card when the hand becomes active', () => {
    const round = new PlayedRound(DEFAULT_RULES, cards('8s 6d 8h Tc 3h 9d Td'));
    round.move('split');
    expect(round.hands.map(({ cards, status }) => [cards.length, status])).toEqual([
      [2, 'ACTIVE'],
      [1, 'WAITING'],
    ]);
    round.move('stand');
    expect(round.hands.map(({ cards, status }) => [cards.map(cardText).join(), status])).toEqual([
      ['8s,3h', 'STOOD'],
      ['8h,9d', 'ACTIVE'],
    ]);
  });

  test('deals split aces one card each, and allows another split only if the rules do', () => {
    expect(legalActions(play({ maxHands: 4 }, 'As 6d Ah Tc Ac 5d 5c Td', 'split')).length).toBe(0);
    const again = play({ maxHands: 4, resplitAces: true }, 'As 6d Ah Tc Ac 5d 5c Td', 'split');
    expect(legalActions(again)).toEqual(['stand', 'split']);
    const hit = play({ hitSplitAces: true }, 'As 6d Ah Tc 4c 5d 5c Td', 'split');
    expect(legalActions(hit)).toEqual(['hit', 'stand', 'double']);
  });

  test('rejects an illegal blackjack action and leaves the round unchanged', () => {
    const round = new PlayedRound(DEFAULT_RULES, cards('Ts 6d 6h Tc Td'));
    const before = JSON.stringify(round);
    for (const action of ['split', 'insurance', 'noInsurance', 'surrender'] as const)
      expect(() => round.move(action)).toThrow(IllegalActionError);
    expect(JSON.stringify(round)).toBe(before);
    round.move('hit');
    for (const action of [...ACTIONS, 'timeout'] as const)
      expect(() => round.move(action)).toThrow(IllegalActionError);
  });

  test('plays random blackjack moves under random rules as an independent reference does, with the same payouts', () => {
    const rulesOf = fc.record({
      decks: fc.constant(1),
      dealerHitsSoft17: fc.boolean(),
      blackjackPays: fc.constantFrom('3:2' as const, '6:5' as const),
      doubleOn: fc.constantFrom('any2' as const, '9-11' as const),
      doubleAfterSplit: fc.boolean(),
      maxHands: fc.integer({ min: 1, max: 4 }),
      resplitAces: fc.boolean(),
      hitSplitAces: fc.boolean(),
      peek: fc.boolean(),
      insurance: fc.boolean(),
      lateSurrender: fc.boolean(),
    });
    // A shoe of few ranks makes pairs, aces and naturals common.
    const shoeOf = fc.array(
      fc
        .tuple(fc.constantFrom(...'AA8823456789TJQK'), fc.constantFrom(...'shdc'))
        .map((pair) => pair.join('')),
      { minLength: 60, maxLength: 60 },
    );
    const movesOf = fc.array(fc.nat(1000), { minLength: 0, maxLength: 16 });
    let illegal = 0;
    let settled = 0;
    fc.assert(
      fc.property(rulesOf, shoeOf, movesOf, (rules, shoe, choices) => {
        const round = new PlayedRound(rules, shoe.map(cardOf));
        const made: Move[] = [];
        for (const choice of [...choices, -1]) {
          const expected = reference(rules, shoe, made)!;
          expect(view(round)).toEqual({
            ...expected,
            hands: expected.hands.map(({ cards, stakes, fate }) => ({ cards, stakes, fate })),
          });
          if (choice < 0 || expected.over) break;
          // Most choices are legal actions, and every fifth choice is any action.
          const from = choice % 5 === 0 ? ACTIONS : legalActions(round);
          const action = from[Math.floor(choice / 5) % from.length]!;
          if (reference(rules, shoe, [...made, action]) === undefined) {
            illegal++;
            expect(() => round.move(action)).toThrow(IllegalActionError);
          } else {
            round.move(action);
            made.push(action);
          }
        }
        if (round.phase === 'SETTLED') settled++;
        expect(view(replayRound(rules, shoe.map(cardOf), made))).toEqual(view(round));
      }),
      { numRuns: 8_000, seed: 19 },
    );
    expect(illegal).toBeGreaterThan(500);
    expect(settled).toBeGreaterThan(2000);
  });
});

const FATES = {
  ACTIVE: 'open',
  WAITING: 'later',
  STOOD: 'stood',
  BUST: 'bust',
  SURRENDERED: 'gaveUp',
  NATURAL: 'natural',
} as const;

/** Converts a round to the form of the reference implementation. */
function view(round: ReturnType<typeof replayRound>) {
  const { wageredMicros, payoutMicros = 0 } = roundMoney(round, WAGER);
  return {
    over: round.phase === 'SETTLED',
    asksInsurance: round.phase === 'INSURANCE',
    dealer: round.dealer.map(cardText),
    hands: round.hands.map(({ cards, isDoubled, status }) => ({
      cards: cards.map(cardText),
      stakes: isDoubled ? 2 : 1,
      fate: FATES[status],
    })),
    turn: round.activeHand ?? -1,
    allowed: (legalActions(round) as string[]).sort(),
    staked: wageredMicros / 5,
    returned: payoutMicros / 5,
  };
}

describe('blackjack rules', () => {
  test('fills missing blackjack rules with defaults, and reports all faults', () => {
    expect(checkRules({ decks: 1 })).toEqual({ rules: { ...DEFAULT_RULES, decks: 1 } });
    const checked = checkRules({ decks: 9, peek: 1, blackjackPays: '1:1', hand: 2 });
    expect('faults' in checked && checked.faults.map(({ path }) => path)).toEqual([
      '/rules/decks',
      '/rules/peek',
      '/rules/blackjackPays',
      '/rules/hand',
    ]);
    for (const name of ['__proto__', 'constructor', 'toString'])
      expect('faults' in checkRules(JSON.parse(`{"${name}": 1}`))).toBe(true);
  });

  test('hashes all blackjack rules, regardless of their order', () => {
    const reversed = Object.fromEntries(Object.entries(DEFAULT_RULES).reverse()) as unknown as BlackjackRules;
    expect(rulesHash(reversed)).toEqual(rulesHash(DEFAULT_RULES));
    const hashes = Object.entries(DEFAULT_RULES).map(([name, value]) => {
      const other = typeof value === 'boolean' ? !value : typeof value === 'number' ? value + 1 : `${value}x`;
      return rulesHash({ ...DEFAULT_RULES, [name]: other }).toString('hex');
    });
    expect(new Set([...hashes, rulesHash(DEFAULT_RULES).toString('hex')]).size).toBe(12);
  });

  test('requires a blackjack wager whose half and whose payout for a natural are whole micro-USD', () => {
    expect(stakeFault(DEFAULT_RULES, 2)).toBeUndefined();
    expect(stakeFault(DEFAULT_RULES, 3)).toMatch('half');
    expect(stakeFault({ ...DEFAULT_RULES, blackjackPays: '6:5' }, 12)).toMatch('6:5');
    expect(stakeFault({ ...DEFAULT_RULES, blackjackPays: '6:5' }, 10)).toBeUndefined();
  });
});

describe('blackjack shoes', () => {
  const seed = Buffer.alloc(32, 7);

  test('shuffles a shoe that has each card once for each deck, in an order determined by its seed', () => {
    for (const decks of [1, 6, 8]) {
      const shoe = shuffleShoe(decks, seed);
      const counts = new Uint8Array(DECK_CARDS);
      for (const card of shoe) counts[card]!++;
      expect([...counts]).toEqual(Array(DECK_CARDS).fill(decks));
    }
    expect(shuffleShoe(6, seed)).toEqual(shuffleShoe(6, seed));
    expect(shuffleShoe(6, Buffer.alloc(32, 8))).not.toEqual(shuffleShoe(6, seed));
    expect(() => shuffleShoe(6, Buffer.alloc(31))).toThrow(RangeError);
  });

  test('puts every card in every place of a shoe with equal probability', () => {
    const shoes = 20_000;
    const counts = Array.from({ length: DECK_CARDS }, () => new Float64Array(DECK_CARDS));
    const own = Buffer.alloc(32);
    for (let i = 0; i < shoes; i++) {
      own.writeUInt32LE(i);
      for (const [place, card] of shuffleShoe(1, own).entries()) counts[place]![card]!++;
    }
    const expected = shoes / DECK_CARDS;
    let chiSquare = 0;
    for (const row of counts) for (const count of row) chiSquare += (count - expected) ** 2 / expected;
    // The statistic has 51 × 51 degrees of freedom, so its mean is 2601 and its standard deviation 72.1.
    expect(Math.abs(chiSquare - 51 * 51)).toBeLessThan(4 * 72.1);
  });

  test('computes the commitment of a shoe from its game, index, rules and seed', () => {
    const shoe = { gameId: 9, index: 17, rulesHash: rulesHash(DEFAULT_RULES), seed };
    const all = [
      shoe,
      { ...shoe, gameId: 10 },
      { ...shoe, index: 18 },
      { ...shoe, rulesHash: rulesHash({ ...DEFAULT_RULES, decks: 1 }) },
      { ...shoe, seed: Buffer.alloc(32, 8) },
    ].map((each) => shoeCommitment(each).toString('hex'));
    expect(new Set(all).size).toBe(5);
  });
});
