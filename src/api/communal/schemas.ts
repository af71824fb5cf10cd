/** The communal progressive of a game: its rules, funding, progress, events and shares. */
import { type Static, Type } from '#typebox';
import { TIERS_MAX } from '../../domain/communal.js';
import {
  AUDIT_REASON,
  choice,
  nullable,
  opaque,
  pageMembers,
  REASON_PATTERN,
  timestamp,
} from '../../domain/schema.js';

/** Amounts here are texts: a pot is divided to the micro-dollar, and a reader should not go through a float for that. */
const usdText = (description: string) =>
  Type.String({ description: `${description}; USD as a decimal string such as "12.5", not a number` });
export const EmptyCommunity = choice(
  ['TO_TRIGGER', 'RETURN_TO_BUDGET'],
  "Who gets the community's part where nobody is in it",
);
export const OnShortBudget = choice(
  ['SKIP', 'PAY_REMAINING'],
  'What an event does that the budget cannot pay in full',
);
export const CommunalStatus = choice(
  ['ACTIVE', 'DISABLED', 'EXHAUSTED'],
  'EXHAUSTED: the budget is below the smallest tier',
);
export const CommunalEventStatus = choice(
  ['PAID', 'SKIPPED_BUDGET'],
  'SKIPPED_BUDGET: the budget could not pay it',
);

export const CommunalTier = Type.Object({
  tierLevel: Type.Integer({ minimum: 1, maximum: 10, description: '1 … n, in order' }),
  tierName: opaque('Shown to players'),
  triggerAtSpins: Type.Integer({
    minimum: 10,
    maximum: 1_000_000_000,
    description: 'Fires at each multiple; rises with the level, a multiple of `triggerInterval`',
  }),
  amountUsd: usdText('What an event pays: above 0, at most 1,000,000, with at most 6 decimals'),
});

const rules = {
  enabled: Type.Boolean({ description: 'Nothing is counted while it is false' }),
  triggerInterval: Type.Integer({ minimum: 10, maximum: 1_000_000, description: 'Spins' }),
  triggerSplitPct: Type.Number({ minimum: 0, maximum: 100, description: 'Part of the player who fires' }),
  communitySplitPct: Type.Number({ minimum: 0, maximum: 100, description: 'Part of the community' }),
  tiers: Type.Array(CommunalTier, { minItems: 1, maxItems: TIERS_MAX }),
};

export const CommunalBody = Type.Object({
  ...rules,
  windowMinutes: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_080, default: 60 })),
  communitySize: Type.Optional(Type.Integer({ minimum: 0, maximum: 200, default: 100 })),
  emptyCommunity: Type.Optional(EmptyCommunity),
  onShortBudget: Type.Optional(OnShortBudget),
  resetProgress: Type.Optional(Type.Boolean({ default: false, description: 'The counter begins anew' })),
  reason: Type.Optional(AUDIT_REASON),
});

const view = {
  ...rules,
  windowMinutes: Type.Integer(),
  communitySize: Type.Integer(),
  emptyCommunity: EmptyCommunity,
  onShortBudget: OnShortBudget,
  version: Type.Integer({ description: 'Of the rules: 1, 2, …' }),
  status: CommunalStatus,
  bonusRtp: Type.Number({ description: 'What the bonus returns per spin over the wager, as a fraction' }),
};

export const CommunalResponse = Type.Object(view);

export const OperatorCommunal = Type.Object({
  ...view,
  progress: Type.Integer({ description: 'Spins counted' }),
  budgetUsd: usdText('What is left'),
  paidUsd: usdText('Paid to players, as far as it is booked'),
});

export const CommunalFundingBody = Type.Object({
  amountUsd: usdText('Added to the budget; not 0, at most 6 decimals, negative to withdraw'),
  reason: Type.String({ pattern: REASON_PATTERN, description: 'Kept with the funding' }),
  requestId: opaque('Idempotency key; binds for ever'),
});

export const CommunalFundingResponse = Type.Object({
  fundingId: Type.String(),
  budgetUsd: usdText('After it'),
});

export const TierProgress = Type.Object({
  tierLevel: Type.Integer(),
  tierName: Type.String(),
  amountUsd: usdText('What it pays'),
  progressPct: nullable(
    Type.Integer({
      description:
        'The way to it, rounded down to tens; null for a tier of fewer than 1,000 spins, which could be timed by it',
    }),
  ),
});

export const CommunalProgress = Type.Object({ tiers: Type.Array(TierProgress) });

const event = {
  eventId: Type.String(),
  tierLevel: Type.Integer(),
  tierName: Type.String(),
  totalAmountUsd: usdText('Paid in all'),
  winners: Type.Integer({ description: 'Players who got a share, the one who fired included' }),
  status: CommunalEventStatus,
  createdAt: timestamp(),
};

export const CommunalEvent = Type.Object(event);
export const CommunalEvents = Type.Object({ events: Type.Array(CommunalEvent), ...pageMembers });

export const CommunalShare = Type.Object({ playerId: Type.String(), amountUsd: usdText('Share') });
export const OperatorCommunalEvent = Type.Object({ ...event, shares: Type.Array(CommunalShare) });
export const OperatorCommunalEvents = Type.Object({
  events: Type.Array(OperatorCommunalEvent),
  ...pageMembers,
});

export const PlayerBonus = Type.Object({
  eventId: Type.String(),
  gameId: Type.Integer(),
  tierLevel: Type.Integer(),
  tierName: Type.String(),
  amountUsd: usdText('Share of the player'),
  isTriggerPlayer: Type.Boolean(),
  createdAt: timestamp(),
  toldBySpinId: nullable(Type.String({ description: 'The spin whose response told it; null: none has' })),
});

export const CommunityBonuses = Type.Object({ bonuses: Type.Array(PlayerBonus), ...pageMembers });

export const CommunityBonus = Type.Object({
  triggered: Type.Literal(true),
  tierName: Type.String(),
  tierLevel: Type.Integer(),
  totalAmountUsd: usdText('Paid in all'),
  yourShareUsd: usdText("The player's share"),
  isTriggerPlayer: Type.Boolean({
    description: 'This spin fired it, and its balance has the share in it; otherwise it was credited before',
  }),
  eventId: Type.String(),
});

export type CommunalBody = Static<typeof CommunalBody>;
export type CommunalFundingBody = Static<typeof CommunalFundingBody>;
