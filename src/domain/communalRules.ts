/** Validates the rules of a communal progressive that an operator sends, and reports all their faults. */

import { type Static, Type } from '#typebox';
import { type CommunalRules, SPLIT_WHOLE, TIER_AMOUNT_MAX_MICROS, TIERS_MAX } from './communal.js';
import { ApiError, ERRORS, type Fault } from './errors.js';
import { jsonUsd } from './exactJson.js';
import { decimalTextToMicros, microsToUsdText } from './money.js';
import { AUDIT_REASON, amountText, choice, opaque } from './schema.js';

const DECIMAL = /^\d{1,16}(\.\d{1,6})?$/;

/** Formats an amount for the communal endpoints, with two to six decimals. */
export function communalUsdText(micros: number | bigint): string {
  const text = String(jsonUsd(BigInt(micros)));
  const decimals = text.includes('.') ? text.length - text.indexOf('.') - 1 : 0;
  if (decimals >= 2) return text;
  return decimals === 1 ? `${text}0` : `${text}.00`;
}

/**
 * Converts a decimal text such as `-12.5` to micro-USD. Undefined if it is not a decimal or has more than 6
 * decimals.
 */
export function micros(text: string): number | undefined {
  const magnitude = text.startsWith('-') ? text.slice(1) : text;
  if (!DECIMAL.test(magnitude)) return undefined;
  const amount = decimalTextToMicros(magnitude.replace(/^0+(?=\d)/, ''));
  return amount === undefined ? undefined : text.startsWith('-') ? 0 - amount : amount;
}

/** Converts a percentage to hundredths of a percent. Undefined if it has more than 2 decimals. */
function hundredths(pct: number): number | undefined {
  const scaled = Math.round(pct * 100);
  return scaled / 100 === pct ? scaled : undefined;
}

/**
 * @param body body that matches the schema
 * @throws ApiError KS-4101 (with all faults), then KS-4604, then KS-4605.
 */
export function readRules(body: CommunalBody): CommunalRules {
  const faults: Fault[] = [];
  const split = {
    triggerSplitPct: hundredths(body.triggerSplitPct),
    communitySplitPct: hundredths(body.communitySplitPct),
  };
  for (const [name, value] of Object.entries(split)) {
    if (value === undefined) faults.push({ path: `/${name}`, message: 'must have at most 2 decimals' });
  }
  const tiers = body.tiers.map((tier, i) => {
    const path = `/tiers/${i}`;
    if (tier.tierLevel !== i + 1) faults.push({ path: `${path}/tierLevel`, message: `must be ${i + 1}` });
    const before = body.tiers[i - 1];
    if (before !== undefined && tier.triggerAtSpins <= before.triggerAtSpins) {
      faults.push({
        path: `${path}/triggerAtSpins`,
        message: `must be above ${before.triggerAtSpins}, the value of the previous tier`,
      });
    }
    const amountMicros = micros(tier.amountUsd) ?? -1;
    if (amountMicros <= 0 || amountMicros > TIER_AMOUNT_MAX_MICROS) {
      const most = microsToUsdText(TIER_AMOUNT_MAX_MICROS);
      const message = `must be a decimal string above 0, at most ${most}, with at most 6 decimals`;
      faults.push({ path: `${path}/amountUsd`, message });
    }
    const { tierLevel, tierName, triggerAtSpins } = tier;
    return { tierLevel, tierName, triggerAtSpins, amountMicros };
  });
  if (faults.length > 0) throw new ApiError(ERRORS.validationFailed, { details: faults });
  const triggerSplit = split.triggerSplitPct!;
  if (triggerSplit + split.communitySplitPct! !== SPLIT_WHOLE) {
    const message = 'triggerSplitPct and communitySplitPct must sum to 100';
    throw new ApiError(ERRORS.progressiveSplit, { details: [{ path: '/triggerSplitPct', message }] });
  }
  const { triggerInterval } = body;
  const uneven = tiers.flatMap(({ triggerAtSpins }, i): Fault[] =>
    triggerAtSpins % triggerInterval === 0
      ? []
      : [{ path: `/tiers/${i}/triggerAtSpins`, message: `must be a multiple of ${triggerInterval}` }],
  );
  if (uneven.length > 0) throw new ApiError(ERRORS.progressiveInterval, { details: uneven });
  return {
    enabled: body.enabled,
    triggerInterval,
    triggerSplit,
    tiers,
    windowMinutes: body.windowMinutes ?? 60,
    communitySize: body.communitySize ?? 100,
    emptyCommunity: body.emptyCommunity ?? 'TO_TRIGGER',
    onShortBudget: body.onShortBudget ?? 'SKIP',
  };
}

