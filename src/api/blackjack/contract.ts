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
  Page,
  pageMembers,
  partnerFilter,
  timestamp,
  usd,
  VoidBody,
} from '../../domain/schema.js';
import { endpointsOf } from '../contract/endpoint.js';
import { feedBounds, feedComplete, feedCursor, feedPaging } from '../contract/feedQuery.js';
import { GameResponse } from '../games/contract.js';
import { ReasonQuery } from '../partners/contract.js';
import { BINDING_TIME, PlayerBalance } from '../spins/contract.js';

const { partner, play, operator } = endpointsOf('Rounds');
const games = endpointsOf('Games').operator;

export const BlackjackRulesBody = Type.Partial(BlackjackRules, {
  description: 'Rules that differ from the defaults. Omitted rules have their default values.',
});

const roundTimeoutS = Type.Integer({
  minimum: 60,
  maximum: 2_592_000,
  description:
    'Time after the deal at which the service finishes an open round automatically, in seconds. Default: 86,400.',
});

export const BlackjackBody = Type.Object({
  displayName: opaque('Name shown to players'),
  configName: Type.String({
    pattern: CONFIG_NAME_PATTERN,
    description: "System identifier, unique across the partner's games",
  }),
  wagerUsd: usd(
    'Wager of a deal, in USD: more than 0, at most 10,000. Half of it and the payout of a natural must be whole micro-USD.',
  ),
  rules: BlackjackRulesBody,
  roundTimeoutS: Type.Optional(roundTimeoutS),
});

export const BlackjackResponse = Type.Object({
  ...GameResponse.properties,
  partnerId: Type.Integer(),
  wagerUsd: usd('Wager of a deal, in USD'),
  rules: BlackjackRules,
  rulesHash: Type.String({
    description: 'SHA-256 of the canonical JSON (RFC 8785) of the rules, hexadecimal',
  }),
  roundTimeoutS: Type.Integer(),
});

export const DealBody = Type.Object({
  gameId: id('The `gameConfigId` of a blackjack table'),
  playerId: opaque("The partner's own identifier of the player"),
  wagerUsd: usd("The table's fixed wager, in USD"),
  requestId: Type.Optional(
    opaque(`Idempotency key. ${BINDING_TIME} Deals and spins share the same set of keys.`),
  ),
});

export const RoundActionName = choice(ACTIONS, 'Action of the player');

export const ActionBody = Type.Object({
  roundId: Type.String({ description: 'The `roundId` of the deal' }),
  action: RoundActionName,
  seq: Type.Integer({
    minimum: 1,
    maximum: 1_000_000,
    description:
      'Number of the action: `lastActionSeq` + 1. A repetition of the same action with the same number returns the same bytes.',
  }),
});

const Cards = Type.Array(Type.String({ description: 'Rank and suit, such as `Th` for the ten of hearts' }));

export const HandStatus = choice(
  ['WAITING', 'ACTIVE', 'STOOD', 'BUST', 'SURRENDERED', 'NATURAL'],
  '`ACTIVE`: the player is playing the hand. `WAITING`: the player will play the hand later.',
);

export const RoundHand = Type.Object({
  cards: Cards,
  total: Type.Integer(),
  isSoft: Type.Boolean(),
  wagerUsd: usd('Stake on this hand, in USD'),
  status: HandStatus,
  payoutUsd: Type.Optional(
    usd('Payout of this hand including its stake, in USD. Present once the round is settled.'),
  ),
});

export const RoundAction = Type.Object({
  action: RoundActionName,
  costUsd: Type.Optional(usd('Additional stake for the action, in USD. Absent if the action costs nothing.')),
});

export const RoundInsurance = Type.Object({
  wagerUsd: usd('Stake of the insurance, in USD: half of the wager'),
  payoutUsd: Type.Optional(
    usd('Payout of the insurance including its stake, in USD. Present once the round is settled.'),
  ),
});

