/**
 * Reports over intervals: wagers and payouts of games, liability to players, and significant events; each as
 * a table and as CSV.
 */
import { useState } from 'preact/hooks';
import { LIABILITY, REPORTED_GAMES, SIGNIFICANT_EVENTS, TOTALS } from '../../src/api/client/views/reports.js';
import { api, bodyOf, type Schemas } from '../api.js';
import { saveCsv } from '../csv.js';
import { Field, Form } from '../form.js';
import { count, NONE, time, usd } from '../format.js';
import { useLoad } from '../load.js';
import { GAME_COLUMN, GameLink, PartnerLink, usePartnerColumn, usePartnerNames } from '../names.js';
import { go, linkTo, type Place } from '../router.js';
import { columnsOf, factsOf, Table } from '../table.js';
import { Facts, Fault, Load, Panel } from '../ui.js';

const INTERVALS = ['DTD', 'MTD', 'YTD', 'LTD', 'RANGE'];
const SEVERITIES = ['', 'INFO', 'WARNING', 'CRITICAL'];
const KINDS = { games: 'Games', liability: 'Liability', events: 'Significant events' } as const;
type Kind = keyof typeof KINDS;
const isKind = (text: string): text is Kind => Object.hasOwn(KINDS, text);

/** The query of an address: the non-empty members of the form. */
type Asked = Record<string, string>;

export function Reports({ place }: { readonly place: Place }) {
  const given = place.query.get('of') ?? '';
  const of = isKind(given) ? given : 'games';
  const asked = Object.fromEntries(place.query);
  return (
    <>
      <nav class="pager" aria-label="Reports">
        {Object.entries(KINDS).map(([kind, name]) => (
          <a
            key={kind}
            href={linkTo(['reports'], { of: kind })}
            aria-current={kind === of ? 'page' : undefined}
          >
            {name}
          </a>
        ))}
      </nav>
      {of === 'games' ? (
        <Games asked={asked} />
      ) : of === 'liability' ? (
        <Owed asked={asked} />
      ) : (
        <Events asked={asked} />
      )}
    </>
  );
}

const show =
  (of: Kind) =>
  async (values: Asked): Promise<null> => {
    go(['reports'], { of, ...values });
    return null;
  };

/** Button that saves the whole report as CSV, as the service renders it. */
function Csv({ of, query }: { readonly of: Kind; readonly query: Asked }) {
  const [error, setError] = useState<unknown>();
  const keep = (): void => {
    setError(undefined);
    saveCsv(`/reports/${of}`, query, `${of}.csv`).catch(setError);
  };
  return (
    <>
      <button type="button" class="quiet" onClick={keep}>
        Download everything as CSV
      </button>
      <Fault error={error} />
    </>
  );
}

/** Removes empty members from a query. */
const given = (members: Record<string, string | undefined>): Asked =>
  Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== undefined && value !== ''),
  ) as Asked;

function Games({ asked }: { readonly asked: Asked }) {
  const { idOf } = usePartnerNames();
  const partnerColumn = usePartnerColumn();
  const { interval = 'MTD', from, to, partner = '' } = asked;
  const isRange = interval === 'RANGE';
  const partnerId = partner === '' ? undefined : String(idOf(partner) ?? 0);
  const query = given({ interval, ...(isRange ? { from, to } : {}), partnerId });
  const loaded = useLoad(
    () =>
      bodyOf(api.GET('/reports/games', { params: { query: query as never } })) as Promise<
        Schemas['GamesReport']
      >,
    [query],
  );
  return (
    <>
      <Form label="Interval" button="Show" keepsValues act={show('games')}>
        <Field
          label="Interval"
          name="interval"
          options={INTERVALS}
          value={interval}
          hint="Day, month, year or life to date, or a range (UTC)"
        />
        <Field label="From" name="from" type="date" value={from} hint="Of RANGE" />
        <Field label="To" name="to" type="date" value={to} hint="Last day of a RANGE, included" />
        <Field label="Partner" name="partner" value={partner} hint="Slug or id; empty for all" />
      </Form>
      <Load loaded={loaded}>
        {(report) => (
          <Panel title={`${report.from ?? 'The first day'} to ${report.to}`}>
            <Facts
              of={[
                ...factsOf(TOTALS, report.totals),
                ['Complete to', report.completeTo ?? NONE],
                ['Made (UTC)', time(report.generatedAt)],
              ]}
            />
            {report.noActivity ? <p class="empty">No activity.</p> : null}
            <Table
              caption="Games"
              rows={report.rows}
              isPage={report.nextCursor !== null}
              keyOf={({ gameConfigId }) => gameConfigId}
              empty="There are no games."
              columns={columnsOf(REPORTED_GAMES, { Game: GAME_COLUMN, Partner: partnerColumn })}
            />
            <Csv of="games" query={query} />
          </Panel>
        )}
      </Load>
    </>
  );
}

