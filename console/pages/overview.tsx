/**
 * Overview page: current spins and money, errors, latency, the busiest partners, and items that need
 * attention.
 */
import { useState } from 'preact/hooks';
import { api, bodyOf, type Schemas } from '../api.js';
import { Chart } from '../chart.js';
import { count, estimatedUsd, percent, rate, time, usd, within } from '../format.js';
import { useLoad } from '../load.js';
import { PartnerLink } from '../names.js';
import { ProblemLine, useProblems } from '../problems.js';
import { linkTo } from '../router.js';
import { Table } from '../table.js';
import { TrafficChart } from '../traffic.js';
import { Facts, Load, Panel } from '../ui.js';
import { FailingWebhooks } from './failingWebhooks.js';

type Overview = Schemas['Overview'];

const EVERY_MS = 3000;
/** Time that the chart of the present traffic covers, in seconds. */
const COVERED_SECONDS = 600;
/** Longest time between two samples with a rate. After a longer one nobody looked meanwhile. */
const GAP_SECONDS = 30;
/** Responses that were loaded while the page was open, oldest first. */
const samples: Overview[] = [];

function keep(sample: Overview): void {
  if (samples.at(-1)?.at === sample.at) return;
  samples.push(sample);
  const first = samples.findIndex((each) => secondsOf(sample) - secondsOf(each) <= COVERED_SECONDS);
  samples.splice(0, first);
}

const secondsOf = ({ at }: Overview): number => Date.parse(at) / 1000;

/**
 * Returns the spins per second between two samples. Returns undefined if a new day began, the clock went
 * back, or nobody looked for a while.
 */
function spinRate(before: Overview | undefined, after: Overview): number | undefined {
  if (before === undefined) return undefined;
  const spins = after.today.spins - before.today.spins;
  const seconds = secondsOf(after) - secondsOf(before);
  return spins < 0 || seconds <= 0 || seconds > GAP_SECONDS ? undefined : spins / seconds;
}

/**
 * Returns the upper bound of the latency of 99 % of the process's answers, since an earlier sample or since
 * the start of the process.
 */
function p99(before: Overview | undefined, after: Overview): number | null {
  const isSame = before?.process.id === after.process.id;
  const counts = after.process.spinSeconds.map(({ leSeconds, count: all }, i) => ({
    leSeconds,
    count: all - (isSame ? (before?.process.spinSeconds[i]?.count ?? 0) : 0),
  }));
  const all = counts.at(-1)?.count ?? 0;
  return all === 0 ? null : (counts.find(({ count: upTo }) => upTo >= 0.99 * all)?.leSeconds ?? null);
}

/** Items whose games or cells refuse plays now. They are shown first, in red. */
const URGENT: readonly string[] = ['dryGames', 'haltedCells'];

const ATTENTION = [
  [
    'dryGames',
    'game without outcomes, whose spins are refused',
    'games without outcomes, whose spins are refused',
    ['games'],
    {},
  ],
  ['haltedCells', 'halted cell', 'halted cells', ['cells'], {}],
  ['openRecoveries', 'recovery in progress', 'recoveries in progress', ['cells'], {}],
  ['stoppedPartners', 'partner with dealing off', 'partners with dealing off', ['dealing'], {}],
  [
    'exhaustedProgressives',
    'communal progressive whose budget is used up',
    'communal progressives whose budgets are used up',
    ['progressives'],
    {},
  ],
  ['suspendedGames', 'suspended game', 'suspended games', ['dealing'], {}],
  [
    'openReviews',
    "open review of a game's return",
    "open reviews of games' returns",
    ['returns'],
    { status: 'OPEN' },
  ],
  ['failingWebhooks', 'failing webhook', 'failing webhooks', ['webhooks'], { status: 'pending' }],
  ['lateDeliveries', 'late webhook delivery', 'late webhook deliveries', ['webhooks'], { status: 'pending' }],
  ['failedDeliveries', 'failed webhook delivery', 'failed webhook deliveries', ['webhooks'], {}],
  [
    'disputedReports',
    'disputed settlement report',
    'disputed settlement reports',
    ['settlements'],
    { status: 'DISPUTED' },
  ],
  ['expiringKeys', 'key expires within 14 days', 'keys expire within 14 days', ['partners'], {}],
] as const;

