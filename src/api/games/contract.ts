/** Schemas and operations of PAR sheets and games. */
import { type Static, Type } from '#typebox';
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
  PATH,
  Page,
  pageMembers,
  partnerFilter,
  usd,
  VoidBody,
} from '../../domain/schema.js';
import { endpoint, operatorRead } from '../contract/endpoint.js';
import { TRAFFIC } from '../contract/examples.js';
import { SHEET_BODY } from '../contract/sheetExample.js';
import { GameDay } from '../traffic/contract.js';

export const GameBody = Type.Object({
  parSheetId: id('The PAR sheet, which must be active'),
  displayName: opaque('Name shown to players'),
  configName: Type.String({
    pattern: CONFIG_NAME_PATTERN,
    description: "System identifier, unique across the partner's games",
  }),
  gameType: Type.Optional(
    Type.String({ description: '`slot`; raffles and blackjack tables are made by the operator' }),
  ),
  minWagerUsd: Type.Optional(usd('If sent, the denomination of the sheet')),
  maxWagerUsd: Type.Optional(usd('If sent, the denomination of the sheet')),
  wagerIncrementUsd: Type.Optional(usd('If sent, the denomination of the sheet')),
});

export const GameResponse = Type.Object({
  gameConfigId: Type.Integer({ description: 'The gameId of spins' }),
  displayName: Type.String(),
  configName: Type.String(),
  gameType: extensible(GAME_TYPES, 'Kind of game'),
  status: extensible(
    ['ACTIVE', 'SUSPENDED', 'SEALING', 'CLOSED'],
    'ACTIVE: it can be spun. SEALING and CLOSED: before the first and after the last ticket of a raffle, or once it is voided',
  ),
  statusReason: Type.Optional(
    extensible(
      ['RESTORED', 'VOIDED'],
      'RESTORED: of a raffle that is suspended, since tickets may have been shown that a restore of the database has lost. VOIDED: of a raffle that is closed, since the operator voided it: each ticket is refunded',
    ),
  ),
  parSheetId: nullable(Type.Integer()),
  minWagerUsd: usd('Equal to the fixed wager'),
  maxWagerUsd: usd('Equal to the fixed wager'),
  wagerIncrementUsd: usd('Equal to the fixed wager'),
  poolSize: Type.Optional(Type.Integer({ description: 'Of a raffle: tickets in all' })),
  poolCommitment: Type.Optional(
    nullable(Type.String({ description: 'Of a raffle: seals its pool; null until it is sealed' })),
  ),
});

/** Result of a rotation. */
export const GameRotated = Type.Object({
  gameConfigId: Type.Integer(),
  number: nullable(
    Type.Integer({
      description: "Of the void among the game's entries in the public log; null: nothing was voided",
    }),
  ),
  voidedFrom: Type.Integer({ description: 'Index of the first outcome that is voided' }),
  voidedTo: Type.Integer({
    description: 'Index after the last one; equal to voidedFrom: nothing was sealed and not dealt',
  }),
});

