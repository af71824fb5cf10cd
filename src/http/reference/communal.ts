/** Descriptions and examples: communal progressives. */
import { ERRORS } from '../../domain/errors.js';
import type { References } from './operationReference.js';

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
  eventId: '9d8f0f6a2f1b4c7e8a5d3c2b1a0f9e8d',
  tierLevel: 1,
  tierName: 'Mini',
  totalAmountUsd: '5.00',
  winners: 3,
  status: 'PAID',
  createdAt: '2026-11-22T04:14:01.121Z',
};

/** What a spin tells the player whose spin fired the event. */
export const TOLD_BONUS = {
  triggered: true,
  tierName: 'Mini',
  tierLevel: 1,
  totalAmountUsd: '5.00',
  yourShareUsd: '2.00',
  isTriggerPlayer: true,
  eventId: EVENT.eventId,
};

export const COMMUNAL_REFERENCES: References = {
  setCommunal: {
    description:
      'Sets the rules as a whole. They are in force at once; the counter goes on unless `resetProgress` is true. The change is in the audit log.',
    request: RULES,
    response: IN_FORCE,
  },
  getCommunalPot: {
    description: 'Shows the rules with the exact counter, the budget that is left, and what was paid.',
    response: { ...IN_FORCE, progress: 4711, budgetUsd: '9980.00', paidUsd: '20.00' },
  },
  fundCommunal: {
    description: `Books an amount to the promotional budget. The same \`requestId\` books once, without end. A negative amount withdraws, at most what there is (${ERRORS.progressiveExhausted.code}).`,
    request: { amountUsd: '10000.00', reason: 'Spring promotion', requestId: 'funding-2026-11' },
    response: { fundingId: '1f2e3d4c5b6a79881726354453627180', budgetUsd: '10000.00' },
  },
  listCommunalPayouts: {
    description: 'Lists what fired, the newest first, with the share of each player.',
    response: {
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
      ...{ page: 1, limit: 20, total: 1 },
    },
  },
  getCommunal: {
    description: "Shows the rules to the game's partner. The counter is the operator's alone.",
    response: IN_FORCE,
  },
  getCommunalProgress: {
    description:
      'Shows how far the way to each tier is, rounded down to tens of a percent, so that nobody can time a spin by it. For a tier of fewer than 1,000 spins it is null.',
    response: {
      tiers: [
        { tierLevel: 1, tierName: 'Mini', amountUsd: '5.00', progressPct: 70 },
        { tierLevel: 2, tierName: 'Grand', amountUsd: '100.00', progressPct: 40 },
      ],
    },
  },
  listCommunalEvents: {
    description: 'Lists what fired, the newest first.',
    response: { events: [EVENT], page: 1, limit: 20, total: 1 },
  },
  listCommunityBonuses: {
    description:
      "Lists a player's shares, the newest first. `toldBySpinId` names the spin whose `communityBonus` told it.",
    response: {
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
      ...{ page: 1, limit: 20, total: 1 },
    },
  },
};
