/** Schemas and operations of players and their balances. */
import { type Static, Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import {
  choice,
  nullable,
  opaque,
  PATH,
  Page,
  pageMembers,
  REASON_PATTERN,
  SandboxMark,
  timestamp,
  usd,
} from '../../domain/schema.js';
import { RoundDealer, RoundHand, RoundInsurance, RoundPhase, RoundStatus } from '../blackjack/contract.js';
import { CommunityBonus } from '../communal/contract.js';
import { endpoint } from '../contract/endpoint.js';
import { RAFFLE_HISTORY, SLOT_HISTORY, STATEMENT_ENTRY } from '../contract/examples.js';
import {
  PlayerBalance,
  PlayerSpin,
  RafflePresentation,
  SlotPresentation,
  SpinOutcome,
  StatementEntry,
} from '../spins/contract.js';

export const PlayerStatus = Type.Union([Type.Literal('ACTIVE'), Type.Literal('BLOCKED')], {
  description: 'BLOCKED: its spins are refused',
});

export const PlayerResponse = Type.Object({
  userId: Type.String({ description: 'Internal id of the player' }),
  playerId: Type.String(),
  createdAt: timestamp(),
  balanceUsd: usd('Balance now'),
  status: PlayerStatus,
});

export const PlayerSpins = Type.Object({
  spins: Type.Array(PlayerSpin),
  ...pageMembers,
});

export const AdjustmentBody = Type.Object({
  amountUsd: usd('Added to the balance; not 0, at most 6 decimals, negative to take away'),
  reason: Type.String({ pattern: REASON_PATTERN, description: 'Kept with the adjustment' }),
  requestId: opaque('Idempotency key; binds for ever'),
});

/** Body of an adjustment together with the player id of the path. */
export const AdjustmentOrder = Type.Object({ playerId: opaque(''), ...AdjustmentBody.properties });

export const AdjustmentResponse = Type.Object({
  playerId: Type.String(),
  balanceUsd: usd('Balance of the player after the adjustment'),
  adjustmentId: Type.String(),
});

export type AdjustmentBody = Static<typeof AdjustmentBody>;

export const PlayerStatusBody = Type.Object({
  status: PlayerStatus,
  reason: Type.String({ pattern: REASON_PATTERN, description: 'Kept in the audit log' }),
});

/** Body of a status change together with the player id of the path. */
export const PlayerStatusOrder = Type.Object({ playerId: opaque(''), ...PlayerStatusBody.properties });

export const PlayerStatusResponse = Type.Object({ playerId: Type.String(), status: PlayerStatus });

export type PlayerStatusBody = Static<typeof PlayerStatusBody>;

export const RecallQuery = Type.Object({
  limit: Type.Integer({ minimum: 1, maximum: 50, default: 10, description: 'Games in the answer' }),
});

export const RoundPresentation = Type.Object({
  type: Type.Literal('blackjack'),
  status: RoundStatus,
  phase: RoundPhase,
  hands: Type.Array(RoundHand),
  dealer: RoundDealer,
  insurance: nullable(RoundInsurance),
  actions: Type.Array(Type.String(), { description: 'What the player did, in order' }),
  autoCompleted: Type.Boolean({ description: 'True where its timeout, or the operator, played it out' }),
});

export const SharePresentation = Type.Object({
  type: Type.Literal('communityBonus'),
  tierName: Type.String(),
  tierLevel: Type.Integer(),
  toldBySpinId: nullable(Type.String({ description: 'The spin that told the player; null while none has' })),
});

export const RecalledPresentation = Type.Union(
  [SlotPresentation, RafflePresentation, RoundPresentation, SharePresentation],
  { description: 'What the player saw; `type` tells of what' },
);

export const RecallKind = choice(['spin', 'ticket', 'round', 'share'], 'What the game was');

export const RecalledGame = Type.Object({
  kind: RecallKind,
  gameId: Type.Integer(),
  displayName: Type.String({ description: 'Name of the game that players see' }),
  spinId: Type.Optional(Type.String({ description: 'Of a spin or ticket' })),
  roundId: Type.Optional(Type.String({ description: 'Of a round' })),
  eventId: Type.Optional(Type.String({ description: 'Of a share: the event that it is of' })),
  outcome: Type.Optional(nullable(SpinOutcome)),
  presentation: RecalledPresentation,
  balance: Type.Optional(nullable(PlayerBalance)),
  communityBonus: Type.Optional(nullable(CommunityBonus)),
  sandbox: SandboxMark,
  requestId: Type.Optional(Type.String({ description: 'As sent' })),
  outcomeIndex: Type.Optional(
    nullable(
      Type.Integer({ description: "Place in the game's sequence of outcomes; null where a tester chose it" }),
    ),
  ),
  wagerUsd: usd('What the player staked; 0 of a share'),
  payoutUsd: nullable(usd('What came back; null while a round is open')),
  balanceBeforeUsd: usd('Balance of the player before the game'),
  balanceAfterUsd: usd('Balance of the player after it; of an open round: after its newest step'),
  createdAt: timestamp(),
  endedAt: Type.Optional(nullable(timestamp())),
});

export const Recall = Type.Object({ games: Type.Array(RecalledGame) });

export const getPlayer = endpoint(
  {
    method: 'get',
    path: '/players/{playerId}',
    params: { playerId: PATH.playerId },
    operationId: 'getPlayer',
    tag: 'Players',
    summary: 'A player, by the identifier that its spins carry',
    scope: 'partner',
    status: 200,
    response: PlayerResponse,
    hasSums: true,
    errors: [ERRORS.playerNotFound],
    failure: ERRORS.playerResolutionFailed,
  },
  {
    description: 'A player exists from its first spin or adjustment on. The balance is that of this moment.',
    response: {
      userId: 'usr_77TVvlEpURBZqkjErDtVJZ',
      playerId: 'alice',
      createdAt: '2026-11-22T04:14:01.121Z',
      balanceUsd: 1049.25,
      status: 'ACTIVE',
    },
  },
);

export const listPlayerSpins = endpoint(
  {
    method: 'get',
    path: '/players/{playerId}/spins',
    params: { playerId: PATH.playerId },
    operationId: 'listPlayerSpins',
    tag: 'Spins',
    summary: 'The spins and tickets of a player, newest first',
    scope: 'partner',
    query: Page,
    status: 200,
    response: PlayerSpins,
    hasSums: true,
    errors: [ERRORS.playerNotFound],
    failure: ERRORS.playerResolutionFailed,
  },
  {
    description:
      "Lists a player's spins and tickets as they were answered, the newest first. Its shares of communal progressives are listed by `GET /players/{playerId}/community-bonuses`.",
    response: {
      spins: [RAFFLE_HISTORY, SLOT_HISTORY],
      page: 1,
      limit: 20,
      total: 2,
    },
  },
);

export const recallGames = endpoint(
  {
    method: 'get',
    path: '/players/{playerId}/recall',
    params: { playerId: PATH.playerId },
    operationId: 'recallGames',
    tag: 'Players',
    summary: 'The last games of a player as the player saw them, newest first',
    scope: 'partner',
    query: RecallQuery,
    status: 200,
    response: Recall,
    hasSums: true,
    errors: [ERRORS.playerNotFound, ERRORS.unavailable],
    failure: ERRORS.internal,
  },
  {
    description:
      'Spins, tickets, rounds and shares of communal progressives together, by when they began. An open round shows no hole card. The share of the player who fired a bonus is in its spin only.',
    response: {
      games: [
        { kind: 'ticket', ...RAFFLE_HISTORY, payoutUsd: 50, displayName: 'Dinner raffle' },
        { kind: 'spin', ...SLOT_HISTORY, payoutUsd: 0.5, displayName: 'Classic' },
      ],
    },
  },
);

export const recallPlayerGames = endpoint(
  {
    ...recallGames,
    path: '/partners/{id}/players/{playerId}/recall',
    params: { id: PATH.partnerId, playerId: PATH.playerId },
    operationId: 'recallPlayerGames',
    scope: 'operator',
    errors: [ERRORS.partnerNotFound, ERRORS.playerNotFound, ERRORS.unavailable],
  },
  recallGames.shown,
);

export const adjustBalance = endpoint(
  {
    method: 'post',
    path: '/partners/{id}/players/{playerId}/adjustments',
    params: { id: PATH.partnerId, playerId: PATH.playerId },
    operationId: 'adjustBalance',
    tag: 'Players',
    summary: "Adjust a player's balance, once for each requestId; a player that is not known is made",
    scope: 'operator',
    body: AdjustmentBody,
    ownCheck: true,
    status: 200,
    response: AdjustmentResponse,
    hasSums: true,
    errors: [
      ERRORS.fieldMissing,
      ERRORS.partnerNotFound,
      ERRORS.spinInProgress,
      ERRORS.requestIdReused,
      ERRORS.insufficientBalance,
      ERRORS.unavailable,
    ],
    failure: ERRORS.internal,
  },
  {
    description: `Books an amount to a player as a ledger entry of its own. The same \`requestId\` books once and gets the same answer, without end. With \`balanceMode: "enforce"\` the balance can not fall below 0 (${ERRORS.insufficientBalance.code}).`,
    request: { amountUsd: -5.5, reason: 'Correction of ticket 4711', requestId: 'adjust-4711' },
    response: {
      playerId: 'alice',
      balanceUsd: 1043.75,
      adjustmentId: 'f4abbfd7541bd6f71c3311b61d6d2bbd',
    },
  },
);

export const updatePlayer = endpoint(
  {
    method: 'patch',
    path: '/partners/{id}/players/{playerId}',
    params: { id: PATH.partnerId, playerId: PATH.playerId },
    operationId: 'updatePlayer',
    tag: 'Players',
    summary: 'Block a player, or let it play again',
    scope: 'operator',
    body: PlayerStatusBody,
    ownCheck: true,
    status: 200,
    response: PlayerStatusResponse,
    errors: [ERRORS.fieldMissing, ERRORS.partnerNotFound, ERRORS.playerNotFound, ERRORS.unavailable],
    failure: ERRORS.internal,
  },
  {
    description: `A blocked player's spins are refused with ${ERRORS.playerBlocked.code}; a repeated \`requestId\` still gets its original answer. The change is in the audit log.`,
    request: { status: 'BLOCKED', reason: 'Self-exclusion' },
    response: { playerId: 'alice', status: 'BLOCKED' },
  },
);

export const StatementQuery = Type.Object({
  cursor: Type.Optional(Type.String({ description: 'The `nextCursor` of the answer before' })),
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'Entries in an answer' }),
});

