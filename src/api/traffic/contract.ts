/** Schemas and operations of traffic: number of spins, wagers and payouts by day and by hour. */
import { Type } from '#typebox';
import { partnerFilter, usd } from '../../domain/schema.js';
import { endpointsOf } from '../contract/endpoint.js';

const { operator } = endpointsOf('Service');

export const trafficMembers = {
  spins: Type.Integer(),
  wageredUsd: usd('Sum of the wagers, in USD'),
  paidOutUsd: usd('Sum of the payouts, in USD'),
};

export const GameDay = Type.Object({
  day: Type.String({ description: 'UTC day, YYYY-MM-DD' }),
  ...trafficMembers,
});

export const TrafficQuery = Type.Object({
  days: Type.Integer({
    minimum: 1,
    maximum: 400,
    default: 14,
    description: 'Number of days, including today',
  }),
  ...partnerFilter,
});

export const TrafficDays = Type.Object({
  days: Type.Array(GameDay, { description: 'Days, oldest first. A day without plays has zeros.' }),
});

export const TrafficHoursQuery = Type.Object({
  hours: Type.Integer({
    minimum: 1,
    maximum: 840,
    default: 48,
    description: 'Number of hours, including the current hour',
  }),
  ...partnerFilter,
});

export const TrafficHour = Type.Object({
  hour: Type.String({ format: 'date-time', description: 'Start of the hour' }),
  ...trafficMembers,
});

export const TrafficHours = Type.Object({
  hours: Type.Array(TrafficHour, {
    description: 'Hours, oldest first, from the first stored hour on. An hour without plays has zeros.',
  }),
});

export const listTraffic = operator.get('listTraffic', '/traffic', {
  summary: 'List plays, wagers and payouts by UTC day, for all partners or one partner',
  description:
    'Returns the totals of each day in the ledger, including days that were dropped from Postgres.',
  query: TrafficQuery,
  response: TrafficDays,
  hasSums: true,
  example: { days: [{ day: '2026-11-22', spins: 48210, wageredUsd: 12052.5, paidOutUsd: 11390.25 }] },
});

export const listTrafficHours = operator.get('listTrafficHours', '/traffic/hours', {
  summary: 'List plays, wagers and payouts by UTC hour, for all partners or one partner',
  description:
    'Returns the growth of the ledger in each hour, accurate to a minute. Entries that are committed late, for example after a recovery, count in the hour of their commit. Hours are kept for 35 days.',
  query: TrafficHoursQuery,
  response: TrafficHours,
  hasSums: true,
  example: {
    hours: [{ hour: '2026-11-22T04:00:00.000Z', spins: 2410, wageredUsd: 602.5, paidOutUsd: 571.25 }],
  },
});