export const ListedGame = Type.Object({
  ...GameResponse.properties,
  certifiedRtp: Type.Optional(
    Type.Number({
      description:
        'Return to player: of a slot the certified one of its PAR sheet, of a raffle all prizes by the price of all tickets',
    }),
  ),
  hitFrequency: Type.Optional(Type.Number({ description: 'Of a slot: the probability that a spin pays' })),
  topPrizeUsd: Type.Optional(usd('Of a slot or raffle: the largest payout of a spin or ticket')),
  basicStrategyRtp: Type.Optional(
    Type.Number({
      description:
        'Of a table: payouts by all stakes of who plays basic strategy; absent where it is not known for its rules',
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
  wageredUsd: usd('Sum of wagers in the ledger'),
  paidOutUsd: usd('Sum of payouts in the ledger'),
  actualRtp: nullable(Type.Number({ description: 'Null before the first spin' })),
});

export const ExpectedReturn = Type.Object(
  {
    rtp: Type.Number({ description: 'Return to player that many spins come to' }),
    variancePerSpin: Type.Number({ description: "Of one spin's payout, in squared wagers" }),
  },
  { description: 'Of a slot: what its sheet lets expect' },
);

export const OperatorGame = Type.Object({
  ...GameResponse.properties,
  partnerId: Type.Integer(),
  ticketsRemaining: Type.Optional(
    Type.Integer({ description: 'Of a raffle: tickets that are not booked as sold' }),
  ),
  expected: nullable(ExpectedReturn),
  queue: GameQueue,
  totals: GameTotals,
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
  expected: { rtp: 0.9, variancePerSpin: 0.99 },
  queue: { readyBlocks: 3, outcomesReady: 6143, consumed: 1 },
  totals: { spins: 1, wageredUsd: 0.25, paidOutUsd: 0.5, actualRtp: 2 },
};

export const registerGame = endpoint(
  {
    method: 'post',
    path: '/games',
    operationId: 'registerGame',
    tag: 'Games',
    summary: 'Register a slot game on an active PAR sheet',
    scope: 'partner',
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
  },
  {
    description: `Makes a game of a PAR sheet. Its wager is the denomination of the sheet. Several games can share a sheet; each has its own queue of outcomes. The first outcomes are ready a moment later; until then a spin answers ${ERRORS.noBlockServable.code}.`,
    request: { parSheetId: 2, displayName: 'Classic Three', configName: 'CLASSIC_THREE' },
    response: SLOT_GAME,
  },
);

export const listGames = endpoint(
  {
    method: 'get',
    path: '/games',
    operationId: 'listGames',
    tag: 'Games',
    summary: "List the partner's games",
    scope: 'partner',
    status: 200,
    response: GameList,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description: 'Lists all games of the account, the raffles too, whatever their status.',
    response: {
      games: [{ ...SLOT_GAME, certifiedRtp: 0.925, hitFrequency: 0.2, topPrizeUsd: 250 }, RAFFLE_GAME],
    },
  },
);

export const getGame = endpoint(
  {
    method: 'get',
    path: '/games/{id}',
    params: { id: PATH.gameId },
    operationId: 'getGame',
    tag: 'Games',
    summary: 'A game with its queue and its totals',
    scope: 'operator',
    status: 200,
    response: OperatorGame,
    hasSums: true,
    errors: [ERRORS.gameNotFound],
    failure: ERRORS.internal,
  },
  {
    description:
      'Shows how many outcomes are ready and what the ledger has of the game: spins, wagers, payouts and the return to player so far.',
    response: OPERATOR_GAME,
  },
);

export const updateGame = endpoint(
  {
    method: 'patch',
    path: '/games/{id}',
    params: { id: PATH.gameId },
    operationId: 'updateGame',
    tag: 'Games',
    summary: 'Suspend a game, or make it active again',
    scope: 'operator',
    body: GamePatch,
    status: 200,
    response: OperatorGame,
    hasSums: true,
    errors: [ERRORS.gameNotFound, ERRORS.raffleClosed],
    failure: ERRORS.internal,
  },
  {
    description: `A suspended game refuses spins with ${ERRORS.gameNotActive.code}; a repeated \`requestId\` still gets its original answer. In force on every front end within a second.`,
    request: { status: 'SUSPENDED' },
    response: { ...OPERATOR_GAME, status: 'SUSPENDED' },
  },
);

export const rotateGame = endpoint(
  {
    method: 'post',
    path: '/games/{id}/rotate',
    params: { id: PATH.gameId },
    operationId: 'rotateGame',
    tag: 'Games',
    summary: 'Void what is sealed of a slot game and not dealt; it goes on with new outcomes',
    scope: 'operator',
    body: VoidBody,
    status: 200,
    response: GameRotated,
    errors: [ERRORS.gameNotFound, ERRORS.gameTypeUnsupported, ERRORS.unavailable],
    failure: ERRORS.internal,
  },
  {
    description: `For outcomes that somebody may have seen before they were dealt. Whatever is sealed when the call comes in and was not dealt is never dealt: it is written down as voided, with the reason in the audit log. What was dealt stays. Spins get at most ${ERRORS.queueExhausted.code} until the next block is sealed, within a second as a rule. After ${ERRORS.unavailable.code} call again: that voids what is sealed by then. The void lies in the public log before the game's next block.`,
    request: { reason: 'A dump of the database was left on a shared disk' },
    response: { gameConfigId: 3, number: 4, voidedFrom: 2051, voidedTo: 8192 },
  },
);

export const makeBlocks = endpoint(
  {
    method: 'post',
    path: '/games/{id}/blocks',
    params: { id: PATH.gameId },
    operationId: 'makeBlocks',
    tag: 'Games',
    summary: 'Make outcome blocks now, beyond what demand calls for',
    scope: 'operator',
    body: BlocksBody,
    status: 202,
    response: BlocksAccepted,
    errors: [ERRORS.gameNotFound],
    failure: ERRORS.internal,
  },
  {
    description: 'Blocks are made on demand anyway. Use this before an event that will bring many spins.',
    request: { count: 2 },
    response: { gameConfigId: 3, requested: 2 },
  },
);

export const uploadParSheet = endpoint(
  {
    method: 'post',
    path: '/par-sheets',
    operationId: 'uploadParSheet',
    tag: 'PAR sheets',
    summary: 'Upload a PAR sheet',
    scope: 'partner',
    bodyLimit: 10_240,
    body: ParSheetBody,
    ownCheck: true,
    status: 201,
    response: ParSheetResponse,
    errors: [ERRORS.invalidParSheet, ERRORS.capReached],
    failure: ERRORS.parUploadFailed,
  },
  {
    description: `Stores the mathematics of a slot game after checking all of it: the probabilities sum to 1, the tiers agree with their combinations, and the computed return to player is the certified one. ${ERRORS.invalidParSheet.code} lists every fault in \`details\`.`,
    request: SHEET_BODY,
    response: SHEET,
  },
);

export const listParSheets = endpoint(
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
  },
  {
    description: 'Lists the sheets that games can be registered on. Retired ones are not listed.',
    response: { parSheets: [SHEET] },
  },
);

export const updateParSheet = endpoint(
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
  },
  {
    description: 'No further game can be registered on a retired sheet. Games that use it go on.',
    request: { status: 'RETIRED' },
    response: { ...SHEET, partnerId: 2, status: 'RETIRED' },
  },
);

export const GamesQuery = Type.Object({ ...Page.properties, ...partnerFilter });
export const OperatorGameList = Type.Object({ games: Type.Array(OperatorGame), ...pageMembers });

export const GameDaysQuery = Type.Object({
  limit: Type.Integer({ minimum: 1, maximum: 400, default: 90, description: 'Days in the answer' }),
});

export const GameDays = Type.Object({ days: Type.Array(GameDay) });

export const listAllGames = endpoint(
  {
    method: 'get',
    path: '/games',
    operationId: 'listAllGames',
    tag: 'Games',
    summary: 'Games with their queues and totals, newest first',
    scope: 'operator',
    query: GamesQuery,
    status: 200,
    response: OperatorGameList,
    hasSums: true,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description: 'Games of all partners, or of one with `partnerId`. `total` counts all of them.',
    response: { games: [getGame.shown.response], page: 1, limit: 20, total: 1 },
  },
);

export const listGameDays = endpoint(
  {
    method: 'get',
    path: '/games/{id}/days',
    params: { id: PATH.gameId },
    operationId: 'listGameDays',
    tag: 'Games',
    summary: 'What a game took and paid by UTC day, newest first',
    scope: 'operator',
    query: GameDaysQuery,
    status: 200,
    response: GameDays,
    hasSums: true,
    errors: [ERRORS.gameNotFound],
    failure: ERRORS.internal,
  },
  {
    description: 'Days without a spin are left out. Their sums are the totals of the game.',
    response: { days: [{ day: '2026-11-22', ...TRAFFIC }] },
  },
);

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

export const listAllParSheets = endpoint(
  {
    ...operatorRead,
    path: '/par-sheets',
    operationId: 'listAllParSheets',
    tag: 'PAR sheets',
    summary: 'PAR sheets of all partners, or of one, the newest first',
    query: ParSheetsQuery,
    response: OperatorParSheets,
    errors: [],
  },
  {
    description: 'Retired sheets, too.',
    response: { parSheets: [LISTED_SHEET], page: 1, limit: 20, total: 1 },
  },
);

export const getAnyParSheet = endpoint(
  {
    ...operatorRead,
    path: '/par-sheets/{id}',
    params: { id: PATH.parSheetId },
    operationId: 'getAnyParSheet',
    tag: 'PAR sheets',
    summary: 'A PAR sheet as it was uploaded',
    response: OperatorParSheetDetail,
    errors: [ERRORS.parSheetNotFound],
  },
  {
    description: 'With all tiers and combinations.',
    response: { ...LISTED_SHEET, sheet: SHEET_BODY },
  },
);