export const RoundShoe = Type.Object({
  index: Type.Integer({ description: "Index of the shoe in the table's sequence of shoes" }),
  commitment: Type.String({
    description: 'Commitment to the order of the cards, hexadecimal. It was made before the shoe was dealt.',
  }),
  seed: Type.Optional(
    Type.String({
      description:
        'Seed that determines the order of all cards: 32 bytes, hexadecimal. Present once the round has ended.',
    }),
  ),
});

export const RoundDealer = Type.Object(
  { cards: Cards, total: Type.Integer() },
  { description: 'Cards of the dealer. Only the up card is shown until the round is settled.' },
);

export const RoundStatus = choice(ROUND_STATUSES, 'Status of the round');

export const RoundPhase = choice(
  ['INSURANCE', 'PLAYER', 'SETTLED', 'VOIDED'],
  '`INSURANCE`: the player must take or decline insurance. `PLAYER`: the player is playing a hand.',
);

export const RoundTable = Type.Object(
  { wagerUsd: usd('Wager of a deal, in USD'), rules: BlackjackRules },
  { description: 'Wager and rules of the round. A proof needs nothing but these and the seed.' },
);

const roundMembers = {
  roundId: Type.String(),
  gameId: Type.Integer(),
  playerId: Type.String(),
  status: RoundStatus,
  phase: RoundPhase,
  lastActionSeq: Type.Integer(),
  wageredUsd: usd('Sum of all stakes of the round including insurance, in USD'),
  payoutUsd: nullable(
    usd('Sum of all payouts of the round including returned stakes, in USD; null until the round has ended'),
  ),
  dealer: RoundDealer,
  activeHand: nullable(
    Type.Integer({
      description: 'Index of the hand that the player is playing, starting at 0; null if there is none',
    }),
  ),
  hands: Type.Array(RoundHand),
  legalActions: Type.Array(RoundAction),
  insurance: nullable(RoundInsurance),
  autoCompleted: Type.Optional(
    Type.Boolean({ description: 'True if the timeout or the operator finished the round' }),
  ),
  rulesHash: Type.String(),
  shoe: RoundShoe,
  expiresAt: timestamp(),
  balance: PlayerBalance,
  requestId: Type.Optional(Type.String({ description: 'The `requestId` that was sent with the deal' })),
};

export const RoundResponse = Type.Object(roundMembers);

export const RoundRecordResponse = Type.Object({
  ...roundMembers,
  actions: Type.Array(Type.String(), {
    description:
      'Actions of the player, in order. A final `timeout` means that the service finished the round automatically.',
  }),
  table: RoundTable,
  createdAt: timestamp(),
});

export const RoundQuery = Type.Object({
  ...Page.properties,
  playerId: Type.Optional(opaque('Rounds of this player only')),
  status: Type.Optional(
    Type.String({
      pattern: `^(${ROUND_STATUSES.join('|')})$`,
      description: 'Only rounds with this status: OPEN, SETTLED or VOIDED',
    }),
  ),
});

export const RoundPage = Type.Object({ rounds: Type.Array(RoundRecordResponse), ...pageMembers });

export const RoundEntry = Type.Object({
  entryId: Type.String({ description: 'Id of the ledger entry; the first one equals the `roundId`' }),
  createdAt: timestamp(),
  wagerUsd: usd('Stake that the entry charged, in USD; negative if a void returned it'),
  payoutUsd: usd('Payout of the entry, in USD; only the last entry of a settled round has one'),
  balanceAfterUsd: usd('Balance of the player after the entry, in USD'),
});

export const TimedRound = Type.Object({
  ...RoundRecordResponse.properties,
  endedAt: nullable(timestamp()),
  entries: Type.Array(RoundEntry, {
    description: 'Ledger entries of the round: the deal, each action, a void',
  }),
});

export const RoundFeedQuery = Type.Object({
  ...feedBounds('rounds dealt'),
  gameId: Type.Optional(
    Type.Integer({ minimum: 1, maximum: ID_MAX, description: 'Only rounds of this game' }),
  ),
  playerId: Type.Optional(opaque('Only rounds of this player')),
  ...feedPaging('rounds', 'roundId'),
});

