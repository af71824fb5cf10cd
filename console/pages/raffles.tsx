/**
 * Pages of raffles: the remaining tickets, and a form for a new raffle that previews the return of its prize
 * table.
 */
import { useState } from 'preact/hooks';
import { stateOf } from '../../src/api/client/views/games.js';
import { api, bodyOf } from '../api.js';
import type { Question } from '../dialog.js';
import { Field, Form } from '../form.js';
import { count, percent, usd } from '../format.js';
import { FormDialog, Toolbar } from '../formDialog.js';
import { useLoad } from '../load.js';
import { GAME_COLUMN, GameLink, PartnerField, usePartnerColumn, usePartnerOf } from '../names.js';
import { type Preview, previewOf, prizesOf } from '../prizes.js';
import type { Place } from '../router.js';
import { useMayChange } from '../session.js';
import { Table } from '../table.js';
import { Facts, Load, Status } from '../ui.js';

const EVERY_MS = 5000;

export function Raffles({ place }: { readonly place: Place }) {
  const mayChange = useMayChange();
  const partnerColumn = usePartnerColumn();
  const loaded = useLoad(
    async () => {
      const { games } = await bodyOf(api.GET('/games', { params: { query: { limit: 100 } } }));
      return games.filter(({ gameType }) => gameType === 'raffle');
    },
    [],
    EVERY_MS,
  );
  return (
    <>
      {mayChange ? <NewRaffle partner={place.query.get('partner') ?? ''} onMade={loaded.reload} /> : null}
      <Load loaded={loaded}>
        {(raffles) => (
          <Table
            caption="Raffles, newest first"
            rows={raffles}
            keyOf={({ gameConfigId }) => gameConfigId}
            empty="There are no raffles among the newest 100 games. Create one with New raffle from a CSV file of its prizes."
            columns={[
              { ...GAME_COLUMN, heading: 'Raffle' },
              partnerColumn,
              { heading: 'Status', cell: (game) => <Status of={stateOf(game)} /> },
              { heading: 'Ticket', cell: ({ minWagerUsd }) => usd(minWagerUsd), isNumber: true },
              { heading: 'Tickets', cell: ({ poolSize }) => count(poolSize), isNumber: true },
              { heading: 'Left', cell: ({ ticketsRemaining }) => count(ticketsRemaining), isNumber: true },
              { heading: 'Paid', cell: ({ totals }) => usd(totals.paidOutUsd), isNumber: true },
            ]}
          />
        )}
      </Load>
    </>
  );
}

const PreviewFacts = ({ preview }: { readonly preview: Preview }) => (
  <>
    <Facts
      of={[
        ['Takes', usd(preview.takesUsd)],
        ['Returns', usd(preview.returnsUsd)],
        ['Return', percent(preview.rtp)],
        ['Winning tickets', count(preview.winning)],
      ]}
    />
    {preview.rtp > 1 ? (
      <p class="fault" role="alert">
        The prizes of this raffle exceed its takings.
      </p>
    ) : null}
  </>
);

/**
 * Returns the questions before a raffle is created. A raffle that pays back more than it takes needs two
 * confirmations.
 */
function questionsOf(values: Record<string, string>): Question[] {
  const { displayName } = values;
  const preview = previewOf(prizesOf(values.prizes!), Number(values.ticketPriceUsd), Number(values.poolSize));
  const loss = preview.returnsUsd - preview.takesUsd;
  const make: Question = {
    title: `Create ${displayName}?`,
    consequence: `${values.poolSize} tickets take in ${usd(preview.takesUsd)} and pay out ${usd(preview.returnsUsd)} (${percent(preview.rtp)}). The prizes can't be changed later.`,
    button: 'Create the raffle',
    isDangerous: loss > 0,
  };
  if (loss <= 0) return [make];
  return [
    {
      title: `The prizes of ${displayName} exceed its takings`,
      consequence: `If all tickets are sold, the raffle takes in ${usd(preview.takesUsd)}, pays out ${usd(preview.returnsUsd)} and loses ${usd(loss)}.`,
      button: 'I know',
      isDangerous: true,
    },
    { ...make, typed: values.configName! },
  ];
}

function NewRaffle({ partner, onMade }: { readonly partner: string; readonly onMade: () => void }) {
  const [shown, setShown] = useState<{ preview?: Preview; error?: string }>({});
  const partnerOf = usePartnerOf();
  const look = (form: HTMLFormElement): void => {
    const values = Object.fromEntries(new FormData(form)) as Record<string, string>;
    if (values.prizes === '') {
      setShown({});
      return;
    }
    try {
      const prizes = prizesOf(values.prizes!);
      setShown({ preview: previewOf(prizes, Number(values.ticketPriceUsd), Number(values.poolSize)) });
    } catch (error) {
      setShown({ error: (error as Error).message });
    }
  };
  const readFile = async (event: Event): Promise<void> => {
    const input = event.currentTarget as HTMLInputElement;
    const file = input.files?.[0];
    if (file === undefined) return;
    const form = input.form!;
    (form.elements.namedItem('prizes') as HTMLTextAreaElement).value = await file.text();
    look(form);
  };
  const create = async (values: Record<string, string>) => {
    const body = {
      displayName: values.displayName!,
      configName: values.configName!,
      ticketPriceUsd: Number(values.ticketPriceUsd),
      poolSize: Number(values.poolSize),
      prizes: prizesOf(values.prizes!),
    };
    const params = { path: { id: partnerOf(values.partner!) } };
    const { gameConfigId } = await bodyOf(api.POST('/partners/{id}/raffles', { params, body }));
    setShown({});
    onMade();
    return (
      <>
        Made: <GameLink id={gameConfigId}>game {gameConfigId}</GameLink>. Its pool is being sealed.
      </>
    );
  };
  return (
    <Toolbar>
      <FormDialog title="New raffle">
        <div onInput={(event) => look((event.target as HTMLInputElement).form!)}>
          <Form label="New raffle" button="Create raffle" act={create} confirm={questionsOf}>
            <PartnerField value={partner} />
            <Field label="Name" name="displayName" required hint="Shown to players" />
            <Field label="System name" name="configName" required hint="Uppercase letters, digits and _" />
            <Field label="Ticket price in USD" name="ticketPriceUsd" type="number" value={1} required />
            <Field label="Tickets" name="poolSize" type="number" value={1000} required />
            <label class="field">
              <span>Prizes from a CSV file</span>
              <input type="file" accept=".csv,text/csv" onChange={readFile} />
            </label>
            <Field
              label="Prizes as CSV"
              name="prizes"
              rows={6}
              required
              hint="First line: prizeName,prizeTier,valueUsd,count"
            />
          </Form>
        </div>
        <div role="status">
          {shown.error === undefined ? null : <p class="fault">{shown.error}</p>}
          {shown.preview === undefined ? null : <PreviewFacts preview={shown.preview} />}
        </div>
      </FormDialog>
    </Toolbar>
  );
}
