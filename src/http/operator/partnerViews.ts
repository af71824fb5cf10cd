/** What a partner reads of itself, for operators: the partner's own operation, asked in its name. */
import type { TSchema } from '#typebox';
import { ApiError, ERRORS } from '../../domain/errors.js';
import { PATH } from '../../domain/requests.js';
import type { Store } from '../../postgres/store.js';
import { pathId, type Route } from '../route.js';

interface View {
  /** The partner's operation. */
  readonly of: string;
  readonly operationId: string;
  readonly path: string;
  readonly params: Readonly<Record<string, TSchema>>;
  readonly summary: string;
}

const VIEWS: readonly View[] = [
  {
    of: 'getSettlement',
    operationId: 'getPartnerSettlement',
    path: '/partners/{id}/settlements/{date}',
    params: { id: PATH.partnerId, date: PATH.reportDate },
    summary: "The settlement report of a partner's day, any revision of it",
  },
  {
    of: 'listWebhooks',
    operationId: 'listPartnerWebhooks',
    path: '/partners/{id}/webhooks',
    params: { id: PATH.partnerId },
    summary: 'The webhooks of a partner and how their receivers do, without their secrets',
  },
];

/** @param routes those of partners, among others */
export const partnerViewRoutes = (routes: readonly Route[], store: Pick<Store, 'findPartner'>): Route[] =>
  VIEWS.map(({ of, ...view }) => {
    const own = routes.find(({ operationId }) => operationId === of)!;
    return {
      ...own,
      ...view,
      scope: 'operator',
      errors: [...own.errors, ERRORS.partnerNotFound],
      async handle(request) {
        const partnerId = pathId(request.params.id!);
        const partner = partnerId === undefined ? undefined : await store.findPartner(partnerId);
        if (partner === undefined) throw new ApiError(ERRORS.partnerNotFound);
        return own.handle!({ ...request, partner });
      },
    };
  });
