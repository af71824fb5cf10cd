/** Descriptions and examples: players and their balances. */
import { ERRORS } from '../../domain/errors.js';
import type { References } from './operationReference.js';
import { RAFFLE_SPIN, SLOT_SPIN } from './spins.js';

export const PLAYER_REFERENCES: References = {
  getPlayer: {
    description: 'A player exists from its first spin or adjustment on. The balance is that of this moment.',
    response: {
      userId: 'usr_77TVvlEpURBZqkjErDtVJZ',
      playerId: 'alice',
      createdAt: '2026-11-22T04:14:01.121Z',
      balanceUsd: 1049.25,
      status: 'ACTIVE',
    },
  },
  listPlayerSpins: {
    description:
      "Lists a player's spins and tickets as they were answered, the newest first. Its shares of communal progressives are listed by `GET /players/{playerId}/community-bonuses`.",
    response: {
      spins: [
        { ...RAFFLE_SPIN, createdAt: '2026-11-22T04:14:01.140Z', gameId: 4 },
        { ...SLOT_SPIN, createdAt: '2026-11-22T04:14:01.121Z', gameId: 3 },
      ],
      page: 1,
      limit: 20,
      total: 2,
    },
  },
  updatePlayer: {
    description: `A blocked player's spins are refused with ${ERRORS.playerBlocked.code}; a repeated \`requestId\` still gets its original answer. The change is in the audit log.`,
    request: { status: 'BLOCKED', reason: 'Self-exclusion' },
    response: { playerId: 'alice', status: 'BLOCKED' },
  },
  adjustBalance: {
    description: `Books an amount to a player as a ledger entry of its own. The same \`requestId\` books once and gets the same answer, without end. With \`balanceMode: "enforce"\` the balance can not fall below 0 (${ERRORS.insufficientBalance.code}).`,
    request: { amountUsd: -5.5, reason: 'Correction of ticket 4711', requestId: 'adjust-4711' },
    response: {
      playerId: 'alice',
      balanceUsd: 1043.75,
      adjustmentId: 'f4abbfd7541bd6f71c3311b61d6d2bbd',
    },
  },
};
