/** Schemas and operations of PAR sheets and games. */
import { type Static, Type } from '#typebox';
import { StatusChange } from '../../domain/auditEntry.js';
import { ERRORS } from '../../domain/errors.js';
import { GAME_TYPES } from '../../domain/games/kindOfGame.js';
import { ParSheetBody } from '../../domain/par.js';
import {
  AUDIT_REASON,
  CONFIG_NAME_PATTERN,
  choice,
  extensible,
  id,
  nullable,
  opaque,
  Page,
  pageMembers,
  partnerFilter,
  usd,
  VoidBody,
} from '../../domain/schema.js';
import { endpointsOf } from '../contract/endpoint.js';
import { TRAFFIC } from '../contract/examples.js';
import { SHEET_BODY } from '../contract/sheetExample.js';
import { GameDay } from '../traffic/contract.js';

const { partner, operator } = endpointsOf('Games');
const sheets = endpointsOf('PAR sheets');

export const GameBody = Type.Object({
  parSheetId: id('Id of an active PAR sheet'),
  displayName: opaque('Name shown to players'),
  configName: Type.String({
    pattern: CONFIG_NAME_PATTERN,
    description: "System identifier, unique across the partner's games",
  }),
  gameType: Type.Optional(
    Type.String({
      description:
        '`slot`, the only type that partners can create. The operator creates raffles and blackjack tables.',
    }),
  ),
  minWagerUsd: Type.Optional(
    usd('Optional minimum wager, in USD. It must equal the denomination of the PAR sheet.'),
  ),
  maxWagerUsd: Type.Optional(
    usd('Optional maximum wager, in USD. It must equal the denomination of the PAR sheet.'),
  ),
  wagerIncrementUsd: Type.Optional(
    usd('Optional wager increment, in USD. It must equal the denomination of the PAR sheet.'),
  ),
});

export const GameResponse = Type.Object({
  gameConfigId: Type.Integer({ description: 'Id of the game, which spins send as `gameId`' }),
  displayName: Type.String(),
  configName: Type.String(),
  gameType: extensible(GAME_TYPES, 'Kind of game'),
  status: extensible(
    ['ACTIVE', 'SUSPENDED', 'SEALING', 'CLOSED'],
    '`ACTIVE`: the game can be played. `SUSPENDED`: it refuses spins. `SEALING`: a raffle before its first ticket. `CLOSED`: a raffle after its last ticket, or a voided raffle',
  ),
  statusReason: Type.Optional(
    extensible(
      ['RESTORED', 'VOIDED'],
      '`RESTORED`: the raffle is suspended because a restore of the database may have lost tickets that players have seen. `VOIDED`: the operator voided the raffle, and each ticket is refunded',
    ),
  ),
  parSheetId: nullable(Type.Integer()),
  minWagerUsd: usd('Minimum wager in USD, equal to the fixed wager of the game'),
  maxWagerUsd: usd('Maximum wager in USD, equal to the fixed wager of the game'),
  wagerIncrementUsd: usd('Wager increment in USD, equal to the fixed wager of the game'),
  poolSize: Type.Optional(Type.Integer({ description: 'Total number of tickets of a raffle' })),
  poolCommitment: Type.Optional(
    nullable(
      Type.String({
        description: 'Commitment to the order of the tickets of a raffle; null until the pool is sealed',
      }),
    ),
  ),
});

export const GameRotated = Type.Object({
  gameConfigId: Type.Integer(),
  number: nullable(
    Type.Integer({
      description:
        "Number of the void among the game's entries in the public log; null if nothing was voided",
    }),
  ),
  voidedFrom: Type.Integer({ description: 'Index of the first voided outcome' }),
  voidedTo: Type.Integer({
    description:
      'Index after the last voided outcome. It equals `voidedFrom` if the game had no sealed, undealt outcomes.',
  }),
  isInForce: Type.Boolean({
    description: 'False in a response with status 202: the rotation is on record and not confirmed',
  }),
});

export const ListedGame = Type.Object({
  ...GameResponse.properties,
  certifiedRtp: Type.Optional(
    Type.Number({
      description:
        'Return to player, as a fraction. For a slot: the certified value of its PAR sheet. For a raffle: the sum of all prizes divided by the price of all tickets.',
    }),
  ),
  hitFrequency: Type.Optional(Type.Number({ description: 'Probability that a spin of the slot pays' })),
  topPrizeUsd: Type.Optional(
    usd('Largest payout of a spin or ticket, in USD. Present for slots and raffles.'),
  ),
  basicStrategyRtp: Type.Optional(
    Type.Number({
      description:
        'Return to player of a blackjack table with basic strategy, as a fraction of all stakes. Absent if it has not been calculated for the rules of the table.',
    }),
  ),
});

