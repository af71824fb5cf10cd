/** What an operator looks at first: traffic, errors, and what waits for somebody. */
import { randomUUID } from 'node:crypto';
import * as contract from '../../contract/endpoints/operatorReads.js';
import { jsonInteger, jsonUsd } from '../../domain/exactJson.js';
import type { Traffic } from '../../postgres/operatorReads.js';
import { listedWebhookOf } from '../partner/webhooks.js';
import { type Route, route } from '../route.js';
import type { Services } from '../services.js';

const PROCESS_ID = randomUUID();

const shown = ({ spins, wageredMicros, paidMicros }: Traffic) => ({
  spins: jsonInteger(spins),
  wageredUsd: jsonUsd(wageredMicros),
  paidOutUsd: jsonUsd(paidMicros),
});

const getOverview = ({ store, process }: Services): Route =>
  route(contract.getOverview, async () => {
    const [traffic, { longestFailing, isDealing, ...attention }, counted] = await Promise.all([
      store.overview.trafficToday(),
      store.overview.attention(),
      process.figures(),
    ]);
    return {
      at: new Date().toISOString(),
      today: { ...shown(traffic.all), partners: traffic.all.partners },
      busiest: traffic.busiest.map((each) => ({
        partnerId: each.partnerId,
        slug: each.slug,
        ...shown(each),
      })),
      attention: { ...attention, dealing: isDealing ? 'ON' : 'OFF' },
      failingWebhooks: longestFailing.map(({ partnerId, slug, ...webhook }) => ({
        partnerId,
        slug,
        ...listedWebhookOf(webhook),
      })),
      process: { id: PROCESS_ID, ...counted },
    };
  });

export const overviewRoutes = (services: Services): Route[] => [getOverview(services)];