function Attention({ attention, failingWebhooks }: Pick<Overview, 'attention' | 'failingWebhooks'>) {
  const waiting = ATTENTION.filter(([name]) => attention[name] > 0);
  const isOff = attention.dealing === 'OFF';
  const { missingWitnesses } = attention;
  const problems = useProblems();
  return (
    <Panel title="Needs attention">
      {problems.length === 0 && waiting.length === 0 && !isOff && missingWitnesses.length === 0 ? (
        <p class="empty">Nothing needs attention: all games can be played, and no delivery has failed.</p>
      ) : (
        <ul>
          {problems.map((problem) => (
            <li key={problem.name + problem.message} class={problem.effect === 'ATTENTION' ? '' : 'urgent'}>
              <ProblemLine of={problem} />
            </li>
          ))}
          {isOff ? (
            <li class="urgent">
              <a href={linkTo(['dealing'])}>Dealing is off: all spins are refused</a>
            </li>
          ) : null}
          {missingWitnesses.length > 0 ? (
            <li class="urgent">
              <a href={linkTo(['log'])}>
                The public log has no quorum of witnesses, so no new blocks can be loaded:{' '}
                {missingWitnesses.join(', ')}
              </a>
            </li>
          ) : null}
          {waiting.map(([name, one, many, parts, query]) => (
            <li key={name} class={URGENT.includes(name) ? 'urgent' : ''}>
              <a href={linkTo(parts, query)}>
                {count(attention[name])} {attention[name] === 1 ? one : many}
              </a>
            </li>
          ))}
        </ul>
      )}
      {attention.failingWebhooks > 0 && <FailingWebhooks of={failingWebhooks} />}
    </Panel>
  );
}

function Traffic({ now }: { readonly now: Overview }) {
  const rates = samples.map((sample, i) => spinRate(samples[i - 1], sample) ?? null);
  if (samples.length < 3) return <p class="empty">Waiting for data.</p>;
  return (
    <Chart
      title="Spins a second"
      label={`Spins a second over the last minutes; now ${rate(rates.at(-1) ?? undefined)}. ${now.today.spins} spins today.`}
      places={samples.map(secondsOf)}
      isTime
      series={[{ label: 'Spins a second', values: rates, kind: 'line' }]}
      format={(value) => rate(value)}
      isFromZero
      hasGaps
    />
  );
}

export function Overview() {
  const loaded = useLoad(() => bodyOf(api.GET('/overview', {})), [], EVERY_MS);
  if (loaded.data !== undefined) keep(loaded.data);
  return (
    <Load loaded={loaded}>
      {(now) => {
        const before = samples.at(-2);
        // The rate is computed over half a minute, so that the figure changes slowly enough to read.
        const earlier = samples.at(-11) ?? samples[0];
        return (
          <>
            <Today now={now} />
            <Attention attention={now.attention} failingWebhooks={now.failingWebhooks} />
            <Facts
              of={[
                ['Spins a second', rate(spinRate(before, now))],
                ['p99 of a spin', within(p99(earlier === now ? undefined : earlier, now))],
                ['Partners today', count(now.today.partners)],
              ]}
            />
            <Panel title="Traffic now">
              <Traffic now={now} />
            </Panel>
            <Panel title="Traffic over time">
              <TrafficChart />
            </Panel>
            <Busiest now={now} before={before} />
            <Errors now={now} />
            <PartnerErrors now={now} />
            <p class="note">
              As of {time(now.at)} UTC. Errors and latency are those of the front end that answered.
            </p>
          </>
        );
      }}
    </Load>
  );
}

type Totals = Pick<Overview['today'], 'spins' | 'wageredUsd' | 'paidOutUsd'>;

/** The figures of today that are compared with yesterday, with the format of each. */
const COMPARED: readonly (readonly [string, (totals: Totals) => number, (value: number) => string])[] = [
  ['Gross revenue', ({ wageredUsd, paidOutUsd }) => wageredUsd - paidOutUsd, usd],
  ['Wagered', ({ wageredUsd }) => wageredUsd, usd],
  ['Paid', ({ paidOutUsd }) => paidOutUsd, usd],
  ['Return', ({ wageredUsd, paidOutUsd }) => paidOutUsd / wageredUsd, percent],
  ['Spins', ({ spins }) => spins, count],
];

