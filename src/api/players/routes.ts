/**
 * Handlers of players: balances (from Redis), spins and statements (committed entries from the ledger),
 * adjustments, and blocking of players.
 */
import { createHmac } from 'node:crypto';
import { firstIdAt } from '../../domain/entryId.js';
import { ApiError, ERRORS, type Fault, invalid } from '../../domain/errors.js';
import { jsonUsd } from '../../domain/exactJson.js';
import type { Partner } from '../../domain/game.js';
import { decimalTextToMicros, MAX_MICROS, microsToUsdText } from '../../domain/money.js';
import { REFUND_PREFIX } from '../../domain/refund.js';
import type { Adjusted } from '../../engine/cells/adjuster.js';
import type { Adjustment } from '../../engine/cells/adjustments.store.js';
import type { PlayerRecord } from '../../engine/cells/partnerReads.js';
import { check, type JsonObject, memberText } from '../server/body.js';
import { booked, isDropped, partnerOf, playerOf } from '../server/found.js';
import { cursorOf, type Route, route, wrongCursor } from '../server/route.js';
import type { Services } from '../server/services.js';
import { spinRecords, statementEntry } from '../spins/records.js';
import * as contract from './contract.js';
import { type AdjustmentBody, AdjustmentOrder, PlayerStatusOrder } from './contract.js';
import { recallRoutes } from './recall.js';

/**
 * Returns the internal id of a player. It never changes and reveals nothing about the partner's own
 * identifier.
 */
function userIdOf(key: Buffer, partnerId: number, playerId: string): string {
  return `usr_${createHmac('sha256', key).update(`${partnerId}:${playerId}`).digest('base64url').slice(0, 22)}`;
}

const playerResponse = (playerIdKey: Buffer, partner: Partner, playerId: string, player: PlayerRecord) => ({
  userId: userIdOf(playerIdKey, partner.partnerId, playerId),
  playerId,
  createdAt: new Date(player.createdAtMs).toISOString(),
  balanceUsd: jsonUsd(BigInt(player.balanceMicros)),
  status: player.status,
});

export const playerRoutes = (services: Services): Route[] => {
  const { store, cells } = services;
  return [
    route(contract.getPlayer, async ({ partner, params }) => {
      const playerId = params.playerId;
      return playerResponse(
        services.playerIdKey,
        partner,
        playerId,
        await playerOf(cells, partner.partnerId, playerId),
      );
    }),
    route(contract.listPlayerSpins, async ({ partner, params, query }) => {
      const playerId = params.playerId;
      const player = await playerOf(cells, partner.partnerId, playerId);
      const { page = 1, limit } = query;
      await booked(services.cells, player.newestEntryId);
      const newest = { id: player.newestEntryId, entryNumber: player.entries };
      const firstId = firstIdAt(player.createdAtMs);
      const of = { partnerId: partner.partnerId, playerId, newest, firstId };
      const { spins, total } = await store.spinHistory.spinPage(of, (page - 1) * limit, limit);
      return { spins: await spinRecords(services, partner, spins), page, limit, total };
    }),
    ...statusRoutes(services),
    ...adjustmentRoutes(services),
    ...recallRoutes(services),
    getStatement(services),
  ];
};

const statusRoutes = (services: Services): Route[] => [
  route(contract.updatePlayer, async ({ actor, params, body }) => {
    const { playerId } = params;
    const order: JsonObject = { ...body, playerId };
    check(PlayerStatusOrder, order);
    const { status, reason } = order;
    const { partnerId } = await partnerOf(services.store, params.id);
    await playerOf(services.cells, partnerId, playerId);
    const change = { partnerId, playerId, status, reason };
    const outcome = await services.cells.playerBlocking.change(actor, change);
    if (outcome === 'unavailable') throw new ApiError(ERRORS.unavailable);
    if (outcome === 'unknownPlayer') throw new ApiError(ERRORS.playerNotFound);
    return { playerId, status };
  }),
];

/**
 * Validates an adjustment order.
 *
 * @throws ApiError (KS-4101, KS-4102) with all faults
 */
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
    // The amount is read from the text of the body, because a double cannot distinguish all amounts of more
    // than 15 digits.
    amountMicros = decimalTextToMicros(memberText(text, 'amountUsd') ?? '');
    const path = '/amountUsd';
    if (amountMicros === 0) faults.push({ path, message: 'must not be 0' });
    if (amountMicros === undefined) {
      const most = microsToUsdText(MAX_MICROS);
      faults.push({ path, message: `must be between -${most} and ${most}, with at most 6 decimals` });
    }
  }
  if (typeof body.requestId === 'string' && body.requestId.startsWith(REFUND_PREFIX))
    faults.push({
      path: '/requestId',
      message: `must not begin with «${REFUND_PREFIX}», which is reserved for refunds by the service`,
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
      const message = `must keep the balance between -${most} and ${most}`;
      return invalid([{ path: '/amountUsd', message }]);
    }
    case 'refused':
      return new ApiError(ERRORS.unavailable);
    case 'unknown':
      return new ApiError(ERRORS.spinInProgress);
  }
}

const adjustmentRoutes = (services: Services): Route[] => [
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

const ENTRY_ID = /^[1-9]\d{0,18}$/;
/** Largest entry id, which is the largest signed 64-bit integer. */
const ENTRY_ID_MAX = 2n ** 63n - 1n;

const getStatement = (services: Services): Route =>
  route(contract.getStatement, async (request) => {
    const playerId = request.params.playerId;
    const cursor = cursorOf(request.query, ENTRY_ID);
    if (cursor !== undefined && BigInt(cursor) > ENTRY_ID_MAX) throw wrongCursor();
    const limit = request.query.limit;
    const partner = await partnerOf(services.store, request.params.id);
    const { partnerId } = partner;
    const player = await playerOf(services.cells, partnerId, playerId);
    await booked(services.cells, player.newestEntryId);
    const from = cursor === undefined ? player.newestEntryId : BigInt(cursor);
    const entries = await services.store.spinHistory.statement({ partnerId, playerId }, from, limit);
    const next = entries.at(-1)?.previousId ?? 0n;
    const isLast =
      entries.length < limit || next === 0n || (await isDropped(services.store.ledgerDays, next));
    return {
      partnerId,
      playerId,
      status: player.status,
      balanceUsd: jsonUsd(BigInt(player.balanceMicros)),
      createdAt: new Date(player.createdAtMs),
      entries: entries.map((entry) => statementEntry(services, entry)),
      nextCursor: isLast ? null : String(next),
    };
  });
