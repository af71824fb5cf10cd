/** Schemas and operations of traffic: number of spins, wagers and payouts by day and by hour. */
import { Type } from '#typebox';
import { partnerFilter, usd } from '../../domain/schema.js';
import { endpoint, operatorRead } from '../contract/endpoint.js';

export const trafficMembers = {
  spins: Type.Integer(),
  wageredUsd: usd('Sum of the wagers'),
  paidOutUsd: usd('Sum of the payouts'),
};

export const GameDay = Type.Object({
  day: Type.String({ description: 'UTC day, YYYY-MM-DD' }),
  ...trafficMembers,
});

export const TrafficQuery = Type.Object({
  days: Type.Integer({ minimum: 1, maximum: 400, default: 14, description: 'Up to and with today' }),
  ...partnerFilter,
});

export const TrafficDays = Type.Object({
  days: Type.Array(GameDay, { description: 'Oldest first; a day without a play is there with zeros' }),
});

export const TrafficHoursQuery = Type.Object({
  hours: Type.Integer({
    minimum: 1,
    maximum: 840,
    default: 48,
    description: 'Up to and with the current one',
  }),
  ...partnerFilter,
});

export const TrafficHour = Type.Object({
  hour: Type.String({ format: 'date-time', description: 'When it begins' }),
  ...trafficMembers,
});

export const TrafficHours = Type.Object({
  hours: Type.Array(TrafficHour, {
    description: 'Oldest first, from the first hour that is kept; an hour without a play is there with zeros',
  }),
});

export const listTraffic = endpoint(
  {
    ...operatorRead,
    path: '/traffic',
    operationId: 'listTraffic',
    tag: 'Service',
    summary: 'Plays, wagers and payouts by UTC day, of all partners or of one',
    query: TrafficQuery,
    response: TrafficDays,
    hasSums: true,
    errors: [],
  },
  {
    description: 'What the ledger has. Days that were dropped from Postgres are there, too.',
    response: { days: [{ day: '2026-11-22', spins: 48210, wageredUsd: 12052.5, paidOutUsd: 11390.25 }] },
  },
);

export const listTrafficHours = endpoint(
  {
    ...operatorRead,
    path: '/traffic/hours',
    operationId: 'listTrafficHours',
    tag: 'Service',
    summary: 'Plays, wagers and payouts by UTC hour, of all partners or of one',
    query: TrafficHoursQuery,
    response: TrafficHours,
    hasSums: true,
    errors: [],
  },
  {
    description:
      'What the ledger grew by in each hour, to within a minute: what is booked late, such as after a recovery, counts where it is booked. Hours are kept for 35 days.',
    response: {
      hours: [{ hour: '2026-11-22T04:00:00.000Z', spins: 2410, wageredUsd: 602.5, paidOutUsd: 571.25 }],
    },
  },
);