export const RoundFeed = Type.Object({
  rounds: Type.Array(TimedRound),
  ...feedCursor('rounds'),
  ...feedComplete('rounds'),
});

export type BlackjackBody = Static<typeof BlackjackBody>;
export type DealBody = Static<typeof DealBody>;
export type ActionBody = Static<typeof ActionBody>;

const RULES_HASH = 'cc583bf4e4c3e17c57341a5d8d9f2c9c166d84aad6fb7b921df7fb7ca4a4c331';

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

export const dealRound = play.post('dealRound', '/deal', {
  summary: 'Deal a round from the next sealed shoe of the table',
  description: `Charges the wager and deals the next sealed shoe of the table, in one atomic step. If a natural ends the round, the same step settles it. If no response arrives, or the response is ${ERRORS.spinInProgress.code}, send the same request with the same \`requestId\`. A player can have one open round at a table. If there is one already, the response is ${ERRORS.roundOpen.code}, and its \`details\` identify the open round.`,
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
  bodyExample: {
    gameId: 5,
    playerId: 'alice',
    wagerUsd: 0.25,
    requestId: '0197d2c4-b7d2-7f3e-8a41-6c7d8e9f0a1b',
  },
  example: OPEN_ROUND,
});

export const actInRound = play.post('actInRound', '/action', {
  summary: 'Take the next action of a round',
  description: `Takes one of the \`legalActions\` of the round. \`seq\` is \`lastActionSeq\` + 1. An action is executed once, however often it is sent: each repetition returns the same bytes with \`Idempotent-Replayed: true\`. ${ERRORS.actionStale.code} means that another action came first, so read the round. Every response follows the commit of its ledger entry.`,
  replays: true,
  bodyLimit: 4096,
  body: ActionBody,
  response: RoundResponse,
  errors: [
    ERRORS.roundNotFound,
    ERRORS.spinInProgress,
    ERRORS.actionStale,
    ERRORS.actionIllegal,
    ERRORS.insufficientBalance,
    ERRORS.spinFailed,
  ],
  bodyExample: { roundId: OPEN_ROUND.roundId, action: 'stand', seq: 1 },
  example: SETTLED_ROUND,
});

export const getRound = play.get('getRound', '/rounds/{roundId}', {
  summary: 'Get the current state of a round',
  description:
    'Returns the current state of a round. Once the round has ended, `shoe.seed`, `table` and `actions` prove every card, and the verifier at `/docs/verify` checks them.',
  response: RoundRecordResponse,
  example: RECORD,
});

export const listRounds = play.get('listRounds', '/rounds', {
  summary: "List the partner's rounds, newest first",
  description: 'Lists rounds by page, optionally only those of one player or those with one status.',
  query: RoundQuery,
  response: RoundPage,
  example: { rounds: [RECORD], page: 1, limit: 20, total: 1 },
});

export const listRoundsByTime = partner.get('listRoundsByTime', '/rounds', {
  summary: "List the account's blackjack rounds by the time of their deal, oldest first",
  description:
    'The bounds apply to the deal, and `entries` has the time and the amounts of every later step. An open round is listed in its present state, so read it again until `endedAt` is not null. A page may have fewer rounds than `limit`, even none, while `nextCursor` is not null. New rounds never cause a round to be skipped or repeated. To follow the ledger, send the `roundId` of the last round as `cursor`. After days were archived and dropped, `completeFrom` is the time from which all rounds are available.',
  query: RoundFeedQuery,
  response: RoundFeed,
  example: {
    rounds: [
      {
        ...RECORD,
        endedAt: '2026-11-22T04:19:41.002Z',
        entries: [
          {
            entryId: RECORD.roundId,
            createdAt: RECORD.createdAt,
            wagerUsd: 0.25,
            payoutUsd: 0,
            balanceAfterUsd: 999.75,
          },
          {
            entryId: '7c1e5d0b2f4a43968e7d6c5b4a392817',
            createdAt: '2026-11-22T04:19:41.002Z',
            wagerUsd: 0,
            payoutUsd: 0.5,
            balanceAfterUsd: 1000.25,
          },
        ],
      },
    ],
    nextCursor: null,
  },
});

