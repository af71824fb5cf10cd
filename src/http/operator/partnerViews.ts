/** What a partner reads of itself, for operators: the partner's own operation, asked in its name. */
import type { Endpoint } from '../../contract/endpoint.js';
import { getPartnerSettlement, getSettlement } from '../../contract/endpoints/settlements.js';
import { listPartnerWebhooks, listWebhooks } from '../../contract/endpoints/webhooks.js';
import { ApiError, ERRORS } from '../../domain/errors.js';
import type { Store } from '../../postgres/store.js';
import { pathId, type Route } from '../route.js';

const VIEWS: readonly { readonly of: Endpoint; readonly view: Endpoint }[] = [
  { of: getSettlement, view: getPartnerSettlement },
  { of: listWebhooks, view: listPartnerWebhooks },
];

/** @param routes those of partners, among others */
export const partnerViewRoutes = (routes: readonly Route[], store: Pick<Store, 'findPartner'>): Route[] =>
  VIEWS.map(({ of, view }) => {
    const own = routes.find(({ operationId }) => operationId === of.operationId)!;
    return {
      ...own,
      ...view,
      async handle(request) {
        const partnerId = pathId(request.params.id!);
        const partner = partnerId === undefined ? undefined : await store.findPartner(partnerId);
        if (partner === undefined) throw new ApiError(ERRORS.partnerNotFound);
        return own.handle({ ...request, partner });
      },
    };
  });
