/** Cells, Redis servers and recoveries. */
import { api, bodyOf } from '../api.js';
import { count, megabytes, time } from '../format.js';
import { useLoad } from '../load.js';
import { Table } from '../table.js';
import { Load, Panel, Status } from '../ui.js';

const EVERY_MS = 5000;

export function Cells() {
  const loaded = useLoad(() => bodyOf(api.GET('/cells', {})), [], EVERY_MS);
  return (
    <Load loaded={loaded}>
      {({ cells, redis, recoveries }) => (
        <>
          <Panel title="Redis">
            <Table
              caption="Redis servers"
              rows={redis}
              keyOf={(server) => redis.indexOf(server)}
              empty="None."
              columns={[
                { heading: 'State', cell: ({ isReady }) => <Status of={isReady ? 'ready' : 'halted'} /> },
                {
                  heading: 'Durability',
                  cell: ({ volatile }) => (volatile.length === 0 ? 'durable' : volatile.join('; ')),
                },
                { heading: 'Memory', cell: ({ memoryBytes }) => megabytes(memoryBytes), isNumber: true },
                {
                  heading: 'Bound',
                  cell: ({ maxMemoryBytes }) =>
                    maxMemoryBytes === 0 ? 'the machine' : megabytes(maxMemoryBytes),
                  isNumber: true,
                },
              ]}
            />
          </Panel>
          <Panel title="Cells">
            <Table
              caption="Cells"
              rows={cells}
              keyOf={({ cell }) => cell}
              empty="None."
              columns={[
                { heading: 'Cell', cell: ({ cell }) => cell, isNumber: true },
                {
                  heading: 'State',
                  cell: ({ halted, isDraining }) => (
                    <Status of={halted ?? (isDraining ? 'draining' : 'ready')} />
                  ),
                },
                { heading: 'Partners', cell: ({ partners }) => count(partners), isNumber: true },
                { heading: 'Games', cell: ({ games }) => count(games), isNumber: true },
                {
                  heading: 'Redis',
                  cell: ({ node, slot }) => (slot === null ? node : `${node}, slot ${slot}`),
                },
                { heading: 'Epoch', cell: ({ epoch }) => epoch, isNumber: true },
                {
                  heading: 'Booked by',
                  cell: ({ owner }) =>
                    owner === null ? 'nobody' : <code title={owner}>{owner.slice(0, 8)}</code>,
                },
                { heading: 'Booked to (UTC)', cell: ({ bookedTo }) => time(bookedTo) },
                {
                  heading: 'Oldest in outbox',
                  cell: ({ outboxAgeSeconds }) =>
                    outboxAgeSeconds === null ? 'Redis is away' : `${outboxAgeSeconds.toFixed(1)} s`,
                  isNumber: true,
                },
              ]}
            />
          </Panel>
          <Panel title="Recoveries">
            <Table
              caption="Recoveries, newest first"
              rows={recoveries}
              keyOf={({ cell, epoch }) => `${cell} ${epoch}`}
              empty="No cell was ever rebuilt."
              columns={[
                { heading: 'Cell', cell: ({ cell }) => cell, isNumber: true },
                { heading: 'Begun (UTC)', cell: ({ startedAt }) => time(startedAt) },
                { heading: 'Finished (UTC)', cell: ({ finishedAt }) => time(finishedAt) },
                { heading: 'Step', cell: ({ step }) => <Status of={step} /> },
                {
                  heading: 'Outcomes voided',
                  cell: ({ voidedOutcomes }) => count(voidedOutcomes),
                  isNumber: true,
                },
                { heading: 'Reason', cell: ({ reason }) => reason },
              ]}
            />
          </Panel>
        </>
      )}
    </Load>
  );
}
