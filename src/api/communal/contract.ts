/**
 * Schemas and operations of communal progressives: operations for operators, and operations for partners, who
 * show the results to their players.
 */
import { type Static, Type } from '#typebox';
import { CommunalBody, EmptyCommunity, OnShortBudget, ruleMembers } from '../../domain/communalRules.js';
import { ERRORS } from '../../domain/errors.js';
import {
  amountText,
  choice,
  nullable,
  opaque,
  Page,
  pageMembers,
  REASON_PATTERN,
  timestamp,
  usd,
} from '../../domain/schema.js';
import { endpointsOf } from '../contract/endpoint.js';
import { TOLD_BONUS } from '../contract/examples.js';

const { partner, operator } = endpointsOf('Communal progressive');

export const CommunalStatus = choice(
  ['ACTIVE', 'DISABLED', 'EXHAUSTED'],
  '`EXHAUSTED`: the budget is less than the amount of the smallest tier',
);

export const CommunalEventStatus = choice(
  ['PAID', 'SKIPPED_BUDGET'],
  '`SKIPPED_BUDGET`: the event paid nothing because the budget was too small',
);

const view = {
  ...ruleMembers,
  windowMinutes: Type.Integer(),
  communitySize: Type.Integer(),
  emptyCommunity: EmptyCommunity,
  onShortBudget: OnShortBudget,
  version: Type.Integer({ description: 'Version of the rules: 1, 2, …' }),
  status: CommunalStatus,
  bonusRtp: Type.Number({
    description: 'Mean return of the bonus for each spin, as a fraction of the wager',
  }),
};

export const CommunalResponse = Type.Object(view);

export const OperatorCommunal = Type.Object({
  ...view,
  progress: Type.Integer({ description: 'Number of spins that the progressive has counted' }),
  budgetUsd: amountText('Remaining budget'),
  paidUsd: amountText('Sum of the committed payments to players'),
});

export const CommunalFundingBody = Type.Object({
  amountUsd: amountText('Amount to add to the budget: not 0, at most 6 decimals, negative to withdraw'),
  reason: Type.String({ pattern: REASON_PATTERN, description: 'Reason for the funding, stored with it' }),
  requestId: opaque('Idempotency key. It never expires.'),
});

export const CommunalFundingResponse = Type.Object({
  fundingId: Type.String(),
  budgetUsd: amountText('Budget after the funding'),
});

export const TierProgress = Type.Object({
  tierLevel: Type.Integer(),
  tierName: Type.String(),
  amountUsd: amountText('Amount that the tier pays'),
  progressPct: nullable(
    Type.Integer({
      description:
        'Progress to the tier in percent, rounded down to a multiple of 10; null for a tier of fewer than 1,000 spins, because players could time their spins by it',
    }),
  ),
});

export const CommunalProgress = Type.Object({ tiers: Type.Array(TierProgress) });

const event = {
  eventId: Type.String(),
  tierLevel: Type.Integer(),
  tierName: Type.String(),
  totalAmountUsd: amountText('Total amount paid by the event'),
  winners: Type.Integer({
    description: 'Number of players with a share, including the player who triggered the event',
  }),
  status: CommunalEventStatus,
  createdAt: timestamp(),
};

export const CommunalEvent = Type.Object(event);
export const CommunalEvents = Type.Object({ events: Type.Array(CommunalEvent), ...pageMembers });

export const CommunalShare = Type.Object({
  playerId: Type.String(),
  amountUsd: amountText('Share of the player'),
});
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
  amountUsd: amountText('Share of the player'),
  isTriggerPlayer: Type.Boolean(),
  createdAt: timestamp(),
  toldBySpinId: nullable(
    Type.String({
      description: 'Spin whose response notified the player of the share; null if no response has',
    }),
  ),
});

export const CommunityBonuses = Type.Object({ bonuses: Type.Array(PlayerBonus), ...pageMembers });

