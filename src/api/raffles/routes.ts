/**
 * Handlers of raffles: operators create and void them; anybody can check their pools after they are sold out
 * (docs/contract.md §10).
 */
import type { Static } from '#typebox';
import { ApiError, ERRORS, invalid } from '../../domain/errors.js';
import { checkPrizeTable, prizeTableUsd } from '../../domain/games/prizeTable.js';
import type { PoolReveal } from '../../domain/games/rafflePool.js';
import { microsToUsdText } from '../../domain/money.js';
import type { GameRow } from '../../engine/catalog/games.store.js';
import { FairQueue } from '../../platform/runtime/fairQueue.js';
import { gameOf, refundsOf } from '../games/routes.js';
import { activePartnerOf, pathId } from '../server/found.js';
import { learn, Pending, type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';

/**
 * Number of pool reveals in the cache. The reveal of a pool of a million tickets has 2.7 MB and takes long to
 * read.
 */
const REVEALS_KEPT = 4;
/**
 * Number of concurrent reads of reveals. Each read holds a Postgres connection that the ledger needs as well.
 */
const REVEALS_AT_ONCE = 2;

/** Reads the reveal of a closed raffle, which never changes. Concurrent requests share one read. */
function revealer({ store }: Services) {
  const turns = new FairQueue({ atOnce: REVEALS_AT_ONCE });
  const kept = new Map<number, Promise<Static<typeof PoolReveal>>>();
  const read = async (gameId: number) => {
    const pool = await store.raffles.closedPool(gameId);
    if (pool === undefined) throw new Error(`raffle ${gameId} is closed but has no pool`);
    return {
      seed: pool.seed.toString('hex'),
      nonce: pool.nonce.toString('hex'),
      order: pool.order.toString('base64'),
    };
  };
  return (gameId: number) => {
    const known = kept.get(gameId);
    const reveal = known ?? turns.run(gameId, () => read(gameId));
    // The reveal is moved to the end of the cache, so that the first reveal in the cache is the least
    // recently used.
    kept.delete(gameId);
    kept.set(gameId, reveal);
    if (known === undefined) reveal.catch(() => kept.delete(gameId));
    if (kept.size > REVEALS_KEPT) kept.delete(kept.keys().next().value!);
    return reveal;
  };
}

async function poolOf(row: GameRow, reveal: (gameId: number) => Promise<object>) {
  const { raffle } = row;
  if (raffle === undefined) throw new ApiError(ERRORS.notFound);
  return {
    gameConfigId: row.gameId,
    displayName: row.displayName,
    configName: row.configName,
    status: row.status,
    ...(row.statusReason !== null && { statusReason: row.statusReason }),
    ...raffle.table,
    poolCommitment: raffle.commitment,
    sealedAt: raffle.sealedAt ?? null,
    closedAt: raffle.closedAt ?? null,
    // A raffle that was voided before it was sealed has no reveal.
    reveal: raffle.closedAt === null || raffle.commitment === null ? null : await reveal(row.gameId),
  };
}

export const raffleRoutes = (services: Services, reveal = revealer(services)): Route[] => [
  route(contract.createRaffle, async ({ actor, params, body }) => {
    const { displayName, configName, ...sent } = body;
    const checked = checkPrizeTable(sent);
    if ('faults' in checked) throw invalid(checked.faults);
    const partner = await activePartnerOf(services.store, params.id);
    const raffle = {
      partnerId: partner.partnerId,
      configName,
      displayName,
      table: prizeTableUsd(checked.table),
    };
    const row = await services.store.raffles.create(actor, raffle);
    if (row === 'name-taken') throw new ApiError(ERRORS.configNameTaken);
    await learn(services.catalog);
    const { ticketPriceMicros } = checked.table;
    return {
      ...gameOf(row, ticketPriceMicros),
      partnerId: row.partnerId,
      ticketPriceUsd: Number(microsToUsdText(ticketPriceMicros)),
      ticketsRemaining: row.raffle!.ticketsRemaining,
    };
  }),
  route(contract.getPool, async ({ partner, params }) => {
    const gameId = pathId(params.id);
    const row = gameId === undefined ? undefined : await services.store.games.find(gameId);
    if (row === undefined || row.partnerId !== partner.partnerId)
      throw new ApiError(ERRORS.gameNotRegistered);
    return poolOf(row, reveal);
  }),
  ...voidRoutes(services),
];

const voidRoutes = (services: Services): Route[] => [
  route(contract.voidRaffle, async ({ actor, params, body }) => {
    const gameId = pathId(params.id);
    const voided =
      gameId === undefined ? 'unknown' : await services.store.raffles.void(actor, gameId, body.reason);
    if (voided === 'unknown') throw new ApiError(ERRORS.gameNotFound);
    if (voided === 'no-raffle') throw new ApiError(ERRORS.gameTypeUnsupported);
    if (voided === 'closed') throw new ApiError(ERRORS.raffleClosed);
    const [isInForce] = await Promise.all([services.cells.endSale(voided.gameId), learn(services.catalog)]);
    const shown = {
      gameConfigId: voided.gameId,
      status: 'CLOSED',
      statusReason: 'VOIDED',
      ...refundsOf(voided),
      isInForce,
    };
    return isInForce ? shown : new Pending(shown);
  }),
];
