/** PAR sheets: upload and list (docs/contract.md §6). */
import { ApiError, ERRORS } from '../../domain/errors.js';
import { checkParSheet, ParSheetBody } from '../../domain/par.js';
import {
  OperatorParSheet,
  PATH,
  ParSheetList,
  ParSheetPatch,
  ParSheetResponse,
} from '../../domain/requests.js';
import type { Store } from '../../postgres/store.js';
import { pathId, type Route } from '../route.js';

const UPLOAD_LIMIT = 10_240;

export const parSheetRoutes = (store: Store): Route[] => [
  {
    method: 'post',
    path: '/par-sheets',
    operationId: 'uploadParSheet',
    tag: 'PAR sheets',
    summary: 'Upload a PAR sheet',
    scope: 'partner',
    bodyLimit: UPLOAD_LIMIT,
    body: ParSheetBody,
    ownCheck: true,
    status: 201,
    response: ParSheetResponse,
    errors: [ERRORS.invalidParSheet, ERRORS.capReached],
    failure: ERRORS.parUploadFailed,
    async handle({ partner, body }) {
      const checked = checkParSheet(body);
      if ('faults' in checked) throw new ApiError(ERRORS.invalidParSheet, { details: checked.faults });
      const stored = await store.storeParSheet(partner.partnerId, checked.sheet);
      if (stored === undefined) throw new ApiError(ERRORS.capReached);
      return stored;
    },
  },
  {
    method: 'get',
    path: '/par-sheets',
    operationId: 'listParSheets',
    tag: 'PAR sheets',
    summary: 'List the active PAR sheets',
    scope: 'partner',
    status: 200,
    response: ParSheetList,
    errors: [],
    failure: ERRORS.internal,
    async handle({ partner }) {
      return { parSheets: await store.listActiveParSheets(partner.partnerId) };
    },
  },
  {
    method: 'patch',
    path: '/par-sheets/{id}',
    params: { id: PATH.parSheetId },
    operationId: 'updateParSheet',
    tag: 'PAR sheets',
    summary: 'Retire a PAR sheet: no further game can be registered on it',
    scope: 'operator',
    body: ParSheetPatch,
    status: 200,
    response: OperatorParSheet,
    errors: [ERRORS.parSheetNotFound],
    failure: ERRORS.internal,
    async handle({ actor, params }) {
      const parSheetId = pathId(params.id!);
      const row =
        parSheetId === undefined ? undefined : await store.setParSheetStatus(actor, parSheetId, 'RETIRED');
      if (row === undefined) throw new ApiError(ERRORS.parSheetNotFound);
      return row;
    },
  },
];
