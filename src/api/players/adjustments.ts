/** The operator's adjustments of players' balances (docs/contract.md §15.4). */

import { ApiError, ERRORS, type Fault, invalid } from '../../domain/errors.js';
import { jsonUsd } from '../../domain/exactJson.js';
import { decimalTextToMicros, MAX_MICROS, microsToUsdText } from '../../domain/money.js';
import { REFUND_PREFIX } from '../../domain/refund.js';
import type { Adjusted } from '../../engine/cells/adjuster.js';
import type { Adjustment } from '../../engine/cells/adjustments.store.js';
import { check, type JsonObject, memberText } from '../server/body.js';
import { partnerOf } from '../server/found.js';
import { type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';
import { type AdjustmentBody, AdjustmentOrder } from './contract.js';

/** What is asked for, checked. @throws ApiError (KS-4101, KS-4102) with all that is wrong. */
function orderOf(playerId: string, body: JsonObject, text: string): Omit<Adjustment, 'partnerId'> {
  let refusal: ApiError | undefined;
  let order: AdjustmentBody | undefined;
  try {
    const asked: JsonObject = { ...body, playerId };
    check(AdjustmentOrder, asked);
    order = asked;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    refusal = error;
  }
  const faults: Fault[] = [...(refusal?.details ?? [])];
  let amountMicros: number | undefined;
  if (Number.isFinite(body.amountUsd)) {
    // Its text: amounts of more than 15 digits are not all told apart by a double.
    amountMicros = decimalTextToMicros(memberText(text, 'amountUsd') ?? '');
    const path = '/amountUsd';
    if (amountMicros === 0) faults.push({ path, message: 'must not be 0' });
    if (amountMicros === undefined) {
      const most = microsToUsdText(MAX_MICROS);
      faults.push({ path, message: `must be within -${most} and ${most}, with at most 6 decimals` });
    }
  }
  if (typeof body.requestId === 'string' && body.requestId.startsWith(REFUND_PREFIX))
    faults.push({
      path: '/requestId',
      message: `must not begin with «${REFUND_PREFIX}», as the service's own refunds do`,
    });
  if (order === undefined || faults.length > 0) {
    throw new ApiError(refusal?.entry ?? ERRORS.validationFailed, { details: faults });
  }
  const { reason, requestId } = order;
  return { playerId, requestId, amountMicros: amountMicros!, reason };
}

function refusalOf(adjusted: Exclude<Adjusted, object>): ApiError {
  switch (adjusted) {
    case 'reused':
      return new ApiError(ERRORS.requestIdReused);
    case 'insufficient':
      return new ApiError(ERRORS.insufficientBalance);
    case 'overflow': {
      const most = microsToUsdText(MAX_MICROS);
      const message = `the balance would not be within -${most} and ${most}`;
      return invalid([{ path: '/amountUsd', message }]);
    }
    case 'refused':
      return new ApiError(ERRORS.unavailable);
    case 'unknown':
      return new ApiError(ERRORS.spinInProgress);
  }
}

export const adjustmentRoutes = (services: Services): Route[] => [
  route(contract.adjustBalance, async ({ actor, params, body, text }) => {
    const order = orderOf(params.playerId, body, text);
    const partner = await partnerOf(services.store, params.id);
    const { partnerId } = partner;
    const adjusted = await services.cells.adjuster.adjust(
      actor,
      { partnerId, ...order },
      {
        openingBalanceMicros: partner.openingBalanceMicros,
        enforcesBalance: partner.balanceMode === 'enforce',
      },
    );
    if (typeof adjusted === 'string') throw refusalOf(adjusted);
    return {
      playerId: order.playerId,
      balanceUsd: jsonUsd(BigInt(adjusted.balanceMicros)),
      adjustmentId: services.spinIds.encodeOne(adjusted.entryId, partnerId),
    };
  }),
];
