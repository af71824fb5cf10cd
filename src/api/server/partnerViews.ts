/** Lets operators read the views of a partner by calling the partner's own operation on its behalf. */

import type { Store } from '../api.store.js';
import type { Endpoint } from '../contract/endpoint.js';
import { recallGames, recallPlayerGames } from '../players/contract.js';
import { getPartnerSettlement, getSettlement } from '../settlements/contract.js';
import { listPartnerWebhooks, listWebhooks } from '../webhooks/contract.js';
import { partnerOf } from './found.js';
import type { Route } from './route.js';

const VIEWS: readonly { readonly of: Endpoint; readonly view: Endpoint }[] = [
  { of: getSettlement, view: getPartnerSettlement },
  { of: recallGames, view: recallPlayerGames },
  { of: listWebhooks, view: listPartnerWebhooks },
];

/** @param routes all routes, including the partner routes */
export const partnerViewRoutes = (routes: readonly Route[], store: Pick<Store, 'partners'>): Route[] =>
  VIEWS.map(({ of, view }) => {
    const own = routes.find(({ operationId }) => operationId === of.operationId)!;
    return {
      ...own,
      ...view,
      async handle(request) {
        return own.handle({ ...request, partner: await partnerOf(store, request.params.id!) });
      },
    };
  });
