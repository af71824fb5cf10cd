/**
 * Handlers of blackjack: partners deal, play and read their rounds (docs/blackjack.md); operators manage
 * tables and the rounds of all partners.
 */
import { entryTimeMs } from '../../domain/entryId.js';
import { ApiError, ERRORS, type ErrorEntry, invalid } from '../../domain/errors.js';
import { jsonUsd } from '../../domain/exactJson.js';
import { legalActions } from '../../domain/games/blackjack.js';
import { rulesHash } from '../../domain/games/blackjackRules.js';
import { actionsOf, playRound, type RoundRecord, viewRound } from '../../domain/games/round.js';
import { checkTable } from '../../domain/games/table.js';
import type { BlackjackTable } from '../../domain/games/tableTerms.js';
import { microsToUsdText } from '../../domain/money.js';
import type {
  Acted,
  DealOrder,
  Dealt,
  KnownRound,
  MisplacedAction,
  RoundCaller,
} from '../../engine/blackjack/roundPlay.js';
import { gameOf } from '../games/routes.js';
import { completeFrom, cursorBefore, feedPage, feedRange, keptOf } from '../server/feed.js';
import { activePartnerOf, knownGame, ownGame } from '../server/found.js';
import { learn, Replayed, type Route, type RouteRequest, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import { denialOf, gameDenial, REFUSALS } from '../spins/refusals.js';
import { isExactly } from '../spins/spin.js';
import type { ActionBody, BlackjackBody, DealBody } from './contract.js';
import * as contract from './contract.js';

/** Returns the table of a game that has at least one recorded round. */
export async function tableOf({ catalog }: Services, gameId: number): Promise<BlackjackTable> {
  const { table } = await knownGame(catalog, gameId);
  if (table === undefined) throw new Error(`game ${gameId} has rounds but is not a blackjack table`);
  return table;
}

/** @param partnerId partner that must own the round; undefined: any partner */
export async function findRound(
  services: Services,
  roundId: string,
  partnerId?: number,
): Promise<RoundRecord> {
  const named = services.spinIds.decode(roundId);
  const isOwn = named !== undefined && (partnerId === undefined || named.partnerId === partnerId);
  const record = isOwn ? await services.store.rounds.find(named.entryId) : undefined;
  if (record === undefined || record.partnerId !== named!.partnerId) throw new ApiError(ERRORS.roundNotFound);
  return record;
}

const roundIdOf = (services: Services, { entryIds, partnerId }: RoundRecord): string =>
  services.spinIds.encodeOne(entryIds[0]!, partnerId);

export async function shownRecord(services: Services, record: RoundRecord) {
  const table = await tableOf(services, record.gameId);
  const seed = await services.blackjack.shoes.seedOf(record.gameId, record.shoeIndex);
  return {
    ...viewRound(table, record, seed, roundIdOf(services, record)),
    actions: record.moves,
    table: { wagerUsd: Number(microsToUsdText(table.wagerMicros)), rules: table.rules },
    createdAt: new Date(entryTimeMs(record.entryIds[0]!)).toISOString(),
  };
}

/** Renders a round for the feed: its record, with the ledger entries that moved its money. */
async function timedRound(services: Services, record: RoundRecord) {
  const { entryIds, wagersMicros, balancesMicros, partnerId, status, payoutMicros = 0 } = record;
  const timeOf = (id: bigint): string => new Date(entryTimeMs(id)).toISOString();
  const last = entryIds.length - 1;
  return {
    ...(await shownRecord(services, record)),
    endedAt: status === 'OPEN' ? null : timeOf(entryIds[last]!),
    entries: entryIds.map((id, place) => ({
      entryId: services.spinIds.encodeOne(id, partnerId),
      createdAt: timeOf(id),
      wagerUsd: jsonUsd(BigInt(wagersMicros[place]!)),
      payoutUsd: jsonUsd(BigInt(place === last && status === 'SETTLED' ? payoutMicros : 0)),
      balanceAfterUsd: jsonUsd(BigInt(balancesMicros[place]!)),
    })),
  };
}

// Deal ------------------------------------------------------------------------------------------------------

/** The part of a request that a round needs until its last step is sent. */
type Caller = Pick<RouteRequest, 'partner' | 'refusal' | 'deadline'>;

const callerOf = ({ catalog }: Services, { partner, refusal, deadline }: Caller): RoundCaller => ({
  partner,
  limits: () => catalog.partner(partner.partnerId) ?? partner,
  deadline,
  isGone: () => refusal() !== undefined,
});

async function deal(services: Services, from: Caller, body: DealBody, text: string) {
  const { partner, refusal } = from;
  const game = await ownGame(services.catalog, body.gameId, partner);
  const isWager = game !== undefined && isExactly(game.wagerMicros, body.wagerUsd, text);
  let denial: ErrorEntry | undefined;
  const { gameId, playerId, requestId } = body;
  const order: DealOrder = {
    ...callerOf(services, from),
    game,
    gameId,
    playerId,
    requestId,
    isDenied: () => {
      const newest = game && services.catalog.game(gameId);
      const otherKind = newest?.table === undefined ? ERRORS.validationFailed : undefined;
      const judgement = gameDenial(newest, isWager, ERRORS.gameNotRegistered, otherKind);
      denial = denialOf(services.spinRules, partner, newest, refusal(), judgement);
      return denial !== undefined;
    },
    mayEqual: isWager && game.table !== undefined,
  };
  const dealt = await services.blackjack.rounds.deal(order);
  if (typeof dealt === 'string' || !('record' in dealt)) throw dealRefusal(services, dealt, order, denial);
  return shown(services, game!.table!, dealt, 1);
}

function dealRefusal(
  services: Services,
  dealt: Exclude<Dealt, KnownRound>,
  { requestId }: DealOrder,
  denial: ErrorEntry | undefined,
): ApiError {
  if (dealt === 'refused') return new ApiError(ERRORS.unavailable);
  if (dealt === 'unknown')
    return new ApiError(requestId === undefined ? ERRORS.unavailable : ERRORS.spinInProgress);
  if ('open' in dealt) {
    const { open } = dealt;
    const roundId = roundIdOf(services, open);
    const message = 'already has an open round at this table. Finish that round first.';
    const lastActionSeq = actionsOf(open).length;
    return new ApiError(ERRORS.roundOpen, {
      details: [{ path: '/playerId', message, roundId, lastActionSeq }],
    });
  }
  if (dealt.refusal === 'denied' && denial !== undefined) {
    const details = [{ path: '/gameId', message: 'must be the id of a blackjack table' }];
    return new ApiError(denial, denial === ERRORS.validationFailed ? { details } : {});
  }
  return new ApiError(REFUSALS[dealt.refusal]);
}

function shown(
  services: Services,
  table: BlackjackTable,
  { record, seed, isReplay }: KnownRound & { readonly isReplay: boolean },
  entries: number,
) {
  const view = viewRound(table, record, seed, roundIdOf(services, record), entries);
  return isReplay ? new Replayed(view) : view;
}

// Act -------------------------------------------------------------------------------------------------------

function misplacedError(table: BlackjackTable, { misplaced, record, seed }: MisplacedAction): ApiError {
  const isStale = misplaced === 'stale';
  const entry = isStale ? ERRORS.actionStale : ERRORS.actionIllegal;
  const path = isStale ? '/seq' : '/action';
  if (record.status !== 'OPEN') {
    const message = 'The round has ended. No action is legal';
    return new ApiError(entry, { details: [{ path, message, legalActions: [] }] });
  }
  const legal = record.isToVoid ? [] : legalActions(playRound(table, seed, record.moves));
  const expectedSeq = actionsOf(record).length + 1;
  const message = isStale
    ? `must be ${expectedSeq}, the number of the next action`
    : `must be one of the legal actions: ${legal.join(', ')}`;
  return new ApiError(entry, { details: [{ path, message, legalActions: legal, expectedSeq }] });
}

const ACT_REFUSALS: Readonly<Record<Extract<Acted, string>, ErrorEntry>> = {
  insufficient: ERRORS.insufficientBalance,
  overflow: ERRORS.spinFailed,
  refused: ERRORS.unavailable,
  unknown: ERRORS.spinInProgress,
};

async function act(services: Services, from: Caller, { roundId, action, seq }: ActionBody) {
  const { partner } = from;
  const record = await findRound(services, roundId, partner.partnerId);
  const table = await tableOf(services, record.gameId);
  const acted = await services.blackjack.rounds.act(table, callerOf(services, from), record, action, seq);
  if (typeof acted === 'string') throw new ApiError(ACT_REFUSALS[acted]);
  if ('misplaced' in acted) throw misplacedError(table, acted);
  return shown(services, table, acted, acted.entries);
}

// Routes ----------------------------------------------------------------------------------------------------

const playRoutes = (services: Services): Route[] => [
  route(contract.dealRound, (request) => deal(services, request, request.body, request.text)),
  route(contract.actInRound, (request) => act(services, request, request.body)),
];

export const blackjackRoutes = (services: Services): Route[] => [
  ...playRoutes(services),
  route(contract.getRound, async ({ partner, params }) =>
    shownRecord(services, await findRound(services, params.roundId, partner.partnerId)),
  ),
  route(contract.listRounds, async ({ partner, query }) => {
    const { page, limit } = query as { page: number; limit: number };
    const only = { playerId: query.playerId, status: query.status };
    const { rounds, total } = await services.store.rounds.page(partner.partnerId, only, page, limit);
    const records = await Promise.all(rounds.map((record) => shownRecord(services, record)));
    return { rounds: records, page, limit, total };
  }),
  route(contract.listRoundsByTime, async ({ partner, query }) => {
    const range = await keptOf(services, feedRange(services, partner, query, 'roundId'));
    const { items, nextId } = await feedPage(services, partner, () =>
      services.store.rounds.byTime(range, query.limit),
    );
    return {
      rounds: await Promise.all(items.map((record) => timedRound(services, record))),
      nextCursor: cursorBefore(services, partner, nextId),
      ...(await completeFrom(services)),
    };
  }),
  ...operatorRoutes(services),
  listAllRounds(services),
];

const ROUND_TIMEOUT_DEFAULT_S = 86_400;

async function makeTable(services: Services, actor: string, id: string, body: BlackjackBody) {
  const { displayName, configName, wagerUsd, rules, roundTimeoutS = ROUND_TIMEOUT_DEFAULT_S } = body;
  const given = rules as Readonly<Record<string, unknown>>;
  const checked = checkTable({ wagerUsd, rules: given, roundTimeoutSeconds: roundTimeoutS });
  if ('faults' in checked) throw invalid(checked.faults);
  const partner = await activePartnerOf(services.store, id);
  const { terms } = checked;
  const row = await services.store.rounds.createTable(actor, {
    partnerId: partner.partnerId,
    configName,
    displayName,
    terms,
  });
  if (row === 'name-taken') throw new ApiError(ERRORS.configNameTaken);
  await learn(services.catalog);
  return {
    ...gameOf(row, terms.wagerMicros),
    partnerId: row.partnerId,
    wagerUsd: Number(microsToUsdText(terms.wagerMicros)),
    rules: terms.rules,
    rulesHash: rulesHash(terms.rules).toString('hex'),
    roundTimeoutS,
  };
}

const roundEnded = (): ApiError =>
  new ApiError(ERRORS.actionIllegal, {
    details: [{ path: '', message: 'The round has already ended', legalActions: [] }],
  });

/** Ends an open round. The audit log entry is written first, so that no round is ended without its entry. */
async function endRound(
  services: Services,
  actor: string,
  roundId: string,
  how: 'timeout' | 'void',
  reason?: string,
): Promise<RoundRecord> {
  const record = await findRound(services, roundId);
  if (record.status !== 'OPEN') throw roundEnded();
  const table = await tableOf(services, record.gameId);
  const partner = services.catalog.partner(record.partnerId);
  if (partner === undefined) throw new Error(`partner ${record.partnerId} is not in the catalog`);
  const action = how === 'void' ? 'round.void' : 'round.close';
  const details = {
    player: `${record.partnerId}:${record.playerId}`,
    ...(reason === undefined ? {} : { reason }),
  };
  await services.store.auditLog.recordRound(actor, action, roundId, details);
  const ended = await services.blackjack.rounds.end(table, partner, record, how);
  if (typeof ended !== 'string' && !('misplaced' in ended)) return ended.record;
  // If this entry can't be written, the answer still says what is known of the round.
  const refusal = typeof ended === 'string' ? ended : ended.misplaced;
  await services.store.auditLog
    .recordRound(actor, `${action}.refused`, roundId, { ...details, refusal })
    .catch(() => {});
  if (typeof ended !== 'string') throw roundEnded();
  throw new ApiError(ended === 'unknown' ? ERRORS.spinInProgress : ERRORS.unavailable);
}

const operatorRoutes = (services: Services): Route[] => [
  route(contract.createBlackjackGame, ({ actor, params, body }) =>
    makeTable(services, actor, params.id, body),
  ),
  route(contract.showRound, async ({ params }) =>
    shownRecord(services, await findRound(services, params.roundId)),
  ),
  route(contract.voidRound, async ({ actor, params, body }) =>
    shownRecord(services, await endRound(services, actor, params.roundId, 'void', body.reason)),
  ),
  route(contract.closeRound, async ({ actor, params, query }) =>
    shownRecord(services, await endRound(services, actor, params.roundId, 'timeout', query.reason)),
  ),
];

const listAllRounds = ({ store, spinIds }: Services): Route =>
  route(contract.listAllRounds, async ({ query }) => {
    const { page = 1, limit, ...of } = query;
    const { rounds, total } = await store.roundList.page(of, page, limit);
    return {
      rounds: rounds.map(({ dealId, wageredMicros, payoutMicros, ...round }) => ({
        ...round,
        roundId: spinIds.encodeOne(dealId, round.partnerId),
        createdAt: new Date(entryTimeMs(dealId)),
        wageredUsd: jsonUsd(wageredMicros),
        payoutUsd: payoutMicros === null ? null : jsonUsd(payoutMicros),
      })),
      page,
      limit,
      total,
    };
  });
