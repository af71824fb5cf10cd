/**
 * Handlers of proofs of dealt outcomes, and of the public log entries of a game, for its partner and for
 * operators.
 */

import { ApiError, ERRORS, type Fault } from '../../domain/errors.js';
import { isShownAsSpin } from '../../domain/ledgerEntry.js';
import { labelKeyHash } from '../../domain/publicLog/logEntries.js';
import type { ListedEntry, LoggedEntry } from '../../publicLog/log/publicLogReads.store.js';
import { findRound, tableOf } from '../blackjack/routes.js';
import { booked, gameRowOf, isDropped, pathId } from '../server/found.js';
import { type Route, type RouteRequest, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';

const FORMAT = 'spindle proof v1';
const NUMBER = /^(0|[1-9]\d{0,14})$/;

const REASONS: Readonly<Record<NonNullable<Fault['reason']>, string>> = {
  FORCED: 'A tester chose the outcome, so it belongs to no sealed block',
  BEFORE_LOG: 'The outcome was dealt before it could be logged',
  ARCHIVED: 'The day of the spin is archived and no longer available here',
};

const unproven = (reason: NonNullable<Fault['reason']>): ApiError =>
  new ApiError(ERRORS.noProof, { details: [{ path: '', message: REASONS[reason], reason }] });

/** @throws ApiError KS-4219; KS-5002 if the block is not logged yet */
async function entryOf({ store }: Services, gameId: number, index: number) {
  const found = await store.publicLogReads.entryOfIndex(gameId, index);
  if (found === 'before-log') throw unproven('BEFORE_LOG');
  if (found === 'waiting') throw new ApiError(ERRORS.unavailable);
  return found;
}

/** @param partnerId partner that must own the spin; undefined: any partner */
async function spinProof(services: Services, spinId: string, partnerId?: number) {
  const { spinIds, store } = services;
  const meant = spinIds.decode(spinId);
  const isOwn = meant !== undefined && (partnerId === undefined || meant.partnerId === partnerId);
  if (!isOwn) throw new ApiError(ERRORS.notFound);
  // If a response contains an entry, the entry is committed soon. So if an entry is not committed within this
  // time, no client has got a response that contains it.
  await booked(services.cells, meant.entryId).catch(() => undefined);
  const entry = await store.ledgerEntries.find(meant.entryId);
  if (entry === undefined && (await isDropped(store.ledgerDays, meant.entryId))) throw unproven('ARCHIVED');
  if (entry === undefined || entry.partnerId !== meant.partnerId || !isShownAsSpin(entry))
    throw new ApiError(ERRORS.notFound);
  if (entry.kind === 'forcedSpin') throw unproven('FORCED');
  const { gameId, outcomeIndex: index } = entry;
  const logged = await entryOf(services, gameId, index);
  const [outcome, inLog] = await Promise.all([
    services.proofs.outcome(logged, { gameId, index }),
    services.proofs.entry(logged, logged.covering),
  ]);
  return { format: FORMAT, spinId, gameId, ...outcome, ...inLog };
}

/** @param partnerId partner that must own the round; undefined: any partner */
async function roundProof(services: Services, roundId: string, partnerId?: number) {
  const record = await findRound(services, roundId, partnerId);
  const { gameId, shoeIndex: index } = record;
  const { rules } = await tableOf(services, gameId);
  const logged = await entryOf(services, gameId, index);
  const [{ commitment, path }, inLog] = await Promise.all([
    services.proofs.shoe(logged, { gameId, index, rules }),
    services.proofs.entry(logged, logged.covering),
  ]);
  const isOpen = record.status === 'OPEN';
  const seed = isOpen ? null : (await services.blackjack.shoes.seedOf(gameId, index)).toString('hex');
  return { format: FORMAT, roundId, gameId, shoe: { index, commitment, seed }, path, ...inLog };
}

function statusOf({ opening: { type }, isBegun, isDone }: ListedEntry): string {
  if (type === 'void') return 'VOID';
  if (type === 'lost' || type === 'forgotten') return 'LOST';
  return isDone ? 'EXHAUSTED' : isBegun ? 'DEALING' : 'SEALED';
}

function shownEntry(logged: ListedEntry) {
  const { number, fromIndex, toIndex, isLate } = logged.opening;
  const type = logged.opening.type === 'forgotten' ? 'lost' : logged.opening.type;
  const isLost = type === 'lost';
  return {
    number,
    type,
    fromIndex: isLost ? null : fromIndex,
    toIndex: isLost ? null : toIndex,
    status: statusOf(logged),
    logIndex: logged.logIndex,
    loggedAt: logged.loggedAt.toISOString(),
    late: isLate,
  };
}

async function blocksOf(
  { store: { publicLogReads } }: Services,
  gameId: number,
  { after, limit }: RouteRequest<typeof contract.listBlocks>['query'],
) {
  const key = await publicLogReads.labelKey(gameId);
  const entries = await publicLogReads.entries(gameId, after === undefined ? 0 : after + 1, limit + 1);
  const shown = entries.slice(0, limit);
  return {
    gameConfigId: gameId,
    labelKey: key?.toString('hex') ?? null,
    labelKeyHash: key === undefined ? null : labelKeyHash(key).toString('hex'),
    blocks: shown.map(shownEntry),
    nextCursor: entries.length > limit ? shown.at(-1)!.opening.number : null,
  };
}

/**
 * Returns the seed data that an exhausted block was drawn from.
 *
 * @param isWhole true: includes the outcomes of the block
 */
async function revealOf(
  { store: { publicLogReads }, drawAgain }: Services,
  { opening }: LoggedEntry,
  isWhole: boolean,
) {
  const { seed, nonce, outcomes: kept } = await publicLogReads.revealed(opening);
  const reveal =
    opening.type === 'shoes'
      ? { seeds: seed.toString('base64') }
      : { seed: seed.toString('hex'), nonce: nonce.toString('hex') };
  if (!isWhole) return { reveal };
  const { gameId, fromIndex, toIndex } = opening;
  const outcomes = kept.length > 0 ? kept : await drawAgain({ gameId, seed, count: toIndex - fromIndex });
  return { reveal, outcomes: outcomes.toString('base64') };
}

async function blockOf(
  services: Services,
  gameId: number,
  { params, query }: Pick<RouteRequest<typeof contract.getBlock>, 'params' | 'query'>,
) {
  const number = NUMBER.test(params.number) ? Number(params.number) : undefined;
  const [logged] = number === undefined ? [] : await services.store.publicLogReads.entries(gameId, number, 1);
  const isShown = logged?.opening.number === number && logged?.opening.type !== 'forgotten';
  if (logged === undefined || !isShown) throw new ApiError(ERRORS.notFound);
  const { entry, salt, label, tlogProof } = await services.proofs.entry(logged);
  const item = { ...shownEntry(logged), entry, salt, label, tlogProof };
  if (item.status !== 'EXHAUSTED') return { ...item, reveal: null };
  return { ...item, ...(await revealOf(services, logged, query.outcomes === 'true')) };
}

async function ownGameId(
  { store }: Services,
  {
    partner,
    params,
  }: { readonly partner: { readonly partnerId: number }; readonly params: { readonly id: string } },
): Promise<number> {
  const gameId = pathId(params.id);
  const row = gameId === undefined ? undefined : await store.games.find(gameId);
  if (row === undefined || row.partnerId !== partner.partnerId) throw new ApiError(ERRORS.gameNotRegistered);
  return row.gameId;
}

export const proofRoutes = (services: Services): Route[] => {
  const anyGameId = async (id: string): Promise<number> => (await gameRowOf(services.store, id)).gameId;
  return [
    route(contract.getSpinProof, ({ partner, params }) =>
      spinProof(services, params.spinId, partner.partnerId),
    ),
    route(contract.getAnySpinProof, ({ params }) => spinProof(services, params.spinId)),
    route(contract.getRoundProof, ({ partner, params }) =>
      roundProof(services, params.roundId, partner.partnerId),
    ),
    route(contract.getAnyRoundProof, ({ params }) => roundProof(services, params.roundId)),
    route(contract.listBlocks, async (request) =>
      blocksOf(services, await ownGameId(services, request), request.query),
    ),
    route(contract.listAnyBlocks, async ({ params, query }) =>
      blocksOf(services, await anyGameId(params.id), query),
    ),
    route(contract.getBlock, async (request) =>
      blockOf(services, await ownGameId(services, request), request),
    ),
    route(contract.getAnyBlock, async (request) =>
      blockOf(services, await anyGameId(request.params.id), request),
    ),
  ];
};
