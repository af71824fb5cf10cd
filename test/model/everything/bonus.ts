/** Commands that set the rules of a communal progressive and fund it. */
import fc from 'fast-check';
import { bonusText } from '../communal.js';
import { amount, at } from '../decimal.js';
import { type Command, gameOf, NOTHING } from './command.js';
import { same } from './session.js';

const INTERVAL = 10;

interface Rules {
  readonly enabled: boolean;
  readonly resetProgress: boolean;
  readonly triggerPart: number;
  readonly communitySize: number;
  readonly amounts: readonly string[];
  readonly emptyCommunity: string;
  readonly onShortBudget: string;
}

export const setBonus: Command<Rules> = {
  name: 'set bonus',
  weight: 3,
  arbitrary: () =>
    fc.record({
      enabled: fc.integer({ min: 0, max: 4 }).map((number) => number > 0),
      resetProgress: fc.integer({ min: 0, max: 4 }).map((number) => number === 0),
      triggerPart: fc.constantFrom(0, 3333, 4000, 10_000),
      communitySize: fc.constantFrom(0, 1, 2, 100),
      amounts: fc.constantFrom(['0.000007'], ['5.00', '20.000001'], ['100.00'], ['0.01', '0.50', '3.00']),
      emptyCommunity: fc.constantFrom('TO_TRIGGER', 'RETURN_TO_BUDGET'),
      onShortBudget: fc.constantFrom('SKIP', 'PAY_REMAINING'),
    }),
  // The game remembers the players who spin after its communal progressive was first enabled.
  applies: (state, { enabled }) => gameOf(state, 'slot') !== undefined && (enabled || hasBonus(state)),
  async run(session, state, { triggerPart, amounts, ...choice }) {
    const game = gameOf(state, 'slot')!;
    const tiers = amounts.map((amountUsd, place) => ({
      tierLevel: place + 1,
      tierName: `Größe "${place + 1}"`,
      triggerAtSpins: INTERVAL * 2 ** place,
      amountUsd,
    }));
    const split = {
      triggerSplitPct: triggerPart / 100,
      communitySplitPct: (10_000 - triggerPart) / 100,
    };
    const body = { triggerInterval: INTERVAL, ...split, tiers, ...choice };
    const reply = await session.operator('PUT', `/games/${game.gameId}/communal`, body);
    session.expect(reply, 'set bonus', '200');
    const rules = {
      isEnabled: choice.enabled,
      interval: INTERVAL,
      triggerPart: BigInt(triggerPart),
      communitySize: choice.communitySize,
      returnsToBudget: choice.emptyCommunity === 'RETURN_TO_BUDGET',
      paysRemaining: choice.onShortBudget === 'PAY_REMAINING',
      tiers: tiers.map(({ tierName, triggerAtSpins, amountUsd }) => ({
        name: tierName,
        at: triggerAtSpins,
        amount: amount(amountUsd)!,
      })),
    };
    game.pot ??= {
      rules,
      version: 0,
      progress: 0,
      budget: 0n,
      paid: 0n,
      recent: [],
      events: [],
      fundings: new Map(),
    };
    game.pot.rules = rules;
    game.pot.version++;
    if (choice.resetProgress) game.pot.progress = 0;
    same('the version', at(reply.json, 'version'), String(game.pot.version));
    return { players: [], games: [game.gameId] };
  },
};

const hasBonus = (state: Parameters<typeof gameOf>[0]): boolean => gameOf(state, 'slot')?.pot !== undefined;

interface Funding {
  readonly amountUsd: string;
  readonly requestId: string;
}

export const fundBonus: Command<Funding> = {
  name: 'fund bonus',
  weight: 3,
  arbitrary: () =>
    fc.record({
      amountUsd: fc.constantFrom('0.000005', '30.00', '1000.00', '-0.000001', '-40.00'),
      requestId: fc.constantFrom('f1', 'f2', 'f3', 'f4'),
    }),
  applies: (state) => gameOf(state, 'slot') !== undefined,
  async run(session, state, { amountUsd, requestId }) {
    const game = gameOf(state, 'slot')!;
    const body = { amountUsd, reason: 'model', requestId };
    const reply = await session.operator('POST', `/games/${game.gameId}/communal/funding`, body);
    const { pot } = game;
    if (pot === undefined) {
      session.expect(reply, 'fund', '404 KS-4601');
      return NOTHING;
    }
    const known = pot.fundings.get(requestId);
    if (known !== undefined) {
      session.expect(reply, 'fund', known.amount === amountUsd ? '200' : '409 KS-4111');
      if (known.amount === amountUsd) same('a repeated funding has the first answer', reply.text, known.text);
      return NOTHING;
    }
    const micros = amount(amountUsd)!;
    if (pot.budget + micros < 0n) {
      session.expect(reply, 'fund', '409 KS-4603');
      return NOTHING;
    }
    session.expect(reply, 'fund', '200');
    pot.budget += micros;
    same('the budget', at(reply.json, 'budgetUsd'), bonusText(pot.budget));
    pot.fundings.set(requestId, { amount: amountUsd, text: reply.text });
    return { players: [], games: [game.gameId] };
  },
};
