/** Handlers of traffic by day and by hour, of all partners or of one partner. */
import { jsonInteger, jsonUsd } from '../../domain/exactJson.js';
import { type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';
import type { Traffic } from './traffic.store.js';

export const trafficOf = ({ spins, wageredMicros, paidMicros }: Traffic) => ({
  spins: jsonInteger(spins),
  wageredUsd: jsonUsd(wageredMicros),
  paidOutUsd: jsonUsd(paidMicros),
});

const listTraffic = ({ store }: Services): Route =>
  route(contract.listTraffic, async ({ query }) => ({
    days: (await store.traffic.days(query.days, query.partnerId)).map((each) => ({
      day: each.day,
      ...trafficOf(each),
    })),
  }));

const listTrafficHours = ({ store }: Services): Route =>
  route(contract.listTrafficHours, async ({ query }) => ({
    hours: (await store.traffic.hours(query.hours, query.partnerId)).map((each) => ({
      hour: each.hour,
      ...trafficOf(each),
    })),
  }));

export const trafficRoutes = (services: Services): Route[] => [
  listTraffic(services),
  listTrafficHours(services),
];
