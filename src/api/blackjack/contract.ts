/** Schemas and operations of blackjack tables and rounds. */
import { type Static, Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import { ACTIONS } from '../../domain/games/blackjack.js';
import { BlackjackRules, DEFAULT_RULES } from '../../domain/games/blackjackRules.js';
import { ROUND_STATUSES } from '../../domain/games/round.js';
import {
  CONFIG_NAME_PATTERN,
  choice,
  ID_MAX,
  id,
  nullable,
  opaque,
  PATH,
  Page,
  pageMembers,
  partnerFilter,
  timestamp,
  usd,
  VoidBody,
} from '../../domain/schema.js';
import { endpoint, operatorRead } from '../contract/endpoint.js';
import { GameResponse } from '../games/contract.js';
import { ReasonQuery } from '../partners/contract.js';
import { PlayerBalance } from '../spins/contract.js';

export const BlackjackRulesBody = Type.Partial(BlackjackRules, {
  description: 'What differs from the defaults',
});

const roundTimeoutS = Type.Integer({
  minimum: 60,
  maximum: 2_592_000,
  description: 'An open round is played out by itself so many seconds after its deal; 86,400 where absent',
});

export const BlackjackBody = Type.Object({
  displayName: opaque('Name shown to players'),
  configName: Type.String({
    pattern: CONFIG_NAME_PATTERN,
    description: "System identifier, unique across the partner's games",
  }),
  wagerUsd: usd(
    'What a deal costs: above 0, at most 10,000, whole micro-USD at half and at the odds of a natural',
  ),
  rules: BlackjackRulesBody,
  roundTimeoutS: Type.Optional(roundTimeoutS),
});

export const BlackjackResponse = Type.Object({
  ...GameResponse.properties,
  partnerId: Type.Integer(),
  wagerUsd: usd('What a deal costs'),
  rules: BlackjackRules,
  rulesHash: Type.String({ description: 'Hexadecimal SHA-256 of the RFC 8785 text of the rules' }),
  roundTimeoutS: Type.Integer(),
});

export const DealBody = Type.Object({
  gameId: id('Game configuration id of a blackjack table'),
  playerId: opaque("The partner's own identifier of the player"),
  wagerUsd: usd("The table's fixed wager"),
  requestId: Type.Optional(
    opaque('Idempotency key, of one namespace with those of spins; binds for 24 hours at least'),
  ),
});

export const RoundActionName = choice(ACTIONS, 'What the player does');

export const ActionBody = Type.Object({
  roundId: Type.String({ description: 'The `roundId` of the deal' }),
  action: RoundActionName,
  seq: Type.Integer({
    minimum: 1,
    maximum: 1_000_000,
    description:
      '`lastActionSeq` + 1; the same action with the same number again is answered with the same bytes',
  }),
});

const Cards = Type.Array(Type.String({ description: 'Rank and suit, such as `Th` for the ten of hearts' }));

export const HandStatus = choice(
  ['WAITING', 'ACTIVE', 'STOOD', 'BUST', 'SURRENDERED', 'NATURAL'],
  'ACTIVE: it is played now; WAITING: it will be',
);

export const RoundHand = Type.Object({
  cards: Cards,
  total: Type.Integer(),
  isSoft: Type.Boolean(),
  wagerUsd: usd('Staked on this hand'),
  status: HandStatus,
  payoutUsd: Type.Optional(
    usd('What comes back for this hand, its stake included; once the round is settled'),
  ),
});

export const RoundAction = Type.Object({
  action: RoundActionName,
  costUsd: Type.Optional(usd('What it costs, where it costs something')),
});

export const RoundInsurance = Type.Object({
  wagerUsd: usd('Half of the wager'),
  payoutUsd: Type.Optional(usd('What comes back, once the round is settled')),
});

export const RoundShoe = Type.Object({
  index: Type.Integer({ description: "Place of the shoe in the table's sequence" }),
  commitment: Type.String({ description: 'Hexadecimal; made before the shoe was dealt' }),
  seed: Type.Optional(
    Type.String({
      description: 'Hexadecimal, 32 bytes: gives the order of all cards; once the round has ended',
    }),
  ),
});

export const RoundDealer = Type.Object(
  { cards: Cards, total: Type.Integer() },
  { description: 'The up card alone before the round is settled' },
);

export const RoundStatus = choice(ROUND_STATUSES, 'What became of the round');

export const RoundPhase = choice(
  ['INSURANCE', 'PLAYER', 'SETTLED', 'VOIDED'],
  'INSURANCE: to be taken or declined; PLAYER: a hand is played',
);

export const RoundTable = Type.Object(
  { wagerUsd: usd('What a deal costs'), rules: BlackjackRules },
  { description: 'What the round was played by: with the seed, all that a proof needs' },
);

const roundMembers = {
  roundId: Type.String(),
  gameId: Type.Integer(),
  playerId: Type.String(),
  status: RoundStatus,
  phase: RoundPhase,
  lastActionSeq: Type.Integer(),
  wageredUsd: usd('All stakes, insurance included'),
  payoutUsd: nullable(usd('All that comes back, stakes included; null before the round has ended')),
  dealer: RoundDealer,
  activeHand: nullable(Type.Integer({ description: 'Place of the hand that is played, from 0' })),
  hands: Type.Array(RoundHand),
  legalActions: Type.Array(RoundAction),
  insurance: nullable(RoundInsurance),
  autoCompleted: Type.Optional(
    Type.Boolean({ description: 'True where its timeout, or the operator, played it out' }),
  ),
  rulesHash: Type.String(),
  shoe: RoundShoe,
  expiresAt: timestamp(),
  balance: PlayerBalance,
  requestId: Type.Optional(Type.String({ description: 'As sent with the deal' })),
};

export const RoundResponse = Type.Object(roundMembers);

export const RoundRecordResponse = Type.Object({
  ...roundMembers,
  actions: Type.Array(Type.String(), {
    description: 'What the player did, in order; a last `timeout` where the round was played out by itself',
  }),
  table: RoundTable,
  createdAt: timestamp(),
});

export const RoundQuery = Type.Object({
  ...Page.properties,
  playerId: Type.Optional(opaque('Rounds of this player only')),
  status: Type.Optional(
    Type.String({ pattern: `^(${ROUND_STATUSES.join('|')})$`, description: 'OPEN, SETTLED or VOIDED' }),
  ),
});

export const RoundPage = Type.Object({ rounds: Type.Array(RoundRecordResponse), ...pageMembers });

export type BlackjackBody = Static<typeof BlackjackBody>;
export type DealBody = Static<typeof DealBody>;
export type ActionBody = Static<typeof ActionBody>;

const RULES_HASH = 'cc583bf4e4c3e17c57341a5d8d9f2c9c166d84aad6fb7b921df7fb7ca4a4c331';

/** Example of an open blackjack round, which was dealt and has not been played yet. */
const OPEN_ROUND = {
  roundId: '32ba64c0443dd3ef0747a1737bf2fa44',
  gameId: 5,
  playerId: 'alice',
  status: 'OPEN',
  phase: 'PLAYER',
  lastActionSeq: 0,
  wageredUsd: 0.25,
  payoutUsd: null,
  dealer: { cards: ['Jd'], total: 10 },
  activeHand: 0,
  hands: [{ cards: ['Kh', '8c'], total: 18, isSoft: false, wagerUsd: 0.25, status: 'ACTIVE' }],
  legalActions: [{ action: 'hit' }, { action: 'stand' }, { action: 'double', costUsd: 0.25 }],
  insurance: null,
  rulesHash: RULES_HASH,
  shoe: { index: 1, commitment: '60c2b03fbf2b9d08d9951218e967f5e460afe9c49301370b5f66a788969da999' },
  expiresAt: '2026-11-23T04:19:37.417Z',
  balance: { balanceUsd: 999.75 },
  requestId: '0197d2c4-b7d2-7f3e-8a41-6c7d8e9f0a1b',
};

/** Example of a settled blackjack round, after the player has stood. */
const SETTLED_ROUND = {
  ...OPEN_ROUND,
  status: 'SETTLED',
  phase: 'SETTLED',
  lastActionSeq: 1,
  payoutUsd: 0.5,
  dealer: { cards: ['Jd', '5c', '7d'], total: 22 },
  activeHand: null,
  hands: [{ cards: ['Kh', '8c'], total: 18, isSoft: false, wagerUsd: 0.25, status: 'STOOD', payoutUsd: 0.5 }],
  legalActions: [],
  shoe: { ...OPEN_ROUND.shoe, seed: '9500f2343ec56803b519fdf3f644cf78e145ceccfe68e00a8be905911faee514' },
  balance: { balanceUsd: 1000.25 },
};

const RECORD = {
  ...SETTLED_ROUND,
  actions: ['stand'],
  table: { wagerUsd: 0.25, rules: DEFAULT_RULES },
  createdAt: '2026-11-22T04:19:37.417Z',
};

const ofRound = {
  params: { roundId: PATH.roundId },
  tag: 'Rounds',
  scope: 'operator',
  status: 200,
  response: RoundRecordResponse,
  failure: ERRORS.internal,
} as const;

export const dealRound = endpoint(
  {
    method: 'post',
    path: '/deal',
    operationId: 'dealRound',
    tag: 'Rounds',
    summary: "Deal a round: the next sealed shoe of the table is the round's",
    scope: 'play',
    window: 'spin',
    replays: true,
    bodyLimit: 4096,
    body: DealBody,
    status: 201,
    response: RoundResponse,
    errors: [
      ERRORS.gameNotRegistered,
      ERRORS.dealingOff,
      ERRORS.gameNotActive,
      ERRORS.wagerMismatch,
      ERRORS.spinInProgress,
      ERRORS.requestIdReused,
      ERRORS.playerBlocked,
      ERRORS.roundOpen,
      ERRORS.insufficientBalance,
      ERRORS.fundingUnavailable,
      ERRORS.queueExhausted,
      ERRORS.noBlockServable,
      ERRORS.spinFailed,
    ],
    failure: ERRORS.internal,
  },
  {
    description: `Books the wager and deals the next sealed shoe of the table, in one atomic step; a round that a natural ends is settled in the same step. If no answer arrives, or ${ERRORS.spinInProgress.code} does, send the same request with the same \`requestId\`. A player has one open round at a table: ${ERRORS.roundOpen.code} names it in \`details\`.`,
    request: {
      gameId: 5,
      playerId: 'alice',
      wagerUsd: 0.25,
      requestId: '0197d2c4-b7d2-7f3e-8a41-6c7d8e9f0a1b',
    },
    response: OPEN_ROUND,
  },
);

export const actInRound = endpoint(
  {
    method: 'post',
    path: '/action',
    operationId: 'actInRound',
    tag: 'Rounds',
    summary: 'Take the next action of a round, once for each `seq`',
    scope: 'play',
    replays: true,
    bodyLimit: 4096,
    body: ActionBody,
    status: 200,
    response: RoundResponse,
    errors: [
      ERRORS.roundNotFound,
      ERRORS.spinInProgress,
      ERRORS.actionStale,
      ERRORS.actionIllegal,
      ERRORS.insufficientBalance,
      ERRORS.spinFailed,
    ],
    failure: ERRORS.internal,
  },
  {
    description: `Takes one of the round's \`legalActions\`. \`seq\` is \`lastActionSeq\` + 1: however often an action is sent, it happens once, and its repetition is answered with the same bytes and \`Idempotent-Replayed: true\`. ${ERRORS.actionStale.code} says that another action came first: read the round. Every answer follows the commit of its ledger entry.`,
    request: { roundId: OPEN_ROUND.roundId, action: 'stand', seq: 1 },
    response: SETTLED_ROUND,
  },
);

export const getRound = endpoint(
  {
    method: 'get',
    path: '/rounds/{roundId}',
    params: { roundId: PATH.roundId },
    operationId: 'getRound',
    tag: 'Rounds',
    summary: 'A round as it is; once it has ended, with the seed that proves its cards',
    scope: 'play',
    status: 200,
    response: RoundRecordResponse,
    errors: [ERRORS.roundNotFound],
    failure: ERRORS.internal,
  },
  {
    description:
      'Shows a round as it is. Once it has ended, `shoe.seed`, `table` and `actions` prove every card: `spindle verify-round` checks them.',
    response: RECORD,
  },
);

export const listRounds = endpoint(
  {
    method: 'get',
    path: '/rounds',
    operationId: 'listRounds',
    tag: 'Rounds',
    summary: "The partner's rounds, newest first",
    scope: 'play',
    query: RoundQuery,
    status: 200,
    response: RoundPage,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description: 'Lists rounds by page, those of one player or of one status where they are given.',
    response: { rounds: [RECORD], page: 1, limit: 20, total: 1 },
  },
);

export const createBlackjackGame = endpoint(
  {
    method: 'post',
    path: '/partners/{id}/blackjack-games',
    params: { id: PATH.partnerId },
    operationId: 'createBlackjackGame',
    tag: 'Games',
    summary: 'Make a blackjack table; its rules and its wager never change',
    scope: 'operator',
    body: BlackjackBody,
    status: 201,
    response: BlackjackResponse,
    errors: [ERRORS.partnerNotFound, ERRORS.partnerIsDeactivated, ERRORS.configNameTaken],
    failure: ERRORS.gameRegistrationFailed,
  },
  {
    description:
      'Makes a table for a partner. Rules that are not sent have their defaults. Rules and wager never change: suspend the game and make another one.',
    request: {
      displayName: 'Blackjack',
      configName: 'BLACKJACK',
      wagerUsd: 0.25,
      rules: { decks: 6, lateSurrender: false },
      roundTimeoutS: 86400,
    },
    response: {
      gameConfigId: 5,
      displayName: 'Blackjack',
      configName: 'BLACKJACK',
      gameType: 'blackjack',
      status: 'ACTIVE',
      parSheetId: null,
      minWagerUsd: 0.25,
      maxWagerUsd: 0.25,
      wagerIncrementUsd: 0.25,
      partnerId: 2,
      wagerUsd: 0.25,
      rules: DEFAULT_RULES,
      rulesHash: RULES_HASH,
      roundTimeoutS: 86400,
    },
  },
);

export const showRound = endpoint(
  {
    ...ofRound,
    method: 'get',
    path: '/rounds/{roundId}',
    operationId: 'showRound',
    summary: 'A round as its partner sees it',
    errors: [ERRORS.roundNotFound],
  },
  {
    description: 'Shows a round of any partner as its partner sees it.',
    response: RECORD,
  },
);

export const voidRound = endpoint(
  {
    ...ofRound,
    method: 'post',
    path: '/rounds/{roundId}/void',
    operationId: 'voidRound',
    summary: 'Void an open round: every stake is given back, and the round counts in no total',
    body: VoidBody,
    errors: [ERRORS.roundNotFound, ERRORS.actionIllegal, ERRORS.spinInProgress, ERRORS.unavailable],
  },
  {
    description:
      'Gives back all that the player has staked on an open round. The round counts in no total; its entries stay in the ledger, and author and reason in the audit log.',
    request: { reason: 'the player was cut off by a fault of ours' },
    response: {
      ...RECORD,
      status: 'VOIDED',
      phase: 'VOIDED',
      lastActionSeq: 0,
      payoutUsd: 0.25,
      dealer: OPEN_ROUND.dealer,
      hands: OPEN_ROUND.hands,
      actions: [],
      balance: { balanceUsd: 1000 },
    },
  },
);

export const closeRound = endpoint(
  {
    ...ofRound,
    method: 'post',
    path: '/rounds/{roundId}/close',
    query: ReasonQuery,
    operationId: 'closeRound',
    summary: 'Play an open round out as its timeout does',
    errors: [ERRORS.roundNotFound, ERRORS.actionIllegal, ERRORS.spinInProgress, ERRORS.unavailable],
  },
  {
    description:
      'Plays an open round out as its timeout does: insurance is declined, every hand stands, the dealer draws.',
    response: { ...RECORD, lastActionSeq: 0, autoCompleted: true, actions: ['timeout'] },
  },
);

const gameId = Type.Integer({ minimum: 1, maximum: ID_MAX, description: 'Those of this game only' });

export const OperatorRoundsQuery = Type.Object({
  ...Page.properties,
  ...partnerFilter,
  gameId: Type.Optional(gameId),
  status: Type.Optional(
    Type.String({ pattern: `^(${ROUND_STATUSES.join('|')})$`, description: 'OPEN, SETTLED or VOIDED' }),
  ),
});

export const OperatorRound = Type.Object({
  roundId: Type.String(),
  partnerId: Type.Integer(),
  gameId: Type.Integer(),
  gameName: Type.String({ description: 'As players see it' }),
  playerId: Type.String(),
  status: RoundStatus,
  createdAt: timestamp(),
  wageredUsd: usd('All stakes, insurance included'),
  payoutUsd: nullable(usd('All that comes back; null before the round has ended')),
});

export const OperatorRounds = Type.Object({
  rounds: Type.Array(OperatorRound),
  ...pageMembers,
});

export const listAllRounds = endpoint(
  {
    ...operatorRead,
    path: '/rounds',
    operationId: 'listAllRounds',
    tag: 'Rounds',
    summary: 'Blackjack rounds of all partners, or of one, the newest first',
    query: OperatorRoundsQuery,
    response: OperatorRounds,
    hasSums: true,
    errors: [],
  },
  {
    description: '`total` counts to 10,000, and pages reach as far. `showRound` has the cards.',
    response: {
      rounds: [
        {
          roundId: '3f0c1f5ab3d94dd0a6a1c9d1b0e0f4c2',
          partnerId: 2,
          gameId: 5,
          gameName: 'Acme Blackjack',
          playerId: 'alice',
          status: 'SETTLED',
          createdAt: '2026-11-22T04:13:57.812Z',
          wageredUsd: 5,
          payoutUsd: 10,
        },
      ],
      page: 1,
      limit: 20,
      total: 1,
    },
  },
);
