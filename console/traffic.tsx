/** Plays by UTC day, from the ledger, over a range that the operator chooses. */
import { useState } from 'preact/hooks';
import { api, bodyOf, type Schemas } from './api.js';
import { Chart } from './chart.js';
import { DaysField } from './form.js';
import { count } from './format.js';
import { useLoad } from './load.js';
import { Load } from './ui.js';

/** Days that a chart may show. */
const RANGES = [14, 30, 90, 365];

const startOf = ({ day }: Schemas['GameDay']): number => Date.parse(`${day}T00:00:00Z`) / 1000;

/** @param partnerId absent: of all partners */
export function TrafficByDay({ partnerId }: { readonly partnerId?: number }) {
  const [days, setDays] = useState(RANGES[0]!);
  const query = { days, ...(partnerId === undefined ? {} : { partnerId }) };
  const loaded = useLoad(() => bodyOf(api.GET('/traffic', { params: { query } })), [query]);
  return (
    <>
      <DaysField ranges={RANGES} days={days} onChange={setDays} />
      <Load loaded={loaded}>
        {(traffic) => {
          const spins = traffic.days.map((day) => day.spins);
          const all = spins.reduce((sum, each) => sum + each, 0);
          if (all === 0) return <p class="empty">Nobody has played in these days.</p>;
          return (
            <Chart
              label={`Plays by day over ${days} days: ${count(all)} in all, ${count(Math.max(...spins))} on the busiest day.`}
              places={traffic.days.map(startOf)}
              isTime
              series={[{ label: 'Plays a day; today so far', values: spins, kind: 'line' }]}
              isFromZero
              format={count}
            />
          );
        }}
      </Load>
    </>
  );
}
