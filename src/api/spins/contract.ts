/** Schemas and operations of spins. */
import { type Static, Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import {
  choice,
  escapeFormulas,
  ID_MAX,
  id,
  nullable,
  opaque,
  PATH,
  SandboxMark,
  timestamp,
  usd,
} from '../../domain/schema.js';
import { CommunityBonus } from '../communal/contract.js';
import { endpoint } from '../contract/endpoint.js';
import { RAFFLE_SPIN, SLOT_HISTORY, SLOT_SPIN, STATEMENT_ENTRY, TOLD_BONUS } from '../contract/examples.js';
import { SPIN_CSV_EXAMPLE } from '../contract/spinCsv.js';

export const SpinBody = Type.Object({
  gameId: id('Game configuration id'),
  playerId: opaque("The partner's own identifier of the player"),
  wagerUsd: usd("The game's fixed wager"),
  requestId: Type.Optional(opaque('Idempotency key; binds for 24 hours at least')),
});

export const CelebrationTier = choice(
  ['none', 'small', 'medium', 'large', 'jackpot'],
  'How loudly the win is shown',
);

export const ReelSymbol = Type.Object({
  name: Type.String(),
  display: Type.String(),
  isWild: Type.Boolean(),
});

export const AnimationHints = Type.Object({
  celebrationTier: CelebrationTier,
  isNearMiss: Type.Boolean(),
  isBonusTrigger: Type.Boolean(),
});

export const SlotPresentation = Type.Object({
  type: Type.Literal('slot'),
  comboString: Type.String({ description: 'Symbol displays joined by |' }),
  reelSymbols: Type.Array(ReelSymbol),
  reelStops: Type.Array(Type.Integer()),
  animationHints: AnimationHints,
});

export const RafflePresentation = Type.Object({
  type: Type.Literal('raffle'),
  prizeName: Type.String(),
  prizeTier: Type.Integer({ minimum: 0, maximum: 6 }),
  celebrationTier: CelebrationTier,
});

export const Presentation = Type.Union([SlotPresentation, RafflePresentation], {
  description: 'What the player sees; `type` tells the kind of game',
});

export const PlayerBalance = Type.Object({
  balanceUsd: usd('Balance of the player after wager, payout and the share of a bonus that it fired'),
});

export const SpinOutcome = Type.Object({
  prizeTier: Type.Integer({ minimum: 0, maximum: 6, description: '0 = no win' }),
  payoutUsd: usd('Win, the authoritative financial result'),
  isBonusTrigger: Type.Boolean(),
});

const spinMembers = {
  spinId: Type.String(),
  outcome: SpinOutcome,
  presentation: Presentation,
  balance: PlayerBalance,
  communityBonus: nullable(CommunityBonus),
  sandbox: SandboxMark,
  requestId: Type.Optional(Type.String({ description: 'As sent' })),
};

export const SpinResponse = Type.Object(spinMembers);

/** Members of an item of the spin history. */
const historyMembers = {
  ...spinMembers,
  createdAt: timestamp(),
  gameId: Type.Integer(),
  wagerUsd: usd('What the spin cost'),
  balanceBeforeUsd: usd('Balance of the player before the spin'),
  balanceAfterUsd: usd('`balance.balanceUsd`: before − wager + payout + the share of a bonus that it fired'),
  outcomeIndex: nullable(
    Type.Integer({ description: "Place in the game's sequence of outcomes; null where a tester chose it" }),
  ),
};

export const SpinRecord = Type.Object({ ...historyMembers, playerId: Type.String() });

export const PlayerSpin = Type.Object(historyMembers);

/** Query of the spins by time. */
export const SpinFeedQuery = Type.Object({
  from: Type.Optional(Type.String({ format: 'date-time', description: 'RFC 3339 time: spins from then on' })),
  to: Type.Optional(Type.String({ format: 'date-time', description: 'RFC 3339 time: spins before' })),
  gameId: Type.Optional(
    Type.Integer({ minimum: 1, maximum: ID_MAX, description: 'Spins of this game only' }),
  ),
  playerId: Type.Optional(opaque('Spins of this player only')),
  cursor: Type.Optional(
    Type.String({ description: 'A `nextCursor`, or the `spinId` of a spin: spins after it' }),
  ),
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'Spins in an answer' }),
  escapeFormulas,
});

export const SpinFeed = Type.Object({
  spins: Type.Array(SpinRecord),
  nextCursor: nullable(
    Type.String({ description: 'For `cursor`; null: the ledger has no more of the range' }),
  ),
  completeFrom: Type.Optional(
    Type.String({
      format: 'date-time',
      description: 'Spins before it were archived and are no longer kept; absent while none were',
    }),
  ),
});

export type SpinBody = Static<typeof SpinBody>;

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

export const StatementEntry = Type.Object({
  entryId: Type.String(),
  kind: Type.String({ description: 'Such as spin, opening, adjustment' }),
  createdAt: timestamp(),
  gameId: nullable(Type.Integer()),
  wagerUsd: usd('Taken from the player'),
  creditUsd: usd('Given to the player'),
  balanceUsd: usd('Balance after it'),
  requestId: nullable(Type.String()),
  spinId: nullable(Type.String({ description: 'Of a spin' })),
});

export const SpinBlock = Type.Object({
  fromIndex: Type.Integer(),
  toIndex: Type.Integer({ description: 'The index after its last' }),
  commitment: Type.String({ description: 'Written down before its first outcome was dealt' }),
  createdAt: timestamp(),
});

export const LedgerRecord = Type.Object({
  ...StatementEntry.properties,
  cell: Type.Integer(),
  previousEntryId: Type.String({ description: "The player's entry before" }),
  outcomeIndex: nullable(
    Type.Integer({ description: "Place in the game's sequence of outcomes; null: a forced spin has none" }),
  ),
  outcomeCode: Type.Integer({ description: "Number of the outcome in the game's mathematics" }),
});

export const OperatorSpin = Type.Object({
  partnerId: Type.Integer(),
  spin: SpinRecord,
  entry: LedgerRecord,
  block: nullable(SpinBlock),
});

export const showSpin = endpoint(
  {
    method: 'get',
    path: '/spins/{spinId}',
    params: { spinId: PATH.spinId },
    operationId: 'showSpin',
    tag: 'Spins',
    summary: "A spin of any partner's: its answer, its ledger entry, the block it was sealed in",
    scope: 'operator',
    status: 200,
    response: OperatorSpin,
    hasSums: true,
    errors: [ERRORS.notFound, ERRORS.unavailable],
    failure: ERRORS.internal,
  },
  {
    description:
      'Also shows the place of the outcome in its game, and the commitment to the block that had it: written down before the first outcome of the block was dealt.',
    response: {
      partnerId: 2,
      spin: getSpin.shown.response,
      entry: {
        ...STATEMENT_ENTRY,
        cell: 4,
        previousEntryId: '7412907446960128009',
        outcomeIndex: 0,
        outcomeCode: 1,
      },
      block: {
        fromIndex: 0,
        toIndex: 2048,
        commitment: 'c52d486e3cfaf7bd8c98764f22378544f585fed376706fccfe80cbb891459928',
        createdAt: '2026-11-22T04:13:57.210Z',
      },
    },
  },
);