export const GameList = Type.Object({ games: Type.Array(ListedGame) });

export const ParSheetResponse = Type.Object({
  parSheetId: Type.Integer(),
  gameTitle: Type.String(),
  numReels: Type.Integer(),
  certifiedRtp: Type.Number(),
  symbolCount: Type.Integer(),
  tierCount: Type.Integer(),
  combinationCount: Type.Integer(),
});

export const ParSheetList = Type.Object({ parSheets: Type.Array(ParSheetResponse) });

export const SettableGameStatus = choice(['ACTIVE', 'SUSPENDED']);

export const GamePatch = Type.Object({ status: SettableGameStatus, reason: Type.Optional(AUDIT_REASON) });

export const GameQueue = Type.Object({
  readyBlocks: Type.Integer(),
  outcomesReady: Type.Integer(),
  consumed: Type.Integer(),
});

export const GameTotals = Type.Object({
  spins: Type.Integer(),
  wageredUsd: usd('Sum of the wagers in the ledger, in USD'),
  paidOutUsd: usd('Sum of the payouts in the ledger, in USD'),
  actualRtp: nullable(Type.Number({ description: 'Payouts divided by wagers; null before the first spin' })),
});

export const ExpectedReturn = Type.Object(
  {
    rtp: Type.Number({ description: 'Expected return to player over many spins, as a fraction' }),
    variancePerSpin: Type.Number({ description: 'Variance of the payout of one spin, in squared wagers' }),
    normalFromSpins: Type.Integer({
      description: 'Number of spins before which the return cannot be judged',
    }),
  },
  { description: 'Expected values of a slot, calculated from its PAR sheet' },
);

export const OperatorGame = Type.Object({
  ...GameResponse.properties,
  partnerId: Type.Integer(),
  ticketsRemaining: Type.Optional(
    Type.Integer({ description: 'Number of raffle tickets that are not committed as sold' }),
  ),
  expected: nullable(ExpectedReturn),
  queue: GameQueue,
  totals: GameTotals,
});

export const RaffleRefunds = Type.Object({
  tickets: Type.Integer({
    description: 'Number of committed tickets. Tickets in progress may still be added.',
  }),
  refunded: Type.Integer({ description: 'Number of refunded tickets. Their refunds are in the ledger.' }),
  failed: Type.Integer({
    description: 'Number of tickets that cannot be refunded because the balance would exceed its maximum',
  }),
  refundedUsd: usd('Sum of the refunds, in USD'),
  isDone: Type.Boolean({
    description: 'True if no ticket is in progress and every ticket was refunded or failed',
  }),
});

export const GameDetail = Type.Object({
  ...OperatorGame.properties,
  statusChange: nullable(StatusChange),
  refunds: nullable(RaffleRefunds),
});

/** A game after a change of its status. `queue` is null if Redis did not answer. */
export const ChangedGame = Type.Object({
  ...OperatorGame.properties,
  queue: nullable(GameQueue),
});

export const BlocksBody = Type.Object({ count: Type.Integer({ minimum: 1, maximum: 100 }) });

export const BlocksAccepted = Type.Object({ gameConfigId: Type.Integer(), requested: Type.Integer() });

export const ParSheetPatch = Type.Object({
  status: Type.Literal('RETIRED'),
  reason: Type.Optional(AUDIT_REASON),
});

export const OperatorParSheet = Type.Object({
  ...ParSheetResponse.properties,
  partnerId: Type.Integer(),
  status: Type.String(),
});

export type GameBody = Static<typeof GameBody>;

export type GamePatch = Static<typeof GamePatch>;

const SLOT_GAME = {
  gameConfigId: 3,
  displayName: 'Classic Three',
  configName: 'CLASSIC_THREE',
  gameType: 'slot',
  status: 'ACTIVE',
  parSheetId: 2,
  minWagerUsd: 0.25,
  maxWagerUsd: 0.25,
  wagerIncrementUsd: 0.25,
};

const RAFFLE_GAME = {
  gameConfigId: 4,
  displayName: 'Spring Raffle',
  configName: 'SPRING_RAFFLE',
  gameType: 'raffle',
  status: 'ACTIVE',
  parSheetId: null,
  minWagerUsd: 1,
  maxWagerUsd: 1,
  wagerIncrementUsd: 1,
  poolSize: 1000,
  poolCommitment: 'c52d486e3cfaf7bd8c98764f22378544f585fed376706fccfe80cbb891459928',
};

