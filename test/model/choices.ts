/**
 * Models outcomes that testers choose: the permitted responses to a choice, and the effect of a choice on a
 * spin.
 */
import { amount, at } from './decimal.js';
import { type Answer, type ChoiceRequest, outcomeOf, parsed } from './exchange.js';
import type { Combination } from './sheet.js';
import { choiceKey, type Game, type SpinRecord, type State } from './state.js';

/**
 * Checks that a spin is marked as forced exactly if a tester chose its outcome, and that it has the chosen
 * outcome.
 */
export const fitsChoice = ({ json }: SpinRecord, choice: Combination | undefined): boolean =>
  choice === undefined
    ? at(json, 'sandbox') === undefined
    : at(json, 'sandbox', 'forced') === true && at(json, 'presentation', 'comboString') === choice.text;

/**
 * @param game game of the partner; undefined if the partner has no game with this id
 * @param isUnheard true if it is unknown whether the choice was made
 * @returns the states after the choice, or a text that names the expected response
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
