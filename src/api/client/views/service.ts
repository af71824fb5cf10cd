/** Views of what belongs to the whole service: cells, recoveries, dealing, API versions, failing webhooks. */
import { type Column, change, type Schemas } from './view.js';

export const CELLS: readonly Column<Schemas['OperatorCell']>[] = [
  { heading: 'Cell', value: (row) => row.cell, kind: 'number' },
  { heading: 'State', value: (row) => row.halted ?? (row.isDraining ? 'draining' : 'ready'), kind: 'status' },
  { heading: 'Partners', value: (row) => row.partners, kind: 'count' },
  { heading: 'Games', value: (row) => row.games, kind: 'count' },
  { heading: 'Redis', value: ({ node, slot }) => (slot === null ? node : `${node}, slot ${slot}`) },
  { heading: 'Epoch', value: (row) => row.epoch, kind: 'number' },
  { heading: 'Worker', value: (row) => row.owner },
  { heading: 'Committed up to', value: (row) => row.bookedTo, kind: 'time' },
  { heading: 'Outbox', value: (row) => row.outboxEntries, kind: 'count' },
  { heading: 'Outbox age', value: (row) => secondsOf(row.outboxAgeSeconds), kind: 'number' },
];

const secondsOf = (age: number | null): string =>
  age === null ? 'Redis is unavailable' : `${age.toFixed(1)} s`;

export const RECOVERIES: readonly Column<Schemas['Recovery']>[] = [
  { heading: 'Cell', value: (row) => row.cell, kind: 'number' },
  { heading: 'Begun', value: (row) => row.startedAt, kind: 'time' },
  { heading: 'Finished', value: (row) => row.finishedAt, kind: 'time' },
  { heading: 'Step', value: (row) => row.step, kind: 'status' },
  { heading: 'Outcomes voided', value: (row) => row.voidedOutcomes, kind: 'count' },
  { heading: 'Reason', value: (row) => row.reason },
];

export const STOP_DEALING = change('PUT /dealing', {
  body: { state: 'OFF' },
  asks: 'Stop dealing for',
  consequence:
    'Within a second all spins, tickets and deals of all partners are refused, until you resume dealing. Open rounds can be finished.',
  button: 'Stop dealing for all',
  confirm: 'Stop dealing',
  done: 'Dealing is off.',
});
export const RESUME_DEALING = change('PUT /dealing', {
  body: { state: 'ON' },
  asks: 'Resume dealing for',
  consequence:
    'All games can be played again, except suspended games and games of partners whose dealing is off.',
  button: 'Resume dealing for all',
  confirm: 'Resume dealing',
  isHarmless: true,
  done: 'Dealing is on.',
});

export const endVersion = (sunsetAt: string) =>
  change('POST /api-versions/{version}/deprecate', {
    body: { sunsetAt },
    asks: 'Announce the end of',
    consequence: `Every partner that uses this version is notified by header, event and e-mail, which can't be taken back. From ${sunsetAt} on, all requests to this version are refused.`,
    button: 'Announce the sunset',
    done: 'The sunset is announced.',
  });

type Hook = Pick<Schemas['FailingWebhook'], 'url' | 'health'>;

export const WEBHOOKS: readonly Column<Hook>[] = [
  { heading: 'URL', value: (row) => row.url },
  { heading: 'State', value: (row) => row.health.state, kind: 'status' },
  { heading: 'Reason', value: (row) => row.health.reason },
  { heading: 'Failing since', value: (row) => row.health.failingSince, kind: 'time' },
  { heading: 'Pending', value: (row) => row.health.pending, kind: 'count' },
];