const SHEET = {
  parSheetId: 2,
  gameTitle: 'Coin Flip',
  numReels: 1,
  certifiedRtp: 0.9,
  symbolCount: 2,
  tierCount: 2,
  combinationCount: 2,
};

const OPERATOR_GAME = {
  ...SLOT_GAME,
  partnerId: 2,
  expected: { rtp: 0.9, variancePerSpin: 0.99, normalFromSpins: 206 },
  queue: { readyBlocks: 3, outcomesReady: 6143, consumed: 1 },
  totals: { spins: 1, wageredUsd: 0.25, paidOutUsd: 0.5, actualRtp: 2 },
};

export const registerGame = partner.post('registerGame', '/games', {
  summary: 'Register a slot game on an active PAR sheet',
  description: `Creates a game from a PAR sheet. Its wager is the denomination of the sheet. Several games can share a sheet, and each has its own queue of outcomes. The first outcomes are ready within moments. Until then spins are refused with ${ERRORS.noBlockServable.code}.`,
  body: GameBody,
  ownCheck: true,
  status: 201,
  response: GameResponse,
  errors: [
    ERRORS.fieldMissing,
    ERRORS.gameTypeUnsupported,
    ERRORS.parSheetNotFound,
    ERRORS.parSheetNotActive,
    ERRORS.wagerMismatch,
    ERRORS.configNameTaken,
    ERRORS.capReached,
  ],
  failure: ERRORS.gameRegistrationFailed,
  bodyExample: { parSheetId: 2, displayName: 'Classic Three', configName: 'CLASSIC_THREE' },
  example: SLOT_GAME,
});

export const listGames = partner.get('listGames', '/games', {
  summary: "List the partner's games",
  description: 'Lists all games of the account, including raffles, whatever their status.',
  response: GameList,
  example: {
    games: [{ ...SLOT_GAME, certifiedRtp: 0.925, hitFrequency: 0.2, topPrizeUsd: 250 }, RAFFLE_GAME],
  },
});

export const getGame = operator.get('getGame', '/games/{id}', {
  summary: 'Get a game with its queue and its totals',
  description:
    'Returns the number of ready outcomes, and the totals of the game in the ledger: spins, wagers, payouts and return to player. `statusChange` is the newest suspension, resumption or void by an operator, null if there is none or the service suspended the game. `refunds` are those of a voided raffle, which are not part of `totals`; null for other games.',
  response: GameDetail,
  hasSums: true,
  example: {
    ...OPERATOR_GAME,
    statusChange: {
      auditId: 41,
      at: '2026-11-22T05:10:44.120Z',
      actor: 'operator',
      status: 'ACTIVE',
      reason: 'the display is repaired',
    },
    refunds: null,
  },
});

export const updateGame = operator.patch('updateGame', '/games/{id}', {
  summary: 'Suspend or reactivate a game',
  description: `A suspended game refuses spins with ${ERRORS.gameNotActive.code}. A repeated \`requestId\` still gets its original response. The change takes effect on every front end within a second. \`queue\` is null if Redis did not answer.`,
  body: GamePatch,
  response: ChangedGame,
  hasSums: true,
  errors: [ERRORS.raffleClosed],
  bodyExample: { status: 'SUSPENDED' },
  example: { ...OPERATOR_GAME, status: 'SUSPENDED' },
});

export const rotateGame = operator.post('rotateGame', '/games/{id}/rotate', {
  summary: 'Void the sealed, undealt outcomes of a slot game',
  description: `Use this if somebody may have seen outcomes before they were dealt. The call permanently voids all outcomes that are sealed but not dealt at that time, and the audit log keeps the reason. Dealt outcomes are not affected. The game continues with new outcomes: until the next block is sealed, usually within a second, spins may be refused with ${ERRORS.queueExhausted.code}. After the status 202 repeat the call until it returns 200. Each call voids the outcomes that are sealed by then. ${ERRORS.unavailable.code} means that nothing was recorded. The public log records the void before the game's next block.`,
  body: VoidBody,
  mayBePending:
    "The rotation is on record and not confirmed. It is carried out before the game's next block is sealed. Until then outcomes from `voidedFrom` on may still be dealt.",
  response: GameRotated,
  errors: [ERRORS.gameTypeUnsupported],
  bodyExample: { reason: 'A dump of the database was left on a shared disk' },
  example: { gameConfigId: 3, number: 4, voidedFrom: 2051, voidedTo: 8192, isInForce: true },
  pendingExample: { gameConfigId: 3, number: null, voidedFrom: 2051, voidedTo: 8192, isInForce: false },
});

