/**
 * Shows the return to player of a slot game and its daily assessment: the values of the windows, and the
 * bands of expected deviation.
 */
import { useState } from 'preact/hooks';
import { WINDOW_NAMES, windowsFrom } from '../../src/api/client/views/games.js';
import { rtpVerdict } from '../../src/domain/rtp.js';
import { api, bodyOf, type Schemas } from '../api.js';
import { Chart } from '../chart.js';
import { RangeField } from '../form.js';
import { percent, time } from '../format.js';
import { useLoad } from '../load.js';
import { linkTo } from '../router.js';
import { columnsOf, Table } from '../table.js';
import { Load, Panel } from '../ui.js';

type Rtp = Schemas['GameRtp'];
type Expected = NonNullable<Rtp['expected']>;
type Record = Schemas['RtpRecord'];

/** Numbers of days that the chart can show. */
const RANGES = [{ days: 30 }, { days: 90 }, { days: 400 }];
/** Standard deviations that contain 95 % and 99 % of the returns after many spins (docs/reports.md). */
const Q95 = 1.959963984540054;
const Q99 = 2.5758293035489004;

const startOf = (day: string): number => Date.parse(`${day}T00:00:00Z`) / 1000;

/** Returns whether a return is based on enough spins for a band. */
const isBanded = ({ spins }: { readonly spins: number }, expected: Expected | null): boolean =>
  expected !== null && spins >= expected.normalFromSpins;

export function RtpPanel({ gameId }: { readonly gameId: number }) {
  const [range, setRange] = useState(RANGES[0]!);
  const { days } = range;
  const params = { path: { id: gameId }, query: { days } };
  const loaded = useLoad(() => bodyOf(api.GET('/games/{id}/rtp', { params })), [gameId, days]);
  return (
    <Panel title="Judgements of the return">
      <Load loaded={loaded}>
        {(rtp) =>
          rtp.windows.length === 0 ? (
            <p class="empty">
              No judgement yet. A game is judged once a day, from its first day with spins on.
            </p>
          ) : (
            <>
              <Windows rtp={rtp} />
              <RangeField ranges={RANGES} shown={range} onChange={setRange} />
              {rtp.windows.map(({ window }) => (
                <BandChart
                  key={window}
                  window={window}
                  expected={rtp.expected}
                  records={(rtp.history ?? []).filter((record) => record.window === window)}
                />
              ))}
              <p>
                Judged {time(rtp.judgedAt)} UTC.{' '}
                <a href={linkTo(['returns'], { gameId: String(gameId) })}>Reviews</a>
              </p>
            </>
          )
        }
      </Load>
    </Panel>
  );
}

const Windows = ({ rtp: { windows, expected } }: { readonly rtp: Rtp }) => (
  <>
    {windows.map(({ window, state }) => (
      <p key={window}>
        <strong>{WINDOW_NAMES[window]}:</strong> {rtpVerdict(state, expected?.normalFromSpins ?? 0)}.
      </p>
    ))}
    <Table
      caption="Windows"
      rows={windows}
      keyOf={({ window }) => window}
      empty=""
      columns={columnsOf(windowsFrom(expected?.normalFromSpins))}
    />
  </>
);

interface BandProps {
  readonly window: Record['window'];
  readonly expected: Expected | null;
  readonly records: readonly Record[];
}

function BandChart({ window, expected, records }: BandProps) {
  const judged = records.filter((record) => record.wageredUsd > 0 && isBanded(record, expected));
  const newest = judged.at(-1);
  if (expected === null || newest === undefined) return null;
  const edge =
    (deviations: number) =>
    ({ spins }: Record): number =>
      Math.max(0, expected.rtp + (deviations * expected.sigma) / Math.sqrt(spins));
  const returnOf = ({ paidOutUsd, wageredUsd }: Record): number => paidOutUsd / wageredUsd;
  return (
    <Chart
      title={`Return by day, ${WINDOW_NAMES[window].toLowerCase()}`}
      label={`Return by day, ${WINDOW_NAMES[window].toLowerCase()}: ${percent(returnOf(newest))} on ${newest.day}; expected ${percent(expected.rtp)}, with the 95 % band from ${percent(edge(-Q95)(newest))} to ${percent(edge(Q95)(newest))} and the 99 % band from ${percent(edge(-Q99)(newest))} to ${percent(edge(Q99)(newest))}.`}
      places={judged.map(({ day }) => startOf(day))}
      isTime
      series={[
        { label: '99 of 100, from', values: judged.map(edge(-Q99)), kind: 'edge' },
        { label: '99 of 100, to', values: judged.map(edge(Q99)), kind: 'edge' },
        { label: '95 of 100, from', values: judged.map(edge(-Q95)), kind: 'edge' },
        { label: '95 of 100, to', values: judged.map(edge(Q95)), kind: 'edge' },
        { label: 'Expected', values: judged.map(() => expected.rtp), kind: 'soft' },
        { label: 'Return', values: judged.map(returnOf), kind: 'line' },
      ]}
      format={(value) => percent(value)}
    />
  );
}
