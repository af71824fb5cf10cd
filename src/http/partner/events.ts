/** The feed of events: what happened to the account within 30 days, for those whose webhooks missed some (docs/contract.md §13). */
import { ApiError, ERRORS } from '../../domain/errors.js';
import { EventFeed, EventFeedQuery } from '../../domain/requests.js';
import type { Store } from '../../postgres/store.js';
import { type Route, summed } from '../route.js';

const EVENT_ID = /^evt_[0-9a-f]{32}$/;

export const eventRoutes = ({ store }: { readonly store: Store }): Route[] => [
  {
    method: 'get',
    path: '/events',
    operationId: 'listEvents',
    tag: 'Webhooks',
    summary: 'The events of the account of the last 30 days, the oldest first',
    description:
      'Whether or not a webhook subscribes to them, in the order in which they were committed: none ever appears before one that was read. Test events are not in it.',
    scope: 'partner',
    query: EventFeedQuery,
    status: 200,
    ...summed(EventFeed),
    errors: [],
    failure: ERRORS.internal,
    async handle({ partner, query, words }) {
      const { after } = words;
      const limit = query.limit!;
      const page =
        after === undefined || EVENT_ID.test(after)
          ? await store.eventFeed(partner.partnerId, after, limit)
          : undefined;
      if (page === undefined) {
        const details = [{ path: '/after', message: 'must be the id of an event of the last 30 days' }];
        throw new ApiError(ERRORS.validationFailed, { details });
      }
      return page;
    },
  },
];
