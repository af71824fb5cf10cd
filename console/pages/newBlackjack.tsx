/** Form that creates a blackjack table with its rules. */
import { api, bodyOf, type Schemas } from '../api.js';
import type { Question } from '../dialog.js';
import { Field, Form } from '../form.js';
import { FormDialog, Toolbar } from '../formDialog.js';
import { GameLink, PartnerField, usePartnerOf } from '../names.js';

type Rules = Schemas['BlackjackRulesBody'];

const NO_YES = ['no', 'yes'];
const YES_NO = ['yes', 'no'];

/** The rules with their labels and choices. The first choice of a rule is its default. */
const RULES: readonly (readonly [rule: keyof Rules, label: string, choices: readonly string[]])[] = [
  ['decks', 'Decks', ['6', '1', '2', '3', '4', '5', '7', '8']],
  ['blackjackPays', 'A natural pays', ['3:2', '6:5']],
  ['dealerHitsSoft17', 'Dealer hits soft 17', NO_YES],
  ['peek', 'Dealer peeks for a natural', YES_NO],
  ['doubleOn', 'Double on', ['any2', '9-11']],
  ['doubleAfterSplit', 'Double after a split', YES_NO],
  ['maxHands', 'Maximum number of hands (1: no split)', ['2', '1', '3', '4']],
  ['resplitAces', 'Resplit aces', NO_YES],
  ['hitSplitAces', 'Hit split aces', NO_YES],
  ['insurance', 'Insurance', YES_NO],
  ['lateSurrender', 'Late surrender', NO_YES],
];

/** Converts the chosen value of a rule to the value that the API expects. */
function sent(choice: string): boolean | number | string {
  if (YES_NO.includes(choice)) return choice === 'yes';
  return /^\d+$/.test(choice) ? Number(choice) : choice;
}

const questionOf = ({ displayName, wagerUsd }: Record<string, string>): Question => ({
  title: `Create ${displayName}?`,
  consequence: `A deal costs $${wagerUsd}. The wager and the rules of the table can't be changed later.`,
  button: 'Create the table',
});

export function NewBlackjack() {
  const partnerOf = usePartnerOf();
  const create = async (values: Record<string, string>) => {
    const body = {
      displayName: values.displayName!,
      configName: values.configName!,
      wagerUsd: Number(values.wagerUsd),
      rules: Object.fromEntries(RULES.map(([rule]) => [rule, sent(values[rule]!)])) as Rules,
      roundTimeoutS: Number(values.roundTimeoutS),
    };
    const params = { path: { id: partnerOf(values.partner!) } };
    const { gameConfigId } = await bodyOf(api.POST('/partners/{id}/blackjack-games', { params, body }));
    return (
      <>
        Made: <GameLink id={gameConfigId}>game {gameConfigId}</GameLink>.
      </>
    );
  };
  return (
    <Toolbar>
      <FormDialog title="New blackjack table">
        <Form
          label="New blackjack table"
          button="Create table"
          act={create}
          confirm={(values) => [questionOf(values)]}
        >
          <PartnerField />
          <Field label="Name" name="displayName" required hint="Shown to players" />
          <Field label="System name" name="configName" required hint="Uppercase letters, digits and _" />
          <Field label="Price of a deal in USD" name="wagerUsd" type="number" required />
          {RULES.map(([rule, label, choices]) => (
            <Field key={rule} label={label} name={rule} options={choices} />
          ))}
          <Field
            label="Seconds until an open round is played out"
            name="roundTimeoutS"
            type="number"
            value={86_400}
            required
          />
        </Form>
      </FormDialog>
    </Toolbar>
  );
}