export const makeBlocks = operator.post('makeBlocks', '/games/{id}/blocks', {
  summary: 'Make blocks of outcomes before they are needed',
  description:
    'The service makes blocks on demand automatically. Use this operation before an event that will bring many spins.',
  body: BlocksBody,
  status: 202,
  response: BlocksAccepted,
  bodyExample: { count: 2 },
  example: { gameConfigId: 3, requested: 2 },
});

export const uploadParSheet = sheets.partner.post('uploadParSheet', '/par-sheets', {
  summary: 'Upload a PAR sheet',
  description: `Checks and stores the mathematics of a slot game. The probabilities must sum to 1, the tiers must agree with their combinations, and the computed return to player must equal the certified one. ${ERRORS.invalidParSheet.code} lists every fault in \`details\`.`,
  bodyLimit: 10_240,
  body: ParSheetBody,
  ownCheck: true,
  status: 201,
  response: ParSheetResponse,
  errors: [ERRORS.invalidParSheet, ERRORS.capReached],
  failure: ERRORS.parUploadFailed,
  bodyExample: SHEET_BODY,
  example: SHEET,
});

export const listParSheets = sheets.partner.get('listParSheets', '/par-sheets', {
  summary: 'List the active PAR sheets',
  description: 'Lists the PAR sheets on which games can be registered. Retired sheets are not listed.',
  response: ParSheetList,
  example: { parSheets: [SHEET] },
});

export const updateParSheet = sheets.operator.patch('updateParSheet', '/par-sheets/{id}', {
  summary: 'Retire a PAR sheet',
  description:
    'No more games can be registered on a retired sheet. Existing games that use the sheet continue.',
  body: ParSheetPatch,
  response: OperatorParSheet,
  bodyExample: { status: 'RETIRED' },
  example: { ...SHEET, partnerId: 2, status: 'RETIRED' },
});

export const GamesQuery = Type.Object({ ...Page.properties, ...partnerFilter });
export const OperatorGameList = Type.Object({ games: Type.Array(OperatorGame), ...pageMembers });

export const GameDaysQuery = Type.Object({
  limit: Type.Integer({
    minimum: 1,
    maximum: 400,
    default: 90,
    description: 'Number of days in the response',
  }),
});

export const GameDays = Type.Object({ days: Type.Array(GameDay) });

export const listAllGames = operator.get('listAllGames', '/games', {
  summary: 'List games with their queues and totals, newest first',
  description:
    'Lists the games of all partners, or of one partner with `partnerId`. `total` counts all of these games.',
  query: GamesQuery,
  response: OperatorGameList,
  hasSums: true,
  example: { games: [OPERATOR_GAME], page: 1, limit: 20, total: 1 },
});

export const listGameDays = operator.get('listGameDays', '/games/{id}/days', {
  summary: "List a game's wagers and payouts by UTC day, newest first",
  description: 'Days without a spin are omitted. The sums of all days equal the totals of the game.',
  query: GameDaysQuery,
  response: GameDays,
  hasSums: true,
  example: { days: [{ day: '2026-11-22', ...TRAFFIC }] },
});

export const ParSheetsQuery = Type.Object({ ...Page.properties, ...partnerFilter });
export const OperatorParSheets = Type.Object({ parSheets: Type.Array(OperatorParSheet), ...pageMembers });

export const OperatorParSheetDetail = Type.Object({
  ...OperatorParSheet.properties,
  sheet: ParSheetBody,
});

const LISTED_SHEET = {
  parSheetId: 2,
  partnerId: 2,
  status: 'ACTIVE',
  gameTitle: 'Coin Flip',
  numReels: 1,
  certifiedRtp: 0.9,
  symbolCount: 2,
  tierCount: 2,
  combinationCount: 2,
};

export const listAllParSheets = sheets.operator.get('listAllParSheets', '/par-sheets', {
  summary: 'List the PAR sheets of all partners or of one partner, newest first',
  description: 'The list includes retired sheets.',
  query: ParSheetsQuery,
  response: OperatorParSheets,
  example: { parSheets: [LISTED_SHEET], page: 1, limit: 20, total: 1 },
});

export const getAnyParSheet = sheets.operator.get('getAnyParSheet', '/par-sheets/{id}', {
  summary: 'Get a PAR sheet as it was uploaded',
  description: 'Returns the sheet with all tiers and combinations.',
  response: OperatorParSheetDetail,
  example: { ...LISTED_SHEET, sheet: SHEET_BODY },
});
