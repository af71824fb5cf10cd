/** What an operator looks at first: traffic, errors, and what waits for somebody. */
import { randomUUID } from 'node:crypto';
import * as contract from '../../contract/endpoints/operatorReads.js';
import { jsonInteger, jsonUsd } from '../../domain/exactJson.js';
import type { Traffic } from '../../postgres/operatorReads.js';
import type { Store } from '../../postgres/store.js';
import { listedWebhookOf } from '../partner/webhooks.js';
import { type Route, route } from '../route.js';

/** What this process has counted since its start. */
export interface ProcessFigures {
  readonly spins: number;
  readonly errors: readonly { operation: string; errorCode: string; count: number }[];
  readonly spinSeconds: readonly { leSeconds: number | null; count: number }[];
  readonly partners: readonly { partnerId: number | null; requests: number; errors: number }[];
}

export interface OverviewServices {
  readonly store: Pick<Store, 'trafficToday' | 'attention'>;
  figures(): Promise<ProcessFigures>;
}

const PROCESS_ID = randomUUID();

const shown = ({ spins, wageredMicros, paidMicros }: Traffic) => ({
  spins: jsonInteger(spins),
  wageredUsd: jsonUsd(wageredMicros),
  paidOutUsd: jsonUsd(paidMicros),
});

const getOverview = ({ store, figures }: OverviewServices): Route =>
  route(contract.getOverview, async () => {
    const [traffic, { longestFailing, ...attention }, counted] = await Promise.all([
      store.trafficToday(),
      store.attention(),
      figures(),
    ]);
    return {
      at: new Date().toISOString(),
      today: { ...shown(traffic.all), partners: traffic.all.partners },
      busiest: traffic.busiest.map((each) => ({
        partnerId: each.partnerId,
        slug: each.slug,
        ...shown(each),
      })),
      attention,
      failingWebhooks: longestFailing.map(({ partnerId, slug, ...webhook }) => ({
        partnerId,
        slug,
        ...listedWebhookOf(webhook),
      })),
      process: { id: PROCESS_ID, ...counted },
    };
  });

export const overviewRoutes = (services: OverviewServices): Route[] => [getOverview(services)];