export const rulesView = (ruleMembers: CommunalRules) => ({
  enabled: ruleMembers.enabled,
  triggerInterval: ruleMembers.triggerInterval,
  triggerSplitPct: ruleMembers.triggerSplit / 100,
  communitySplitPct: (SPLIT_WHOLE - ruleMembers.triggerSplit) / 100,
  tiers: ruleMembers.tiers.map(({ tierLevel, tierName, triggerAtSpins, amountMicros }) => ({
    tierLevel,
    tierName,
    triggerAtSpins,
    amountUsd: communalUsdText(amountMicros),
  })),
  windowMinutes: ruleMembers.windowMinutes,
  communitySize: ruleMembers.communitySize,
  emptyCommunity: ruleMembers.emptyCommunity,
  onShortBudget: ruleMembers.onShortBudget,
});

export const EmptyCommunity = choice(
  ['TO_TRIGGER', 'RETURN_TO_BUDGET'],
  'Recipient of the share of the community if the community is empty',
);

export const OnShortBudget = choice(
  ['SKIP', 'PAY_REMAINING'],
  'Effect of a budget that is too small for an event. `SKIP`: nothing is paid; `PAY_REMAINING`: the remaining budget is paid',
);

export const CommunalTier = Type.Object({
  tierLevel: Type.Integer({
    minimum: 1,
    maximum: 10,
    description: 'Level of the tier. The tiers have the levels 1 to n, in order',
  }),
  tierName: opaque('Name of the tier, shown to players'),
  triggerAtSpins: Type.Integer({
    minimum: 10,
    maximum: 1000000000,
    description:
      'The tier fires at each multiple of this number of spins. It must be a multiple of `triggerInterval` and increase with the level',
  }),
  amountUsd: amountText(
    'Payout of an event of this tier: above 0, at most 1,000,000, with at most 6 decimals',
  ),
});

export const ruleMembers = {
  enabled: Type.Boolean({
    description: 'Whether the progressive runs. While it is false, no spins are counted',
  }),
  triggerInterval: Type.Integer({
    minimum: 10,
    maximum: 1000000,
    description: 'Number of spins of which `triggerAtSpins` must be a multiple',
  }),
  triggerSplitPct: Type.Number({
    minimum: 0,
    maximum: 100,
    description: 'Share of the player whose spin triggers the event, in percent',
  }),
  communitySplitPct: Type.Number({
    minimum: 0,
    maximum: 100,
    description: 'Share of the community, in percent',
  }),
  tiers: Type.Array(CommunalTier, { minItems: 1, maxItems: TIERS_MAX }),
};

export const CommunalBody = Type.Object({
  ...ruleMembers,
  windowMinutes: Type.Optional(Type.Integer({ minimum: 1, maximum: 10080, default: 60 })),
  communitySize: Type.Optional(Type.Integer({ minimum: 0, maximum: 200, default: 100 })),
  emptyCommunity: Type.Optional(EmptyCommunity),
  onShortBudget: Type.Optional(OnShortBudget),
  resetProgress: Type.Optional(
    Type.Boolean({ default: false, description: 'Whether to reset the counter to 0' }),
  ),
  reason: Type.Optional(AUDIT_REASON),
});

export type CommunalBody = Static<typeof CommunalBody>;
