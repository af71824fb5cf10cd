/**
 * Sets the communal progressives of a test with the reference model, as the operator does, and compares them
 * with the model at the end.
 */
import { bonusText } from './communal.js';
import { amount, at } from './decimal.js';
import { type Answered, complain } from './exchange.js';
import type { PartnerModel } from './model.js';
import type { BonusChoice } from './operations.js';

export type Operate = (method: string, path: string, body?: object) => Promise<Answered>;

const INTERVAL = 10;

export async function setBonus(
  operate: Operate,
  model: PartnerModel,
  { budget, triggerPart, ...choice }: BonusChoice,
): Promise<void> {
  const { gameId } = model.games[0]!;
  const path = `/games/${gameId}/communal`;
  const tiers = choice.amounts.map((amountUsd, place) => ({
    tierLevel: place + 1,
    tierName: `Tier ${place + 1}`,
    triggerAtSpins: INTERVAL * (place + 1),
    amountUsd,
  }));
  const set = await operate('PUT', path, {
    enabled: true,
    triggerInterval: INTERVAL,
    triggerSplitPct: triggerPart / 100,
    communitySplitPct: (10_000 - triggerPart) / 100,
    tiers,
    communitySize: choice.communitySize,
    emptyCommunity: choice.returnsToBudget ? 'RETURN_TO_BUDGET' : 'TO_TRIGGER',
    onShortBudget: choice.paysRemaining ? 'PAY_REMAINING' : 'SKIP',
  });
  if (set.status !== 200) complain(set, 'Expected 200');
  const funding = { amountUsd: budget, reason: 'model', requestId: 'first' };
  const funded = await operate('POST', `${path}/funding`, funding);
  if (funded.status !== 200) complain(funded, 'Expected 200');
  const rules = {
    ...choice,
    interval: INTERVAL,
    triggerPart: BigInt(triggerPart),
    tiers: tiers.map(({ tierName, triggerAtSpins, amountUsd }) => ({
      name: tierName,
      at: triggerAtSpins,
      amount: amount(amountUsd)!,
    })),
  };
  model.setPot(gameId, rules, amount(budget)!);
}

/** Reads the pots as the operator does, and checks that they match a possible state of the model. */
export async function judgePots(operate: Operate, model: PartnerModel): Promise<void> {
  for (const gameId of model.states[0]!.pots.keys()) {
    const seen = await operate('GET', `/games/${gameId}/communal`);
    const wanted = model.states.map((state) => {
      const { progress, budget } = state.pots.get(gameId)!;
      return `${progress} ${bonusText(budget)}`;
    });
    const found = `${at(seen.json, 'progress')} ${at(seen.json, 'budgetUsd')}`;
    if (!wanted.includes(found)) complain(seen, `Expected progress and budget ${wanted.join(' or ')}`);
  }
}