function Today({ now: { today, yesterday } }: { readonly now: Overview }) {
  const until = yesterday.until === 'SAME_TIME' ? 'Yesterday by this time' : 'All of yesterday';
  return (
    <Panel title="Today (UTC)">
      <Facts
        of={COMPARED.map(([name, figureOf, format]) => [
          name,
          <>
            {format(figureOf(today))}
            <small>
              {until}: {(format === usd ? estimatedUsd : format)(figureOf(yesterday))}
            </small>
          </>,
        ])}
      />
    </Panel>
  );
}

function Busiest({ now, before }: { readonly now: Overview; readonly before: Overview | undefined }) {
  const rateOf = ({ partnerId, spins }: Schemas['PartnerTraffic']): string => {
    const was = before?.busiest.find((each) => each.partnerId === partnerId);
    const seconds = before === undefined ? 0 : secondsOf(now) - secondsOf(before);
    return rate(was === undefined || seconds <= 0 ? undefined : Math.max(0, spins - was.spins) / seconds);
  };
  return (
    <Panel title="Partners by traffic today">
      <Table
        caption="Partners by traffic today"
        rows={now.busiest}
        keyOf={({ partnerId }) => partnerId}
        empty="No spins today."
        columns={[
          {
            heading: 'Partner',
            cell: ({ partnerId }) => <PartnerLink id={partnerId} />,
            value: ({ slug }) => slug,
          },
          { heading: 'Spins a second', cell: rateOf, isNumber: true },
          { heading: 'Spins', cell: ({ spins }) => count(spins), isNumber: true },
          { heading: 'Wagered', cell: ({ wageredUsd }) => usd(wageredUsd), isNumber: true },
          { heading: 'Paid', cell: ({ paidOutUsd }) => usd(paidOutUsd), isNumber: true },
          {
            heading: 'Return',
            cell: ({ paidOutUsd, wageredUsd }) => percent(paidOutUsd / wageredUsd),
            isNumber: true,
          },
        ]}
      />
    </Panel>
  );
}

/** Number of errors that are shown at first. A click shows the remaining errors. */
const TOP_ERRORS = 5;

function Errors({ now }: { readonly now: Overview }) {
  const [isWhole, setWhole] = useState(false);
  const all = [...now.process.errors].sort((a, b) => b.count - a.count);
  const rows = isWhole ? all : all.slice(0, TOP_ERRORS);
  return (
    <Panel title="Errors since the start of the front end">
      <Table
        caption="Errors by code"
        rows={rows}
        keyOf={({ operation, errorCode }) => `${operation} ${errorCode}`}
        empty="No errors."
        columns={[
          {
            heading: 'Code',
            cell: ({ errorCode }) => <a href={`/docs/errors#${errorCode}`}>{errorCode}</a>,
          },
          { heading: 'Operation', cell: ({ operation }) => operation },
          { heading: 'Count', cell: (row) => count(row.count), isNumber: true },
        ]}
      />
      {all.length > TOP_ERRORS ? (
        <button type="button" class="quiet more" onClick={() => setWhole(!isWhole)}>
          {isWhole ? 'Show only the top five' : `All ${all.length} kinds`}
        </button>
      ) : null}
    </Panel>
  );
}

function PartnerErrors({ now }: { readonly now: Overview }) {
  const rows = [...now.process.partners].sort((a, b) => b.errors - a.errors || b.requests - a.requests);
  return (
    <Panel title="Requests and errors by partner since the start of the front end">
      <Table
        caption="Requests and errors by partner"
        rows={rows}
        keyOf={({ partnerId }) => partnerId ?? 'others'}
        empty="No requests."
        columns={[
          {
            heading: 'Partner',
            cell: ({ partnerId }) => (partnerId === null ? 'all others' : <PartnerLink id={partnerId} />),
          },
          { heading: 'Requests', cell: ({ requests }) => count(requests), isNumber: true },
          { heading: 'Errors', cell: ({ errors }) => count(errors), isNumber: true },
          {
            heading: 'Error rate',
            cell: ({ errors, requests }) => percent(requests === 0 ? 0 : errors / requests),
            isNumber: true,
          },
        ]}
      />
    </Panel>
  );
}
