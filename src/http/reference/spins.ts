/** Descriptions and examples: spins. */
import { ERRORS } from '../../domain/errors.js';
import { TOLD_BONUS } from './communal.js';
import type { References } from './operationReference.js';

/** A win on the slot game of the examples. */
export const SLOT_SPIN = {
  spinId: '04f965c9ca0a730d47062f0635d6a943',
  outcome: { prizeTier: 1, payoutUsd: 0.5, isBonusTrigger: false },
  presentation: {
    type: 'slot',
    comboString: 'CH|CH|-',
    reelSymbols: [
      { name: 'Cherry', display: 'CH', isWild: false },
      { name: 'Cherry', display: 'CH', isWild: false },
      { name: 'Blank', display: '-', isWild: false },
    ],
    reelStops: [23, 8, 3],
    animationHints: { celebrationTier: 'small', isNearMiss: false, isBonusTrigger: false },
  },
  balance: { balanceUsd: 1000.25 },
  communityBonus: null,
  requestId: '0197d2c4-9c1e-7a55-8f6e-3b1f0a2c4d5e',
};

/** A ticket of the raffle of the examples. */
export const RAFFLE_SPIN = {
  spinId: '06b9feb83947c76c18c42e8c8071e3ce',
  outcome: { prizeTier: 4, payoutUsd: 50, isBonusTrigger: false },
  presentation: {
    type: 'raffle',
    prizeName: 'Dinner for two',
    prizeTier: 4,
    celebrationTier: 'large',
  },
  balance: { balanceUsd: 1049.25 },
  communityBonus: null,
  requestId: '0197d2c4-a3b0-7c11-9d2e-5f6a7b8c9d0e',
};

export const SPIN_REFERENCES: References = {
  spin: {
    description: `Books the wager, deals the next outcome of the game, books the payout and answers, in one atomic step. Send a \`requestId\` of your own with each spin. If no answer arrives, or ${ERRORS.spinInProgress.code} does, send the same request with the same \`requestId\`: the answer has the same bytes and the header \`Idempotent-Replayed: true\`. After ${ERRORS.spinFailed.code}, ${ERRORS.fundingUnavailable.code} and ${ERRORS.noBlockServable.code} the spin did not happen: use a new \`requestId\`.`,
    request: {
      gameId: 3,
      playerId: 'alice',
      wagerUsd: 0.25,
      requestId: '0197d2c4-9c1e-7a55-8f6e-3b1f0a2c4d5e',
    },
    responses: {
      slot: SLOT_SPIN,
      bonus: { ...SLOT_SPIN, balance: { balanceUsd: 1002.25 }, communityBonus: TOLD_BONUS },
      raffle: RAFFLE_SPIN,
      forced: { ...SLOT_SPIN, sandbox: { forced: true } },
    },
  },
  chooseNextOutcome: {
    description: `The player's next spin of the game that is not refused shows and pays this combination, with the mark \`"sandbox": {"forced": true}\`. It moves the balance, and is in the ledger, the history and the webhooks; it takes no outcome of the queue and is in no total, RTP or settlement. A choice stands for an hour, and replaces the one before. Accounts in production get ${ERRORS.notFound.code}.`,
    request: { gameId: 3, playerId: 'alice', combinationIndex: 12 },
    response: {
      ...{ gameId: 3, playerId: 'alice', combinationIndex: 12 },
      outcome: { prizeTier: 6, payoutUsd: 125.5, isBonusTrigger: false },
      expiresAt: '2026-11-22T05:14:01.121Z',
    },
  },
  listSpins: {
    response: {
      spins: [{ ...SLOT_SPIN, createdAt: '2026-11-22T04:14:01.121Z', gameId: 3, playerId: 'alice' }],
      nextCursor: null,
    },
    csv: 'spinId,createdAt,gameId,playerId,requestId,wagerUsd,payoutUsd,prizeTier,balanceUsd,sandbox\r\n04f965c9ca0a730d47062f0635d6a943,2026-11-22T04:14:01.121Z,3,"alice","0197d2c4-9c1e-7a55-8f6e-3b1f0a2c4d5e",0.25,0.5,1,1000.25,\r\n',
  },
  getSpin: {
    description: 'Returns the original response of a spin, with its time, game and player.',
    response: { ...SLOT_SPIN, createdAt: '2026-11-22T04:14:01.121Z', gameId: 3, playerId: 'alice' },
  },
};