export const CommunityBonus = Type.Object({
  triggered: Type.Literal(true),
  tierName: Type.String(),
  tierLevel: Type.Integer(),
  totalAmountUsd: amountText('Total amount paid by the event'),
  yourShareUsd: amountText('Share of the player'),
  isTriggerPlayer: Type.Boolean({
    description:
      'True if this spin triggered the bonus, so that its balance includes the share. False if the share was credited earlier.',
  }),
  eventId: Type.String(),
});

export type CommunalFundingBody = Static<typeof CommunalFundingBody>;

const RULES = {
  enabled: true,
  triggerInterval: 100,
  triggerSplitPct: 40,
  communitySplitPct: 60,
  tiers: [
    { tierLevel: 1, tierName: 'Mini', triggerAtSpins: 1000, amountUsd: '5.00' },
    { tierLevel: 2, tierName: 'Grand', triggerAtSpins: 10_000, amountUsd: '100.00' },
  ],
  windowMinutes: 60,
  communitySize: 100,
  emptyCommunity: 'TO_TRIGGER',
  onShortBudget: 'SKIP',
};

const IN_FORCE = { ...RULES, version: 1, status: 'ACTIVE', bonusRtp: 0.058 };

const EVENT = {
  eventId: TOLD_BONUS.eventId,
  tierLevel: 1,
  tierName: 'Mini',
  totalAmountUsd: '5.00',
  winners: 3,
  status: 'PAID',
  createdAt: '2026-11-22T04:14:01.121Z',
};

export const getCommunal = partner.get('getCommunal', '/games/{id}/communal', {
  summary: 'Get the rules of a communal progressive',
  description: 'Returns the rules to the partner of the game. Only operators can read the exact counter.',
  response: CommunalResponse,
  errors: [ERRORS.progressiveNotConfigured],
  example: IN_FORCE,
});

export const getCommunalProgress = partner.get('getCommunalProgress', '/games/{id}/communal/progress', {
  summary: 'Get the progress to each tier of a communal progressive',
  description:
    'Returns the progress to each tier, rounded down to a multiple of 10 percent so that nobody can time a spin by it. The progress is null for a tier of fewer than 1,000 spins.',
  response: CommunalProgress,
  errors: [ERRORS.progressiveNotConfigured, ERRORS.progressiveDisabled, ERRORS.progressiveExhausted],
  example: {
    tiers: [
      { tierLevel: 1, tierName: 'Mini', amountUsd: '5.00', progressPct: 70 },
      { tierLevel: 2, tierName: 'Grand', amountUsd: '100.00', progressPct: 40 },
    ],
  },
});

export const listCommunalEvents = partner.get('listCommunalEvents', '/games/{id}/communal/events', {
  summary: 'List the events of a communal progressive, newest first',
  description: 'Lists each event with its tier, its total amount and the number of winners, newest first.',
  query: Page,
  response: CommunalEvents,
  errors: [ERRORS.progressiveNotConfigured],
  example: { events: [EVENT], page: 1, limit: 20, total: 1 },
});

export const listCommunityBonuses = partner.get(
  'listCommunityBonuses',
  '/players/{playerId}/community-bonuses',
  {
    summary: "List a player's shares of communal progressives, newest first",
    description:
      "Lists a player's shares, newest first. `toldBySpinId` is the spin whose `communityBonus` notified the player of the share.",
    query: Page,
    response: CommunityBonuses,
    errors: [ERRORS.playerNotFound],
    failure: ERRORS.playerResolutionFailed,
    example: {
      bonuses: [
        {
          eventId: EVENT.eventId,
          gameId: 3,
          tierLevel: 1,
          tierName: 'Mini',
          amountUsd: '1.50',
          isTriggerPlayer: false,
          createdAt: '2026-11-22T04:14:01.121Z',
          toldBySpinId: null,
        },
      ],
      page: 1,
      limit: 20,
      total: 1,
    },
  },
);

