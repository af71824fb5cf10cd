/** Form for the rules of a communal progressive, with a row for each of its tiers. */
import { useState } from 'preact/hooks';
import { api, bodyOf, type Schemas } from '../api.js';
import { Field, Form } from '../form.js';

type Pot = Schemas['OperatorCommunal'];
type Tier = Pot['tiers'][number];

const TIERS_MAX = 10;
const NO_YES = ['no', 'yes'];
const EMPTY_COMMUNITY = ['TO_TRIGGER', 'RETURN_TO_BUDGET'];
const ON_SHORT_BUDGET = ['SKIP', 'PAY_REMAINING'];

/** Proposed rules for a game that has none yet. */
const FIRST_RULES: Omit<Schemas['CommunalBody'], 'reason' | 'resetProgress'> = {
  enabled: true,
  triggerInterval: 100,
  triggerSplitPct: 50,
  communitySplitPct: 50,
  windowMinutes: 60,
  communitySize: 100,
  tiers: [{ tierLevel: 1, tierName: 'Shared', triggerAtSpins: 1000, amountUsd: '5.00' }],
};

/** Returns the request body for the values of the form. The two shares of an event sum to 100 %. */
function bodyFor(values: Record<string, string>, tiers: number): Schemas['CommunalBody'] {
  const triggerSplitPct = Number(values.triggerSplitPct);
  return {
    enabled: values.enabled === 'yes',
    triggerInterval: Number(values.triggerInterval),
    triggerSplitPct,
    communitySplitPct: Number((100 - triggerSplitPct).toFixed(2)),
    windowMinutes: Number(values.windowMinutes),
    communitySize: Number(values.communitySize),
    emptyCommunity: values.emptyCommunity as Pot['emptyCommunity'],
    onShortBudget: values.onShortBudget as Pot['onShortBudget'],
    tiers: Array.from({ length: tiers }, (_, i) => ({
      tierLevel: i + 1,
      tierName: values[`tierName${i}`]!,
      triggerAtSpins: Number(values[`triggerAtSpins${i}`]),
      amountUsd: values[`amountUsd${i}`]!,
    })),
    resetProgress: values.resetProgress === 'yes',
    reason: values.reason!,
  };
}

/** @param pot undefined: the game has no progressive yet */
export function RulesForm({
  id,
  name,
  pot,
  onChanged,
}: {
  readonly id: number;
  readonly name: string;
  readonly pot: Pot | undefined;
  readonly onChanged: () => void;
}) {
  const rules = pot ?? FIRST_RULES;
  const [tiers, setTiers] = useState<readonly Tier[]>(rules.tiers);
  const last = tiers.at(-1)!;
  const add = (): void =>
    setTiers([...tiers, { ...last, tierLevel: tiers.length + 1, triggerAtSpins: 10 * last.triggerAtSpins }]);
  return (
    <Form
      label="Rules"
      button="Set the rules"
      isDangerous
      keepsValues
      confirm={({ resetProgress }) => [
        {
          title: `Set the rules of ${name}?`,
          consequence: `The rules apply from the next spin on. ${
            resetProgress === 'yes'
              ? 'The counter starts again at 0.'
              : 'The counter keeps the spins counted so far.'
          }`,
          button: 'Set the rules',
          isDangerous: true,
          asksReason: true,
        },
      ]}
      act={async (values) => {
        const params = { path: { id } };
        const body = bodyFor(values, tiers.length);
        await bodyOf(api.PUT('/games/{id}/communal', { params, body }));
        onChanged();
        return 'The rules are in force.';
      }}
    >
      <Field label="Runs" name="enabled" options={NO_YES} value={rules.enabled ? 'yes' : 'no'} />
      <Field
        label="Interval in spins"
        name="triggerInterval"
        type="number"
        value={rules.triggerInterval}
        required
        hint="Each tier fires at a multiple of it"
      />
      <Field
        label="Share of the player who fires, in %"
        name="triggerSplitPct"
        type="number"
        value={rules.triggerSplitPct}
        required
        hint="The community gets the remaining share"
      />
      <Field
        label="Community: players of the last minutes"
        name="windowMinutes"
        type="number"
        value={rules.windowMinutes}
        required
      />
      <Field
        label="Community: maximum number of players"
        name="communitySize"
        type="number"
        value={rules.communitySize}
        required
      />
      <Field
        label="If the community is empty"
        name="emptyCommunity"
        options={EMPTY_COMMUNITY}
        value={rules.emptyCommunity}
      />
      <Field
        label="If the budget is too small"
        name="onShortBudget"
        options={ON_SHORT_BUDGET}
        value={rules.onShortBudget}
      />
      <Field label="Restart the counter at 0" name="resetProgress" options={NO_YES} />
      {tiers.map((tier, i) => (
        // A tier has no identity other than its level.
        <fieldset key={tier.tierLevel}>
          <legend>Tier {tier.tierLevel}</legend>
          <Field label="Name" name={`tierName${i}`} value={tier.tierName} required />
          <Field
            label="Fires each, in spins"
            name={`triggerAtSpins${i}`}
            type="number"
            value={tier.triggerAtSpins}
            required
          />
          <Field label="Pays, in USD" name={`amountUsd${i}`} value={tier.amountUsd} required />
        </fieldset>
      ))}
      <div class="actions">
        {tiers.length < TIERS_MAX ? (
          <button type="button" class="quiet" onClick={add}>
            Add a tier
          </button>
        ) : null}
        {tiers.length > 1 ? (
          <button type="button" class="quiet" onClick={() => setTiers(tiers.slice(0, -1))}>
            Remove tier {tiers.length}
          </button>
        ) : null}
      </div>
    </Form>
  );
}
