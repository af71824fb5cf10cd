/** Outcomes that testers choose: what the service may answer to a choice, and what a spin makes of one. */
import { amount, at } from './decimal.js';
import { type Answer, type ChoiceRequest, outcomeOf, parsed } from './exchange.js';
import type { Combination } from './sheet.js';
import { choiceKey, type Game, type SpinRecord, type State } from './state.js';

/** A spin is marked where it was chosen and nowhere else, and shows what was chosen. */
export const fitsChoice = ({ json }: SpinRecord, choice: Combination | undefined): boolean =>
  choice === undefined
    ? at(json, 'sandbox') === undefined
    : at(json, 'sandbox', 'forced') === true && at(json, 'presentation', 'comboString') === choice.text;

/**
 * @param game of the partner; undefined: it has none of this id
 * @param isUnheard whether the choice was made is not known
 * @returns the states after it; a text where something else was expected
 */
export function judgeChoice(
  state: State,
  request: ChoiceRequest,
  game: Game | undefined,
  isSandbox: boolean,
  answer: Answer,
  isUnheard: boolean,
): readonly State[] | string {
  const { gameId, playerId, combination } = request;
  const chosen = game?.sheet.combinations[combination];
  let expected = '200';
  if (!isSandbox) expected = '404 KS-4215';
  else if (game === undefined) expected = '403 KS-4006';
  else if (chosen === undefined) expected = '400 KS-4101';
  if (chosen === undefined || expected !== '200')
    return isUnheard || outcomeOf(answer) === expected ? [state] : expected;
  const next = { ...state, choices: new Map(state.choices).set(choiceKey(gameId, playerId), chosen) };
  if (isUnheard) return [state, next];
  const json = parsed(answer.text);
  const isRight =
    outcomeOf(answer) === '200' &&
    at(json, 'gameId') === String(gameId) &&
    at(json, 'playerId') === playerId &&
    at(json, 'combinationIndex') === String(combination) &&
    at(json, 'outcome', 'prizeTier') === String(chosen.tier) &&
    amount(at(json, 'outcome', 'payoutUsd')) === chosen.payout;
  return isRight ? [next] : `200 with «${chosen.text}», which pays ${chosen.payout} micro-USD`;
}