export const setCommunal = operator.put('setCommunal', '/games/{id}/communal', {
  summary: "Set the rules of a slot game's communal progressive",
  description:
    'Replaces all rules of the progressive. The new rules take effect at once. The counter keeps its value unless `resetProgress` is true. The audit log records the change.',
  body: CommunalBody,
  ownCheck: true,
  response: CommunalResponse,
  errors: [
    ERRORS.gameTypeUnsupported,
    ERRORS.fieldMissing,
    ERRORS.progressiveSplit,
    ERRORS.progressiveInterval,
  ],
  failure: ERRORS.progressiveFailed,
  bodyExample: RULES,
  example: IN_FORCE,
});

export const getCommunalPot = operator.get('getCommunalPot', '/games/{id}/communal', {
  summary: 'Get the rules, the exact progress and the budget of a communal progressive',
  description: 'Returns the rules with the exact counter, the remaining budget and the amount paid.',
  response: OperatorCommunal,
  errors: [ERRORS.progressiveNotConfigured],
  example: { ...IN_FORCE, progress: 4711, budgetUsd: '9980.00', paidUsd: '20.00' },
});

export const fundCommunal = operator.post('fundCommunal', '/games/{id}/communal/funding', {
  summary: 'Add to the budget of a communal progressive, or withdraw from it',
  description: `Adds an amount to the promotional budget. Each \`requestId\` takes effect once and never expires. A negative amount withdraws at most the remaining budget; a larger withdrawal is refused with ${ERRORS.progressiveExhausted.code}.`,
  body: CommunalFundingBody,
  ownCheck: true,
  response: CommunalFundingResponse,
  errors: [
    ERRORS.fieldMissing,
    ERRORS.progressiveNotConfigured,
    ERRORS.progressiveExhausted,
    ERRORS.requestIdReused,
  ],
  failure: ERRORS.progressiveFailed,
  bodyExample: { amountUsd: '10000.00', reason: 'Spring promotion', requestId: 'funding-2026-11' },
  example: { fundingId: '1f2e3d4c5b6a79881726354453627180', budgetUsd: '10000.00' },
});

export const listCommunalPayouts = operator.get('listCommunalPayouts', '/games/{id}/communal/events', {
  summary: 'List the events of a communal progressive with all shares, newest first',
  description: 'Lists each event with the share of each player, newest first.',
  query: Page,
  response: OperatorCommunalEvents,
  errors: [ERRORS.progressiveNotConfigured],
  example: {
    events: [
      {
        ...EVENT,
        shares: [
          { playerId: 'alice', amountUsd: '2.00' },
          { playerId: 'bob', amountUsd: '1.50' },
          { playerId: 'carol', amountUsd: '1.50' },
        ],
      },
    ],
    page: 1,
    limit: 20,
    total: 1,
  },
});

export const ListedProgressive = Type.Object({
  gameConfigId: Type.Integer(),
  partnerId: Type.Integer(),
  displayName: Type.String(),
  isEnabled: Type.Boolean(),
  status: CommunalStatus,
  budgetUsd: usd('Remaining budget according to Postgres, in USD'),
  paidUsd: usd('Sum of the committed payments to players, in USD'),
});

export const Progressives = Type.Object({
  progressives: Type.Array(ListedProgressive, { description: 'The newest 200' }),
});

export const listProgressives = operator.get('listProgressives', '/progressives', {
  summary: 'List the games with a communal progressive',
  description:
    'Lists the newest 200 games with their values in Postgres. `getCommunalPot` returns the current values of one game.',
  response: Progressives,
  hasSums: true,
  example: {
    progressives: [
      {
        gameConfigId: 3,
        partnerId: 2,
        displayName: 'Acme Sevens',
        isEnabled: true,
        status: 'ACTIVE',
        budgetUsd: 940.5,
        paidUsd: 59.5,
      },
    ],
  },
});