export const Statement = Type.Object({
  partnerId: Type.Integer(),
  playerId: Type.String(),
  status: PlayerStatus,
  balanceUsd: usd('Balance now'),
  createdAt: timestamp(),
  entries: Type.Array(StatementEntry),
  nextCursor: nullable(Type.String({ description: 'For `cursor`; null: there are no more' })),
});

export const getStatement = endpoint(
  {
    method: 'get',
    path: '/partners/{id}/players/{playerId}/statement',
    params: { id: PATH.partnerId, playerId: PATH.playerId },
    operationId: 'getStatement',
    tag: 'Players',
    summary: 'A player with every entry of its ledger, newest first',
    scope: 'operator',
    query: StatementQuery,
    status: 200,
    response: Statement,
    hasSums: true,
    errors: [ERRORS.partnerNotFound, ERRORS.playerNotFound, ERRORS.unavailable],
    failure: ERRORS.internal,
  },
  {
    description:
      'Every entry, of whatever kind: spins, the opening, adjustments, shares of a communal progressive, steps of rounds. The balance after each is the one before it, less the wager, plus the credit.',
    response: {
      partnerId: 2,
      playerId: 'alice',
      status: 'ACTIVE',
      balanceUsd: 1000.25,
      createdAt: '2026-11-22T04:13:57.812Z',
      entries: [STATEMENT_ENTRY],
      nextCursor: null,
    },
  },
);
