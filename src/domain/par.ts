/**
 * The PAR sheet: the definition of a slot game's mathematics, as a partner uploads it (docs/contract.md §6).
 *
 * `checkParSheet` lists all faults of an upload, not only the first. Schema and rules (parRules.ts) are
 * checked independently: a rule is applied if the parts that it uses have the right types. So a title of the
 * wrong type does not hide a wrong sum.
 */

import { type Static, Type } from '#typebox';
import { Compile } from '#typebox/compile';
import type { Fault } from './errors.js';
import { usdToMicros } from './money.js';
import { readDraft } from './parDraft.js';
import { PAR_RULES, type ReportFault } from './parRules.js';
import { FAULTS_MAX, schemaFaults } from './validation.js';

const MAX_REELS = 10;
const MAX_TIER_ID = 6;
/** Maximum number of virtual stops of a reel. Reels of real games have 22 to a few thousand. */
const MAX_VIRTUAL_STOPS = 1_000_000;
const MAX_SYMBOLS = 1_000;
/** The index of a combination is a 16-bit code, and 0xFFFF is reserved. */
export const MAX_COMBINATIONS = 65_535;
const MAX_TEXT_LENGTH = 200;

const MAX_COMBO_STRING_LENGTH = MAX_REELS * (MAX_TEXT_LENGTH + 1);

// Texts without control characters and lone surrogates, because they must survive every store and every
// encoding.
const PLAIN_TEXT = '^[^\\p{Cc}\\p{Cs}]*$';
const PATTERN_MESSAGES = { [PLAIN_TEXT]: 'must not contain control characters or lone surrogates' };

const text = (description: string, minLength = 0, maxLength = MAX_TEXT_LENGTH) =>
  Type.String({ description, minLength, maxLength, pattern: PLAIN_TEXT });

const probability = (description: string) => Type.Number({ description, minimum: 0, maximum: 1 });

const payMultiplier = (description: string) => Type.Number({ description, minimum: 0 });

const tierId = (description: string) => Type.Integer({ description, minimum: 0, maximum: MAX_TIER_ID });

export const ParSymbolBody = Type.Object({
  name: text('Symbol name, unique in the sheet', 1),
  display: text('Display text'),
});

export const ParTierBody = Type.Object({
  tierId: tierId('0 = no win, 1 to 6 = winning tiers; unique in the sheet'),
  name: text('Tier name'),
  probability: probability("Sum of the comboProbability of the tier's combinations"),
  payMultiplier: payMultiplier(
    'Nominal pay multiplier of the tier; 0 for tier 0, otherwise among the multipliers of its combinations. A spin pays that of its combination',
  ),
});

export const ParCombinationBody = Type.Object({
  reelSymbols: Type.Array(Type.String(), { description: 'Symbol names, one for each reel' }),
  comboString: text(
    'Display texts of the symbols, joined with the pipe character',
    0,
    MAX_COMBO_STRING_LENGTH,
  ),
  payMultiplier: payMultiplier(
    'Payout as a multiple of the denomination; the payout must not exceed 10,000,000 USD. 0 in tier 0, above 0 in every other tier',
  ),
  comboProbability: probability('Probability of the combination'),
  tierId: tierId('Tier of the combination, one of tiers'),
  displayWeight: Type.Number({
    description:
      'Relative frequency with which this combination is displayed among the combinations of the same tier and pay multiplier. It never affects payouts. If all weights are 0, the probabilities are used instead',
    minimum: 0,
  }),
});

/** Body of a PAR sheet upload. Members that are not listed here are ignored. */
export const ParSheetBody = Type.Object({
  gameTitle: text('Game title', 1),
  manufacturer: text('Manufacturer name'),
  numReels: Type.Integer({ description: 'Number of reels', minimum: 1, maximum: MAX_REELS }),
  virtualStopsPerReel: Type.Array(Type.Integer({ minimum: 1, maximum: MAX_VIRTUAL_STOPS }), {
    description: 'Number of stops of each virtual reel; at least the number of symbols on that reel',
  }),
  certifiedRtp: Type.Number({
    description: 'Return to player as a fraction: 0.925 means 92.5 %',
    minimum: 0,
  }),
  denominationUsd: Type.Number({
    description:
      'Fixed wager of every game built on this sheet, in USD; at most 10,000, with at most 6 decimals',
    exclusiveMinimum: 0,
  }),
  symbols: Type.Array(ParSymbolBody, { minItems: 1, maxItems: MAX_SYMBOLS }),
  tiers: Type.Array(ParTierBody, { minItems: 1, maxItems: MAX_TIER_ID + 1 }),
  combinations: Type.Array(ParCombinationBody, { minItems: 1, maxItems: MAX_COMBINATIONS }),
});

