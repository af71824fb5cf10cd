/** Spins. */
import { ERRORS } from '../../domain/errors.js';
import { SPIN_CSV_EXAMPLE } from '../contract/csv.js';
import { endpoint } from '../contract/endpoint.js';
import { RAFFLE_SPIN, SLOT_HISTORY, SLOT_SPIN, TOLD_BONUS } from '../contract/examples.js';
import {
  NextOutcomeBody,
  NextOutcomeResponse,
  PATH,
  SpinBody,
  SpinFeed,
  SpinFeedQuery,
  SpinRecord,
  SpinResponse,
} from '../contract/requests.js';

export const getSpin = endpoint(
  {
    method: 'get',
    path: '/spins/{spinId}',
    params: { spinId: PATH.spinId },
    operationId: 'getSpin',
    tag: 'Spins',
    summary: 'A spin, as it was answered',
    scope: 'partner',
    status: 200,
    response: SpinRecord,
    hasSums: true,
    errors: [ERRORS.notFound],
    failure: ERRORS.internal,
  },
  {
    description:
      'Returns the original response of a spin, with its time, game, player, wager, the balances before and after, and its place in the sequence of its game.',
    response: { ...SLOT_HISTORY, playerId: 'alice' },
  },
);

export const chooseNextOutcome = endpoint(
  {
    method: 'post',
    path: '/sandbox/next-outcome',
    operationId: 'chooseNextOutcome',
    tag: 'Sandbox',
    summary: "Choose the outcome of a player's next spin of a slot game",
    scope: 'partner',
    sandboxOnly: true,
    body: NextOutcomeBody,
    status: 200,
    response: NextOutcomeResponse,
    hasSums: true,
    errors: [ERRORS.notFound, ERRORS.fieldMissing, ERRORS.gameNotRegistered, ERRORS.capReached],
    failure: ERRORS.internal,
  },
  {
    description: `The player's next spin of the game that is not refused shows and pays this combination, with the mark \`"sandbox": {"forced": true}\`. It moves the balance, and is in the ledger, the history and the webhooks; it takes no outcome of the queue and is in no total, RTP or settlement. A choice stands for an hour, and replaces the one before. Accounts in production get ${ERRORS.notFound.code}.`,
    request: { gameId: 3, playerId: 'alice', combinationIndex: 12 },
    response: {
      gameId: 3,
      playerId: 'alice',
      combinationIndex: 12,
      outcome: { prizeTier: 6, payoutUsd: 125.5, isBonusTrigger: false },
      expiresAt: '2026-11-22T05:14:01.121Z',
    },
  },
);

export const listSpins = endpoint(
  {
    method: 'get',
    path: '/spins',
    operationId: 'listSpins',
    tag: 'Spins',
    summary:
      'The spins of the account by time, oldest first; with `Accept: text/csv` all of the range at once',
    scope: 'partner',
    query: SpinFeedQuery,
    status: 200,
    response: SpinFeed,
    hasSums: true,
    hasCsv: true,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description:
      'A page may have fewer spins than `limit`, even none, while `nextCursor` is not null. Whatever is spun meanwhile, no spin is skipped or repeated. To follow the ledger, ask again with the `spinId` of the last spin as `cursor`. Once days were archived and dropped, `completeFrom` (of CSV the header `X-Complete-From`) says from when on all spins are kept.',
    response: {
      spins: [{ ...SLOT_HISTORY, playerId: 'alice' }],
      nextCursor: null,
    },
    csv: SPIN_CSV_EXAMPLE,
  },
);

export const spin = endpoint(
  {
    method: 'post',
    path: '/spin',
    operationId: 'spin',
    tag: 'Spins',
    summary: "Spin a game once for a player: the next outcome of the game's queue is dealt",
    scope: 'partner',
    bodyLimit: 4096,
    window: 'spin',
    replays: true,
    body: SpinBody,
    status: 200,
    response: SpinResponse,
    errors: [
      ERRORS.gameNotRegistered,
      ERRORS.blackjackOnly,
      ERRORS.dealingOff,
      ERRORS.gameNotActive,
      ERRORS.wagerMismatch,
      ERRORS.spinInProgress,
      ERRORS.requestIdReused,
      ERRORS.playerBlocked,
      ERRORS.queueExhausted,
      ERRORS.raffleClosed,
      ERRORS.insufficientBalance,
      ERRORS.fundingUnavailable,
      ERRORS.noBlockServable,
    ],
    failure: ERRORS.spinFailed,
  },
  {
    description: `Books the wager, deals the next outcome of the game, books the payout and answers, in one atomic step. Send a \`requestId\` of your own with each spin. If no answer arrives, or ${ERRORS.spinInProgress.code} does, send the same request with the same \`requestId\`: the answer has the same bytes and the header \`Idempotent-Replayed: true\`. After ${ERRORS.spinFailed.code}, ${ERRORS.fundingUnavailable.code} and ${ERRORS.noBlockServable.code} the spin did not happen and the \`requestId\` is not bound: send it again. Change the \`requestId\` only if every attempt with it was answered.`,
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
);
