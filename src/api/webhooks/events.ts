/** The feed of events: what happened to the account within 30 days, for those whose webhooks missed some (docs/contract.md §13.4). */

import { invalid } from '../../domain/errors.js';
import { type Route, route } from '../server/route.js';
import type { Store } from '../server/store.js';
import * as contract from './contract.js';

const EVENT_ID = /^evt_[0-9a-f]{32}$/;

export const eventRoutes = ({ store }: { readonly store: Store }): Route[] => [
  route(contract.listEvents, async ({ partner, query }) => {
    const { after } = query;
    const limit = query.limit;
    const page =
      after === undefined || EVENT_ID.test(after)
        ? await store.events.feed(partner.partnerId, after, limit)
        : undefined;
    if (page === undefined) {
      throw invalid([{ path: '/after', message: 'must be the id of an event of the last 30 days' }]);
    }
    return page;
  }),
];
