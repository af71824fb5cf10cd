/** Handler of the overview for operators: traffic, errors and open tasks. */
import { randomUUID } from 'node:crypto';
import { type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import { trafficOf } from '../traffic/routes.js';
import * as contract from './contract.js';

const PROCESS_ID = randomUUID();

const getOverview = ({ store, process }: Services): Route =>
  route(contract.getOverview, async () => {
    const [traffic, { attention, failingWebhooks }, counted] = await Promise.all([
      store.overviewReads.trafficToday(),
      store.overviewReads.attention(),
      process.figures(),
    ]);
    return {
      at: new Date(),
      today: { ...trafficOf(traffic.all), partners: traffic.all.partners },
      busiest: traffic.busiest.map((each) => ({
        partnerId: each.partnerId,
        slug: each.slug,
        ...trafficOf(each),
      })),
      attention,
      failingWebhooks,
      process: { id: PROCESS_ID, ...counted },
    };
  });

export const overviewRoutes = (services: Services): Route[] => [getOverview(services)];