export type ParCombination = Readonly<Static<typeof ParCombinationBody>>;

/** A sheet that has passed every check. It is plain data that survives JSON and the structured clone. */
export interface ParSheet extends Readonly<Static<typeof ParSheetBody>> {
  /** `denominationUsd` in whole micro-USD, the wager of every spin. */
  readonly denominationMicros: number;
}

const validator = Compile(ParSheetBody);

/** Checks an upload against the schema and all rules. `body` may be anything that JSON.parse returns. */
export function checkParSheet(body: unknown): { sheet: ParSheet } | { faults: Fault[] } {
  const faults = schemaFaults(validator, withShortReels(body), PATTERN_MESSAGES)?.faults ?? [];
  const faultyPaths = new Set(faults.map((fault) => fault.path));
  const draft = readDraft(body);
  const report: ReportFault = (path, message) => {
    // If the schema and a rule both find that a member has a wrong type or range, the fault is reported only
    // once.
    if (!faultyPaths.has(path)) faults.push({ path, message });
  };
  for (const rule of PAR_RULES) rule(draft, report);
  if (faults.length > 0) return { faults: boundFaults(faults) };
  return { sheet: sheetOf(body as Static<typeof ParSheetBody>) };
}

/**
 * Returns the upload with each list of reels cut to one reel more than the maximum. typebox examines all
 * items of a list: 5,000 stop counts took it 9 ms. The rules still get the complete list and report that it
 * is too long.
 */
function withShortReels(body: unknown): unknown {
  if (typeof body !== 'object' || body === null) return body;
  const { virtualStopsPerReel, combinations } = body as Record<string, unknown>;
  const short = (list: unknown): unknown => (isTooLong(list) ? list.slice(0, MAX_REELS + 1) : list);
  const hasShort = (item: unknown): boolean => !isTooLong((item as DraftReels | null)?.reelSymbols);
  if (!isTooLong(virtualStopsPerReel) && (!Array.isArray(combinations) || combinations.every(hasShort)))
    return body;
  return {
    ...body,
    ...(Array.isArray(virtualStopsPerReel) ? { virtualStopsPerReel: short(virtualStopsPerReel) } : {}),
    ...(Array.isArray(combinations)
      ? {
          combinations: combinations.map((item) =>
            hasShort(item) ? item : { ...item, reelSymbols: short(item.reelSymbols) },
          ),
        }
      : {}),
  };
}

interface DraftReels {
  readonly reelSymbols?: unknown;
}

const isTooLong = (list: unknown): list is unknown[] => Array.isArray(list) && list.length > MAX_REELS;

function boundFaults(faults: Fault[]): Fault[] {
  // The schema check stops at its maximum number of faults, so the total number of faults is unknown.
  if (faults.length < FAULTS_MAX) return faults;
  return [...faults.slice(0, FAULTS_MAX - 1), { path: '', message: 'has more faults' }];
}

function sheetOf(body: Static<typeof ParSheetBody>): ParSheet {
  return {
    gameTitle: body.gameTitle,
    manufacturer: body.manufacturer,
    numReels: body.numReels,
    virtualStopsPerReel: [...body.virtualStopsPerReel],
    certifiedRtp: unsignedZero(body.certifiedRtp),
    denominationUsd: body.denominationUsd,
    denominationMicros: usdToMicros(body.denominationUsd)!,
    symbols: body.symbols.map((symbol) => ({ name: symbol.name, display: symbol.display })),
    tiers: body.tiers.map((tier) => ({
      tierId: unsignedZero(tier.tierId),
      name: tier.name,
      probability: unsignedZero(tier.probability),
      payMultiplier: unsignedZero(tier.payMultiplier),
    })),
    combinations: body.combinations.map((combination) => ({
      reelSymbols: [...combination.reelSymbols],
      comboString: combination.comboString,
      payMultiplier: unsignedZero(combination.payMultiplier),
      comboProbability: unsignedZero(combination.comboProbability),
      tierId: unsignedZero(combination.tierId),
      displayWeight: unsignedZero(combination.displayWeight),
    })),
  };
}

// Replaces −0, which JSON can express but the stores do not preserve.
function unsignedZero(value: number): number {
  return value === 0 ? 0 : value;
}
