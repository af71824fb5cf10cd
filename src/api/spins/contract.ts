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
  SandboxMark,
  timestamp,
  usd,
} from '../../domain/schema.js';
import { CommunityBonus } from '../communal/contract.js';
import { endpointsOf } from '../contract/endpoint.js';
import { RAFFLE_SPIN, SLOT_HISTORY, SLOT_SPIN, STATEMENT_ENTRY, TOLD_BONUS } from '../contract/examples.js';
import { feedBounds, feedComplete, feedCursor, feedPaging } from '../contract/feedQuery.js';
import { SPIN_CSV_EXAMPLE } from '../contract/spinCsv.js';

const { partner, operator } = endpointsOf('Spins');

/** Sentence about the binding time of a requestId (setting IDEMPOTENCY_TTL_S). */
export const BINDING_TIME =
  'A repetition gets the original response for `requestIdBindsSeconds` of `GET /version`, three days by default.';

export const SPIN_BYTES_MAX = 4096;

export const SpinBody = Type.Object({
  gameId: id('The `gameConfigId` of the game'),
  playerId: opaque("The partner's own identifier of the player"),
  wagerUsd: usd("The game's fixed wager, in USD"),
  requestId: Type.Optional(
    opaque(`Idempotency key. ${BINDING_TIME} The id of a raffle ticket never expires.`),
  ),
});

export const CelebrationTier = choice(
  ['none', 'small', 'medium', 'large', 'jackpot'],
  'Intensity of the celebration of a win',
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
  comboString: Type.String({ description: 'Displays of the symbols, joined by |' }),
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
  description: 'Presentation of the outcome to the player. `type` identifies the kind of game.',
});

export const PlayerBalance = Type.Object({
  balanceUsd: usd(
    'Balance of the player in USD, after the wager, the payout and the share of a bonus that the spin triggered',
  ),
});

export const SpinOutcome = Type.Object({
  prizeTier: Type.Integer({ minimum: 0, maximum: 6, description: 'Tier of the prize; 0 if nothing was won' }),
  payoutUsd: usd('Payout of the spin, in USD. This is the authoritative financial result.'),
  isBonusTrigger: Type.Boolean(),
});

const spinMembers = {
  spinId: Type.String(),
  outcome: SpinOutcome,
  presentation: Presentation,
  balance: PlayerBalance,
  communityBonus: nullable(CommunityBonus),
  sandbox: SandboxMark,
  requestId: Type.Optional(Type.String({ description: 'The `requestId` of the request' })),
};

export const SpinResponse = Type.Object(spinMembers);

/** Last members of a spin in histories, and of its part in a recall. */
export const historyEnd = {
  outcomeIndex: nullable(
    Type.Integer({
      description: "Index in the game's sequence of outcomes; null if a tester chose the outcome",
    }),
  ),
};

const historyMembers = {
  ...spinMembers,
  createdAt: timestamp(),
  gameId: Type.Integer(),
  wagerUsd: usd('Wager of the spin, in USD'),
  balanceBeforeUsd: usd('Balance of the player before the spin, in USD'),
  balanceAfterUsd: usd(
    'Equal to `balance.balanceUsd`: balance before − wager + payout + share of a bonus that the spin triggered',
  ),
  ...historyEnd,
};

export const SpinRecord = Type.Object({ ...historyMembers, playerId: Type.String() });

export const PlayerSpin = Type.Object(historyMembers);

export const SpinFeedQuery = Type.Object({
  ...feedBounds('spins'),
  gameId: Type.Optional(
    Type.Integer({ minimum: 1, maximum: ID_MAX, description: 'Only spins of this game' }),
  ),
  playerId: Type.Optional(opaque('Only spins of this player')),
  ...feedPaging('spins', 'spinId'),
  escapeFormulas,
});

export const SpinFeed = Type.Object({
  spins: Type.Array(SpinRecord),
  ...feedCursor('spins'),
  ...feedComplete('spins'),
});

export type SpinBody = Static<typeof SpinBody>;

