/** Chart of the number of spins by UTC day or hour, read from the ledger, over a selectable time range. */
import { useState } from 'preact/hooks';
import { api, bodyOf } from './api.js';
import { Chart } from './chart.js';
import { type Range, RangeField } from './form.js';
import { count } from './format.js';
import { useLoad } from './load.js';
import { Load } from './ui.js';

const RANGES: readonly Range[] = [
  { days: 2, byHour: true },
  { days: 7, byHour: true },
  { days: 14 },
  { days: 30 },
  { days: 90 },
  { days: 365 },
];
const SHOWN_FIRST = RANGES[2]!;

interface Point {
  /** Start of the day or hour, in seconds since the epoch. */
  readonly at: number;
  readonly spins: number;
}

async function pointsOf({ days, byHour }: Range, partnerId: number | undefined): Promise<readonly Point[]> {
  const of = partnerId === undefined ? {} : { partnerId };
  if (byHour === true) {
    const query = { hours: 24 * days, ...of };
    const { hours } = await bodyOf(api.GET('/traffic/hours', { params: { query } }));
    return hours.map(({ hour, spins }) => ({ at: Date.parse(hour) / 1000, spins }));
  }
  const answer = await bodyOf(api.GET('/traffic', { params: { query: { days, ...of } } }));
  return answer.days.map(({ day, spins }) => ({ at: Date.parse(`${day}T00:00:00Z`) / 1000, spins }));
}

/** @param partnerId absent: spins of all partners */
export function TrafficChart({ partnerId }: { readonly partnerId?: number }) {
  const [range, setRange] = useState(SHOWN_FIRST);
  const loaded = useLoad(() => pointsOf(range, partnerId), [range, partnerId]);
  const { days, byHour } = range;
  const unit = byHour === true ? 'hour' : 'day';
  return (
    <>
      <RangeField ranges={RANGES} shown={range} onChange={setRange} />
      <Load loaded={loaded}>
        {(points) => {
          const spins = points.map((point) => point.spins);
          const all = spins.reduce((sum, each) => sum + each, 0);
          if (all === 0) return <p class="empty">No plays in these days.</p>;
          return (
            <Chart
              title={`Plays by ${unit}, ${days} days`}
              label={`Plays by ${unit} over ${days} days: ${count(all)} in total, ${count(Math.max(...spins))} in the busiest ${unit}.`}
              places={points.map(({ at }) => at)}
              isTime
              series={[
                {
                  label:
                    byHour === true ? 'Plays; the last hour is incomplete' : 'Plays; today is incomplete',
                  values: spins,
                  kind: 'line',
                },
              ]}
              isFromZero
              format={count}
            />
          );
        }}
      </Load>
    </>
  );
}
