/**
 * Handlers of players: balances (from Redis), spins and statements (committed entries from the ledger),
 * adjustments, and blocking of players.
 */
import { createHmac } from 'node:crypto';
import { csvTexts } from '../../domain/csv.js';
import { firstIdAt } from '../../domain/entryId.js';
import { ApiError, ERRORS, type Fault, invalid } from '../../domain/errors.js';
import { jsonUsd } from '../../domain/exactJson.js';
import type { Partner } from '../../domain/game.js';
import { decimalTextToMicros, MAX_MICROS, microsToUsdText } from '../../domain/money.js';
import { REFUND_PREFIX } from '../../domain/refund.js';
import type { Adjusted } from '../../engine/cells/adjuster.js';
import type { Adjustment } from '../../engine/cells/adjustments.store.js';
import type { PlayerRecord } from '../../engine/cells/partnerReads.js';
import { csvHead, csvLines } from '../contract/csvRows.js';
import { check, type JsonObject, memberText } from '../server/body.js';
import { booked, isDropped, partnerOf, playerOf } from '../server/found.js';
import {
  cursorOf,
  JsonText,
  Pending,
  type Route,
  type RouteRequest,
  route,
  wrongCursor,
} from '../server/route.js';
import type { Services } from '../server/services.js';
import { timeRangeOf } from '../server/timeRange.js';
import { spinTexts, statementEntry } from '../spins/records.js';
import type { EntryRange } from '../spins/spinHistory.store.js';
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
      const texts = await spinTexts(services, partner, spins, false);
      return new JsonText(`{"spins":[${texts}],"page":${page},"limit":${limit},"total":${total}}`);
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
    if (outcome === 'unknownPlayer') throw new ApiError(ERRORS.playerNotFound);
    const isInForce = outcome === 'done';
    return isInForce ? { playerId, status, isInForce } : new Pending({ playerId, status, isInForce });
  }),
];

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
const ENTRY_ID_MAX = 2n ** 63n - 1n;

type StatementRequest = RouteRequest<typeof contract.getStatement>;

interface WantedStatement {
  readonly partnerId: number;
  readonly playerId: string;
  readonly player: PlayerRecord;
  readonly range: EntryRange;
  /** Entry at which the statement continues; undefined: at the newest entry of the range. */
  readonly cursor: bigint | undefined;
}

/**
 * Parses the request, and waits until the player's newest entry is committed.
 *
 * @throws ApiError KS-4101, KS-4204, KS-4209, KS-5002
 */
async function wantedStatement(services: Services, request: StatementRequest): Promise<WantedStatement> {
  const { playerId } = request.params;
  const text = cursorOf(request.query, ENTRY_ID);
  const cursor = text === undefined ? undefined : BigInt(text);
  if (cursor !== undefined && cursor > ENTRY_ID_MAX) throw wrongCursor();
  const { from, to } = timeRangeOf(request.query);
  const { partnerId } = await partnerOf(services.store, request.params.id);
  const player = await playerOf(services.cells, partnerId, playerId);
  await booked(services.cells, player.newestEntryId);
  const range = {
    fromId: from === undefined ? 0n : firstIdAt(Math.max(0, from.getTime())),
    toId: to === undefined ? ENTRY_ID_MAX : firstIdAt(Math.max(0, to.getTime())),
  };
  return { partnerId, playerId, player, range, cursor };
}

/** Returns a page of a statement, and the entry at which it continues, or undefined at its end. */
async function statementPage(
  { store }: Services,
  { partnerId, playerId, player, range }: WantedStatement,
  cursor: bigint | undefined,
  limit: number,
) {
  const of = { partnerId, playerId, newestId: player.newestEntryId };
  const { entries, nextId } = await store.spinHistory.statement(of, range, cursor, limit);
  const isLast = nextId === undefined || (await isDropped(store.ledgerDays, nextId));
  return { entries, nextId: isLast ? undefined : nextId };
}

/** Returns the time before which only the archive has entries of the player; undefined if it has none. */
async function archivedBefore({ store }: Services, player: PlayerRecord): Promise<Date | undefined> {
  const keptFrom = await store.ledgerDays.keptFrom();
  return keptFrom !== undefined && player.createdAtMs < keptFrom.getTime() ? keptFrom : undefined;
}

const CSV_ENTRIES = 500;

const CSV_HEAD = csvHead({
  entryId: '',
  kind: '',
  createdAt: '',
  gameId: '',
  wagerUsd: '',
  creditUsd: '',
  balanceUsd: '',
  requestId: '',
  spinId: '',
} satisfies Record<keyof ReturnType<typeof statementEntry>, string>);

async function* statementCsv(services: Services, request: StatementRequest): AsyncGenerator<string> {
  const wanted = await wantedStatement(services, request);
  const csvText = csvTexts(request.query);
  let cursor = wanted.cursor;
  let head = CSV_HEAD;
  do {
    const { entries, nextId } = await statementPage(services, wanted, cursor, CSV_ENTRIES);
    const rows = entries.map((entry) => {
      const row = statementEntry(services, entry);
      return { ...row, createdAt: row.createdAt.toISOString() };
    });
    const text = head + csvLines(rows, csvText);
    if (text !== '') yield text;
    head = '';
    cursor = nextId;
  } while (cursor !== undefined);
}

const getStatement = (services: Services): Route =>
  route(
    contract.getStatement,
    async (request) => {
      const wanted = await wantedStatement(services, request);
      const { partnerId, playerId, player, cursor } = wanted;
      const { entries, nextId } = await statementPage(services, wanted, cursor, request.query.limit);
      const [completeFrom, statusChange] = await Promise.all([
        archivedBefore(services, player),
        services.store.auditLog.newestStatus('player.status', `player:${partnerId}:${playerId}`),
      ]);
      return {
        partnerId,
        playerId,
        status: player.status,
        statusChange,
        balanceUsd: jsonUsd(BigInt(player.balanceMicros)),
        createdAt: new Date(player.createdAtMs),
        entries: entries.map((entry) => statementEntry(services, entry)),
        nextCursor: nextId === undefined ? null : String(nextId),
        ...(completeFrom === undefined ? {} : { completeFrom: completeFrom.toISOString() }),
      };
    },
    {
      csvPieces: (request) => statementCsv(services, request),
      csvHeaders: async (request) => {
        const { player } = await wantedStatement(services, request);
        const completeFrom = await archivedBefore(services, player);
        return completeFrom === undefined ? '' : `X-Complete-From: ${completeFrom.toISOString()}`;
      },
    },
  );