export const getSpin = partner.get('getSpin', '/spins/{spinId}', {
  summary: 'Get a spin with its original response',
  description:
    'Returns the original response to a spin, with its time, game, player, wager, the balances before and after, and its index in the sequence of its game.',
  response: SpinRecord,
  hasSums: true,
  example: { ...SLOT_HISTORY, playerId: 'alice' },
});

export const listSpins = partner.get('listSpins', '/spins', {
  summary: "List the account's spins by time, oldest first (CSV with `Accept: text/csv`)",
  description:
    'A page may have fewer spins than `limit`, even none, while `nextCursor` is not null. New spins never cause a spin to be skipped or repeated. To follow the ledger, send the `spinId` of the last spin as `cursor`. CSV has all spins of the range. After days were archived and dropped, `completeFrom` (in CSV the header `X-Complete-From`) is the time from which all spins are available.',
  query: SpinFeedQuery,
  response: SpinFeed,
  hasSums: true,
  example: {
    spins: [{ ...SLOT_HISTORY, playerId: 'alice' }],
    nextCursor: null,
  },
  csvExample: SPIN_CSV_EXAMPLE,
});

export const spin = partner.post('spin', '/spin', {
  summary: 'Spin a game once for a player',
  description: `Charges the wager, deals the next outcome of the game, credits the payout and responds, in one atomic step. Send a new \`requestId\` with each spin. If the result is not known, send the same request with the same \`requestId\`: its response has the same bytes and the header \`Idempotent-Replayed: true\`. [What to do after each response](/docs/requests#what-to-do-after-each-response) says after which responses the spin has happened. Change the \`requestId\` only if no attempt with it may have happened.`,
  window: 'spin',
  replays: true,
  bodyLimit: SPIN_BYTES_MAX,
  body: SpinBody,
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
  bodyExample: {
    gameId: 3,
    playerId: 'alice',
    wagerUsd: 0.25,
    requestId: '0197d2c4-9c1e-7a55-8f6e-3b1f0a2c4d5e',
  },
  examples: {
    slot: SLOT_SPIN,
    bonus: { ...SLOT_SPIN, balance: { balanceUsd: 1002.25 }, communityBonus: TOLD_BONUS },
    raffle: RAFFLE_SPIN,
    forced: { ...SLOT_SPIN, sandbox: { forced: true } },
  },
});

export const StatementEntry = Type.Object({
  entryId: Type.String(),
  kind: Type.String({ description: 'Kind of the entry, such as spin, opening or adjustment' }),
  createdAt: timestamp(),
  gameId: nullable(Type.Integer()),
  wagerUsd: usd('Amount taken from the player, in USD'),
  creditUsd: usd('Amount given to the player, in USD'),
  balanceUsd: usd('Balance of the player after the entry, in USD'),
  requestId: nullable(Type.String()),
  spinId: nullable(Type.String({ description: 'Id of the spin; null for other kinds of entries' })),
});

export const SpinBlock = Type.Object({
  fromIndex: Type.Integer(),
  toIndex: Type.Integer({ description: 'Index after the last outcome of the block' }),
  commitment: Type.String({
    description: 'Commitment to the block, recorded before its first outcome was dealt',
  }),
  createdAt: timestamp(),
});

export const LedgerRecord = Type.Object({
  ...StatementEntry.properties,
  cell: Type.Integer(),
  previousEntryId: Type.String({ description: "Id of the player's previous entry" }),
  outcomeIndex: nullable(
    Type.Integer({ description: "Index in the game's sequence of outcomes; null for a forced spin" }),
  ),
  outcomeCode: Type.Integer({ description: "Number of the outcome in the game's mathematics" }),
});

export const OperatorSpin = Type.Object({
  partnerId: Type.Integer(),
  spin: SpinRecord,
  entry: LedgerRecord,
  block: nullable(SpinBlock),
});

export const showSpin = operator.get('showSpin', '/spins/{spinId}', {
  summary: 'Get a spin of any partner with its response, ledger entry and block',
  description:
    'Returns the spin with the index of its outcome in the game, and the commitment to the block of the outcome. The commitment was recorded before the first outcome of the block was dealt.',
  response: OperatorSpin,
  hasSums: true,
  example: {
    partnerId: 2,
    spin: getSpin.example,
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
});
