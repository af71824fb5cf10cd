/** Handler of the feed of a partner's adjustments (docs/contract.md §11.2). */
import { adjustmentData, type ReasonedAdjustment } from '../../domain/adjustment.js';
import { entryTimeMs } from '../../domain/entryId.js';
import { cursorBefore, feedPage, feedRange } from '../server/feed.js';
import { type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';

export const adjustmentRecord = ({ spinIds }: Pick<Services, 'spinIds'>, adjustment: ReasonedAdjustment) => ({
  ...adjustmentData(spinIds, adjustment),
  createdAt: new Date(entryTimeMs(adjustment.entryId)).toISOString(),
});

export const adjustmentRoutes = (services: Services): Route[] => [
  route(contract.listAdjustments, async ({ partner, query }) => {
    const range = feedRange(services, partner, query, 'entryId');
    const { items, nextId } = await feedPage(services, partner, () =>
      services.store.adjustments.byTime(range, query.limit),
    );
    return {
      adjustments: items.map((adjustment) => adjustmentRecord(services, adjustment)),
      nextCursor: cursorBefore(services, partner, nextId),
    };
  }),
];
