/** Players and their balances. */
import { ERRORS } from '../../domain/errors.js';
import { endpoint } from '../contract/endpoint.js';
import { RAFFLE_HISTORY, SLOT_HISTORY } from '../contract/examples.js';
import {
  AdjustmentBody,
  AdjustmentResponse,
  PATH,
  Page,
  PlayerResponse,
  PlayerSpins,
  PlayerStatusBody,
  PlayerStatusResponse,
  Recall,
  RecallQuery,
} from '../contract/requests.js';

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
