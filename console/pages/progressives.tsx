/**
 * Pages of communal progressives: the games that have one, the state and events of one, and forms for its
 * rules and funding.
 */
import { useState } from 'preact/hooks';
import { COMMUNAL_EVENTS, TIERS } from '../../src/api/client/views/games.js';
import { api, bodyOf, type Schemas } from '../api.js';
import { Field, Form } from '../form.js';
import { count, percent, usd } from '../format.js';
import { FormDialog, Toolbar } from '../formDialog.js';
import { useLoad } from '../load.js';
import { GameLink, usePartnerColumn, useTitle } from '../names.js';
import { go, linkTo, type Place } from '../router.js';
import { useMayChange } from '../session.js';
import { columnsOf, Table } from '../table.js';
import { Facts, Load, Panel, pageOf, Status } from '../ui.js';
import { RulesForm } from './progressiveRules.js';

type Pot = Schemas['OperatorCommunal'];

export function Progressives() {
  const mayChange = useMayChange();
  const partnerColumn = usePartnerColumn();
  const loaded = useLoad(() => bodyOf(api.GET('/progressives', {})), []);
  return (
    <>
      {mayChange ? <ChooseGame /> : null}
      <Load loaded={loaded}>
        {({ progressives }) => (
          <Table
            caption="Communal progressives"
            rows={progressives}
            keyOf={({ gameConfigId }) => gameConfigId}
            empty="There are no communal progressives yet. Add one to a slot game with New progressive."
            columns={[
              {
                heading: 'Game',
                cell: ({ gameConfigId, displayName }) => (
                  <a href={linkTo(['progressives', gameConfigId])}>{displayName}</a>
                ),
              },
              partnerColumn,
              {
                heading: 'Status',
                cell: ({ status }) => <Status of={status} />,
              },
              { heading: 'Budget', cell: ({ budgetUsd }) => usd(budgetUsd), isNumber: true },
              { heading: 'Paid', cell: ({ paidUsd }) => usd(paidUsd), isNumber: true },
            ]}
          />
        )}
      </Load>
    </>
  );
}

const GAMES_PROPOSED = 100;

/** Input for a slot game by name, system name or id, with the newest games as suggestions. */
function ChooseGame() {
  const query = { limit: GAMES_PROPOSED };
  const loaded = useLoad(() => bodyOf(api.GET('/games', { params: { query } })), []);
  const slots = (loaded.data?.games ?? []).filter(({ gameType }) => gameType === 'slot');
  const idOf = (text: string): number => {
    const found = slots.find((game) =>
      [String(game.gameConfigId), game.configName, game.displayName].includes(text.trim()),
    );
    if (found !== undefined) return found.gameConfigId;
    if (/^[1-9]\d{0,8}$/.test(text.trim())) return Number(text);
    throw new Error(`None of the newest slot games has the name ${text}`);
  };
  return (
    <Toolbar>
      <FormDialog title="New progressive">
        <Form
          label="Choose a game"
          button="Go on"
          act={async ({ game }) => {
            go(['progressives', idOf(game!)]);
            return null;
          }}
        >
          <Field
            label="Game"
            name="game"
            required={true}
            hint="Name, system name or id"
            proposals={slots.map(({ configName, displayName }) => ({
              value: configName,
              label: displayName,
            }))}
          />
        </Form>
      </FormDialog>
    </Toolbar>
  );
}

export function ProgressiveDetail({ place }: { readonly place: Place }) {
  const id = Number(place.parts[1]);
  const params = { path: { id } };
  const game = useLoad(() => bodyOf(api.GET('/games/{id}', { params })), [id]);
  const pot = useLoad(() => bodyOf(api.GET('/games/{id}/communal', { params })), [id]);
  useTitle(game.data === undefined ? undefined : `Progressive of ${game.data.displayName}`);
  const name = game.data?.displayName ?? `game ${id}`;
  return (
    <>
      <Changes id={id} name={name} pot={pot.data} onChanged={pot.reload} />
      <Load loaded={pot}>
        {(shown) => (
          <>
            <Facts
              of={[
                [
                  'Game',
                  <GameLink key="game" id={id}>
                    {name}
                  </GameLink>,
                ],
                ['Status', <Status key="status" of={shown.enabled ? 'active' : 'inactive'} />],
                ['Budget', usd(Number(shown.budgetUsd))],
                ['Paid', `$${shown.paidUsd}`],
                ['Progress', `${count(shown.progress)} spins`],
                ['Addition to the return', percent(Number(shown.bonusRtp), 3)],
                ['Interval', `${count(shown.triggerInterval)} spins`],
                ['Split', `${shown.triggerSplitPct} % fires, ${shown.communitySplitPct} % community`],
                ['Community', `${shown.communitySize} players of the last ${shown.windowMinutes} minutes`],
              ]}
            />
            <Panel title="Tiers">
              <Table
                caption="Tiers"
                rows={shown.tiers}
                keyOf={({ tierLevel }) => tierLevel}
                empty="None."
                columns={columnsOf(TIERS)}
              />
            </Panel>
          </>
        )}
      </Load>
      <Events place={place} id={id} />
    </>
  );
}

function Events({ place, id }: { readonly place: Place; readonly id: number }) {
  const page = pageOf(place);
  const params = { path: { id }, query: { page, limit: 20 } };
  const loaded = useLoad(() => bodyOf(api.GET('/games/{id}/communal/events', { params })), [id, page]);
  return (
    <Panel title="Events">
      <Load loaded={loaded}>
        {({ events, limit, total }) => (
          <Table
            caption="Events, newest first"
            rows={events}
            pages={{ place, limit, total }}
            keyOf={({ eventId }) => eventId}
            empty="No events yet. An event is listed here when the counter reaches a tier."
            columns={columnsOf(COMMUNAL_EVENTS)}
          />
        )}
      </Load>
    </Panel>
  );
}

function Changes({
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
  // The request id is kept until the funding is made. If the answer is lost and the form is sent again, the
  // funding still takes effect only once.
  const [requestId, setRequestId] = useState(() => crypto.randomUUID());
  const params = { path: { id } };
  if (!useMayChange()) return null;
  return (
    <Toolbar>
      {pot === undefined ? null : (
        <FormDialog title="Change the budget">
          <Form
            label="Fund"
            button="Change the budget"
            isDangerous
            confirm={({ amountUsd }) => [
              {
                title: `Change the budget of ${name} by $${amountUsd}?`,
                consequence: 'The budget is paid out to players. A negative amount withdraws unused budget.',
                button: 'Change the budget',
                isDangerous: true,
                asksReason: true,
              },
            ]}
            act={async ({ amountUsd, reason }) => {
              const body = { amountUsd: amountUsd!, reason: reason!, requestId };
              await bodyOf(api.POST('/games/{id}/communal/funding', { params, body }));
              setRequestId(crypto.randomUUID());
              onChanged();
              return 'The budget is changed.';
            }}
          >
            <Field
              label="Amount in USD"
              name="amountUsd"
              required
              hint="For example 100.00; a negative amount withdraws"
            />
          </Form>
        </FormDialog>
      )}
      <FormDialog title={pot === undefined ? 'Set the first rules' : 'Change the rules'}>
        <RulesForm id={id} name={name} pot={pot} onChanged={onChanged} />
      </FormDialog>
    </Toolbar>
  );
}
