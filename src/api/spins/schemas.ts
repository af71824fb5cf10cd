/** Spins: what is sent and answered, and what a player sees of an outcome. */
import { type Static, Type } from '#typebox';
import { choice, escapeFormulas, ID_MAX, id, nullable, opaque, timestamp, usd } from '../../domain/schema.js';
import { CommunityBonus } from '../communal/schemas.js';
import { NextOutcomeBody, SandboxMark } from './sandbox.schemas.js';

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

export const NextOutcomeResponse = Type.Object({
  ...NextOutcomeBody.properties,
  outcome: SpinOutcome,
  expiresAt: timestamp(),
});

/** Of an item of a history. */
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

/** The query of the ledger by time. */
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