export const createBlackjackGame = games.post('createBlackjackGame', '/partners/{id}/blackjack-games', {
  summary: 'Create a blackjack table with permanent rules and a permanent wager',
  description:
    'Creates a table for a partner. Omitted rules have their default values. Rules and wager never change. For other rules, suspend the game and create another table.',
  body: BlackjackBody,
  status: 201,
  response: BlackjackResponse,
  errors: [ERRORS.partnerIsDeactivated, ERRORS.configNameTaken],
  failure: ERRORS.gameRegistrationFailed,
  bodyExample: {
    displayName: 'Blackjack',
    configName: 'BLACKJACK',
    wagerUsd: 0.25,
    rules: { decks: 6, lateSurrender: false },
    roundTimeoutS: 86400,
  },
  example: {
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
});

export const showRound = operator.get('showRound', '/rounds/{roundId}', {
  summary: 'Get a round of any partner',
  description: 'Returns a round of any partner as its partner sees it.',
  response: RoundRecordResponse,
  example: RECORD,
});

export const voidRound = operator.post('voidRound', '/rounds/{roundId}/void', {
  summary: 'Void an open round and return every stake',
  description:
    'Voids an open round. All stakes are returned to the player, and no total includes the round. Its entries stay in the ledger, and the audit log keeps the operator and the reason.',
  body: VoidBody,
  response: RoundRecordResponse,
  errors: [ERRORS.actionIllegal, ERRORS.spinInProgress],
  bodyExample: { reason: 'the player was cut off by a fault of ours' },
  example: {
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
});

export const closeRound = operator.post('closeRound', '/rounds/{roundId}/close', {
  summary: 'Finish an open round as its timeout would',
  description:
    'Finishes an open round as its timeout would: insurance is declined, every hand stands, and the dealer draws.',
  query: ReasonQuery,
  response: RoundRecordResponse,
  errors: [ERRORS.actionIllegal, ERRORS.spinInProgress],
  example: { ...RECORD, lastActionSeq: 0, autoCompleted: true, actions: ['timeout'] },
});

const gameId = Type.Integer({ minimum: 1, maximum: ID_MAX, description: 'Only rounds of this game' });

export const OperatorRoundsQuery = Type.Object({
  ...Page.properties,
  ...partnerFilter,
  gameId: Type.Optional(gameId),
  status: Type.Optional(
    Type.String({
      pattern: `^(${ROUND_STATUSES.join('|')})$`,
      description: 'Only rounds with this status: OPEN, SETTLED or VOIDED',
    }),
  ),
});

export const OperatorRound = Type.Object({
  roundId: Type.String(),
  partnerId: Type.Integer(),
  gameId: Type.Integer(),
  gameName: Type.String({ description: 'Name of the game that players see' }),
  playerId: Type.String(),
  status: RoundStatus,
  createdAt: timestamp(),
  wageredUsd: usd('Sum of all stakes of the round including insurance, in USD'),
  payoutUsd: nullable(
    usd('Sum of all payouts of the round including returned stakes, in USD; null until the round has ended'),
  ),
});

export const OperatorRounds = Type.Object({
  rounds: Type.Array(OperatorRound),
  ...pageMembers,
});

export const listAllRounds = operator.get('listAllRounds', '/rounds', {
  summary: 'List the blackjack rounds of all partners or of one partner, newest first',
  description:
    '`total` counts up to 10,000, and the pages contain only the newest 10,000 rounds. `showRound` returns the cards of a round.',
  query: OperatorRoundsQuery,
  response: OperatorRounds,
  hasSums: true,
  example: {
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
});
