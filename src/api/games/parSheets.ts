/** PAR sheets: upload and list (docs/contract.md §6). */

import { ApiError, ERRORS } from '../../domain/errors.js';
import { checkParSheet } from '../../domain/par.js';
import { pathId } from '../server/found.js';
import { type Route, route } from '../server/route.js';
import type { Store } from '../server/store.js';
import * as contract from './contract.js';

export const parSheetRoutes = (store: Store): Route[] => [
  route(contract.uploadParSheet, async ({ partner, body }) => {
    const checked = checkParSheet(body);
    if ('faults' in checked) throw new ApiError(ERRORS.invalidParSheet, { details: checked.faults });
    const stored = await store.parSheets.store(partner.partnerId, checked.sheet);
    if (stored === undefined) throw new ApiError(ERRORS.capReached);
    return stored;
  }),
  route(contract.listParSheets, async ({ partner }) => {
    return { parSheets: await store.parSheets.listActive(partner.partnerId) };
  }),
  route(contract.updateParSheet, async ({ actor, params, body }) => {
    const parSheetId = pathId(params.id);
    const row =
      parSheetId === undefined
        ? undefined
        : await store.parSheets.setStatus(actor, parSheetId, 'RETIRED', body.reason);
    if (row === undefined) throw new ApiError(ERRORS.parSheetNotFound);
    return row;
  }),
];