function Owed({ asked }: { readonly asked: Asked }) {
  const partnerColumn = usePartnerColumn();
  const query = given({ date: asked.date });
  const loaded = useLoad(
    () => bodyOf(api.GET('/reports/liability', { params: { query } })) as Promise<Schemas['LiabilityReport']>,
    [query],
  );
  return (
    <>
      <Form label="Day" button="Show" keepsValues act={show('liability')}>
        <Field
          label="At the end of the day (UTC)"
          name="date"
          type="date"
          value={asked.date}
          hint="Empty: now"
        />
      </Form>
      <Load loaded={loaded}>
        {({ date, rows, totals, generatedAt }) => (
          <Panel title={date === null ? 'Now' : `At the end of ${date}`}>
            <Facts
              of={[
                ['Players', count(totals.players)],
                ['Balances', usd(totals.balancesUsd)],
                ['Open rounds', `${count(totals.openRounds)}, ${usd(totals.openWageredUsd)}`],
                ['Budgets of progressives', usd(totals.communalBudgetUsd)],
                ['Made (UTC)', time(generatedAt)],
              ]}
            />
            <Table
              caption="By partner"
              rows={rows}
              keyOf={({ partnerId }) => partnerId}
              empty="No activity."
              columns={columnsOf(LIABILITY, { Partner: partnerColumn })}
            />
            <Csv of="liability" query={query} />
          </Panel>
        )}
      </Load>
    </>
  );
}

/** Returns the start of a UTC day in the time format of the API. */
const dayStart = (day: string | undefined): string | undefined =>
  day === undefined || day === '' ? undefined : `${day}T00:00:00Z`;

function Events({ asked }: { readonly asked: Asked }) {
  const { nameOf } = usePartnerNames();
  const range = given({
    from: dayStart(asked.from),
    to: dayStart(asked.to),
    type: asked.type,
    severity: asked.severity,
  });
  const query = given({ ...range, cursor: asked.cursor });
  const loaded = useLoad(
    () =>
      bodyOf(api.GET('/reports/events', { params: { query: query as never } })) as Promise<
        Schemas['EventsReport']
      >,
    [query],
  );
  return (
    <>
      <Form label="Range" button="Show" keepsValues act={show('events')}>
        <Field label="From (UTC)" name="from" type="date" value={asked.from} />
        <Field label="To (UTC)" name="to" type="date" value={asked.to} hint="Not included" />
        <Field label="Type" name="type" value={asked.type} hint="For example cell.halt; empty for all" />
        <Field label="Severity" name="severity" options={SEVERITIES} value={asked.severity ?? ''} />
      </Form>
      <Load loaded={loaded}>
        {({ events, nextCursor }) => (
          <Panel title="Events, oldest first">
            <Table
              caption="Events, oldest first"
              rows={events}
              isPage={nextCursor !== null}
              keyOf={({ eventId }) => eventId}
              empty="No activity."
              columns={columnsOf(SIGNIFICANT_EVENTS, {
                Partner: {
                  cell: ({ partnerId }) => (partnerId === null ? NONE : <PartnerLink id={partnerId} />),
                  value: ({ partnerId }) => (partnerId === null ? undefined : nameOf(partnerId)),
                  isNumber: false,
                },
                Game: {
                  cell: ({ gameId }) =>
                    gameId === null ? NONE : <GameLink id={gameId}>game {gameId}</GameLink>,
                  isNumber: false,
                },
                Player: ({ partnerId, playerId }) =>
                  playerId === null || partnerId === null ? (
                    NONE
                  ) : (
                    <a href={linkTo(['players', partnerId, playerId])}>{playerId}</a>
                  ),
                Spin: {
                  cell: ({ spinId: id }) =>
                    id === null ? NONE : <a href={linkTo(['lookup'], { id })}>{id.slice(0, 8)}…</a>,
                  value: ({ spinId }) => spinId,
                },
              })}
            />
            {nextCursor === null ? null : (
              <p>
                <a href={linkTo(['reports'], { ...asked, of: 'events', cursor: nextCursor })}>Later events</a>
              </p>
            )}
            <Csv of="events" query={range} />
          </Panel>
        )}
      </Load>
    </>
  );
}
