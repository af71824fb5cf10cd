/**
 * The PAR sheet: the definition of a slot game's mathematics, as a partner uploads it (docs/contract.md §6).
 *
 * `checkParSheet` lists everything that is wrong with an upload, not only the first thing. The schema's faults and the
 * rules' faults are found apart: a rule is tried wherever the parts it speaks of have the right types, so that a
 * mistyped title doesn't hide a wrong sum. Sums are exact decimal sums; only the comparison has a tolerance.
 */

import { type Static, Type } from '#typebox';
import { Compile } from '#typebox/compile';
import {
  type Decimal,
  decimalOf,
  decimalToNumber,
  isWithin,
  multiplyDecimals,
  sumDecimals,
} from './decimal.js';
import type { Fault } from './errors.js';
import { payoutMicros, usdToMicros } from './money.js';
import { schemaFaults } from './validation.js';

export const MAX_REELS = 10;
export const MAX_TIER_ID = 6;
/** A position is one of this many; reels of real games have 22 to a few thousand. */
export const MAX_VIRTUAL_STOPS = 1_000_000;
export const MAX_SYMBOLS = 1_000;
/** A combination's index is a 16-bit code, and 0xFFFF is none of them. */
export const MAX_COMBINATIONS = 65_535;
/** The largest denomination and the largest payout: a thousand million USD. */
export const MAX_PAYOUT_MICROS = 1_000_000_000_000_000;
export const MAX_TEXT_LENGTH = 200;
/** Faults listed; a line after them says how many more there are. */
export const MAX_FAULTS = 100;

const MAX_COMBO_STRING_LENGTH = MAX_REELS * (MAX_TEXT_LENGTH + 1);
const TOLERANCE: Decimal = { digits: 1n, exponent: -6 };
const ONE: Decimal = { digits: 1n, exponent: 0 };

// Neither control characters nor lone surrogates: the text has to survive every store and every encoding.
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
    "The tier's nominal multiple of the denomination; 0 for tier 0. What is paid is the combination's",
  ),
});

export const ParCombinationBody = Type.Object({
  reelSymbols: Type.Array(Type.String(), { description: 'Symbol names, one for each reel' }),
  comboString: text('The symbol displays joined with the pipe character', 0, MAX_COMBO_STRING_LENGTH),
  payMultiplier: payMultiplier('Multiple of the denomination that is paid; 0 in tier 0'),
  comboProbability: probability('Probability of the combination'),
  tierId: tierId('The tier, one of tiers'),
  displayWeight: Type.Number({
    description:
      'Weight with which this combination is shown among those of the same tier and pay multiplier. It never changes what is paid. Where all weights are 0 the probabilities serve',
    minimum: 0,
  }),
});

/** The body of a PAR sheet upload. Fields that aren't named here are ignored. */
export const ParSheetBody = Type.Object({
  gameTitle: text('Game title', 1),
  manufacturer: text('Manufacturer name'),
  numReels: Type.Integer({ description: 'Number of reels', minimum: 1, maximum: MAX_REELS }),
  virtualStopsPerReel: Type.Array(Type.Integer({ minimum: 1, maximum: MAX_VIRTUAL_STOPS }), {
    description: 'Stops of each virtual reel; as many as the reel has symbols at least',
  }),
  certifiedRtp: Type.Number({
    description: 'Return to player as a fraction: 0.925 means 92.5 %',
    minimum: 0,
  }),
  denominationUsd: Type.Number({
    description: 'The fixed wager of every game built on this sheet, in USD; at most 6 decimals',
    exclusiveMinimum: 0,
  }),
  symbols: Type.Array(ParSymbolBody, { minItems: 1, maxItems: MAX_SYMBOLS }),
  tiers: Type.Array(ParTierBody, { minItems: 1, maxItems: MAX_TIER_ID + 1 }),
  combinations: Type.Array(ParCombinationBody, { minItems: 1, maxItems: MAX_COMBINATIONS }),
});

export type ParSymbol = Readonly<Static<typeof ParSymbolBody>>;
export type ParTier = Readonly<Static<typeof ParTierBody>>;
export interface ParCombination extends Readonly<Omit<Static<typeof ParCombinationBody>, 'reelSymbols'>> {
  readonly reelSymbols: readonly string[];
}

/** A sheet that passed every check. Plain data: it survives JSON and the structured clone. */
export interface ParSheet {
  readonly gameTitle: string;
  readonly manufacturer: string;
  readonly numReels: number;
  readonly virtualStopsPerReel: readonly number[];
  readonly certifiedRtp: number;
  readonly denominationUsd: number;
  /** `denominationUsd` in whole micro-USD: the wager of every spin. */
  readonly denominationMicros: number;
  readonly symbols: readonly ParSymbol[];
  readonly tiers: readonly ParTier[];
  readonly combinations: readonly ParCombination[];
}

const validator = Compile(ParSheetBody);

/** Checks an upload against the schema and every rule. `body` may be anything that JSON.parse gives. */
export function checkParSheet(body: unknown): { sheet: ParSheet } | { faults: Fault[] } {
  const faults = schemaFaults(validator, body, PATTERN_MESSAGES)?.faults ?? [];
  const faultyPaths = new Set(faults.map((fault) => fault.path));
  const draft = readDraft(body);
  const report: Report = (path, message) => {
    // What has the wrong type or range is said once.
    if (!faultyPaths.has(path)) faults.push({ path, message });
  };
  for (const rule of RULES) rule(draft, report);
  if (faults.length > 0) return { faults: boundFaults(faults) };
  return { sheet: sheetOf(body as Static<typeof ParSheetBody>) };
}

function boundFaults(faults: Fault[]): Fault[] {
  if (faults.length <= MAX_FAULTS) return faults;
  const more = faults.length - MAX_FAULTS;
  return [...faults.slice(0, MAX_FAULTS), { path: '', message: `and ${more} more` }];
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

// JSON has a -0, and it doesn't survive being stored.
function unsignedZero(value: number): number {
  return value === 0 ? 0 : value;
}

// The rules ---------------------------------------------------------------------------------------------------------

/** The body with everything of a wrong type left out: what the rules are tried on. */
interface Draft {
  readonly numReels: number | undefined;
  readonly stops: readonly (number | undefined)[] | undefined;
  readonly certifiedRtp: number | undefined;
  readonly denominationUsd: number | undefined;
  readonly symbols: readonly { name: string | undefined; display: string | undefined }[] | undefined;
  readonly tiers:
    | readonly {
        tierId: number | undefined;
        probability: number | undefined;
        payMultiplier: number | undefined;
      }[]
    | undefined;
  readonly combinations: readonly DraftCombination[] | undefined;
}

interface DraftCombination {
  readonly reelSymbols: readonly (string | undefined)[] | undefined;
  readonly comboString: string | undefined;
  readonly payMultiplier: number | undefined;
  readonly comboProbability: number | undefined;
  readonly tierId: number | undefined;
}

type Report = (path: string, message: string) => void;
type Rule = (draft: Draft, report: Report) => void;

const RULES: readonly Rule[] = [
  checkReelLengths,
  checkStops,
  checkDenomination,
  checkSymbols,
  checkTiers,
  checkTierSum,
  checkCombinationSymbols,
  checkCombinationTiers,
  checkPayouts,
  checkTierProbabilities,
  checkRtp,
];

/** Rule 6: as many stop counts, and as many symbols in every combination, as reels. */
function checkReelLengths(draft: Draft, report: Report): void {
  const { numReels, stops, combinations } = draft;
  if (numReels === undefined) return;
  if (stops !== undefined && stops.length !== numReels) {
    report('/virtualStopsPerReel', `has ${stops.length} items, but numReels is ${numReels}`);
  }
  combinations?.forEach(({ reelSymbols }, index) => {
    if (reelSymbols === undefined || reelSymbols.length === numReels) return;
    report(
      `/combinations/${index}/reelSymbols`,
      `has ${reelSymbols.length} items, but numReels is ${numReels}`,
    );
  });
}

/** A reel has a stop for each of the symbols that the combinations put on it, at least. */
function checkStops(draft: Draft, report: Report): void {
  draft.stops?.forEach((stops, reel) => {
    const symbols = new Set(draft.combinations?.map((combination) => combination.reelSymbols?.[reel]));
    symbols.delete(undefined);
    if (stops === undefined || stops >= symbols.size) return;
    report(`/virtualStopsPerReel/${reel}`, `${stops} stops can't bear the reel's ${symbols.size} symbols`);
  });
}

function checkDenomination({ denominationUsd }: Draft, report: Report): void {
  if (denominationUsd === undefined) return;
  const micros = usdToMicros(denominationUsd);
  if (micros !== undefined && micros <= MAX_PAYOUT_MICROS) return;
  report(
    '/denominationUsd',
    denominationUsd * 1e6 > MAX_PAYOUT_MICROS
      ? `must not be above ${MAX_PAYOUT_MICROS / 1e6}`
      : 'must have at most 6 decimals',
  );
}

function checkSymbols({ symbols }: Draft, report: Report): void {
  const seen = new Set<string>();
  symbols?.forEach(({ name }, index) => {
    if (name === undefined) return;
    if (seen.has(name)) report(`/symbols/${index}/name`, `${quote(name)} is not unique`);
    seen.add(name);
  });
}

/** Tier ids are unique; tier 0 is there and pays nothing. */
function checkTiers({ tiers }: Draft, report: Report): void {
  if (tiers === undefined) return;
  const seen = new Set<number>();
  tiers.forEach(({ tierId, payMultiplier }, index) => {
    if (tierId === undefined) return;
    if (seen.has(tierId)) report(`/tiers/${index}/tierId`, `tier ${tierId} is not unique`);
    seen.add(tierId);
    if (tierId === 0 && payMultiplier !== undefined && payMultiplier !== 0) {
      report(`/tiers/${index}/payMultiplier`, 'must be 0 in tier 0 (no win)');
    }
  });
  const allKnown = tiers.every(({ tierId }) => tierId !== undefined);
  if (allKnown && !seen.has(0)) report('/tiers', 'tier 0 (no win) is missing');
}

/** Rule 1: the tiers' probabilities sum to 1. */
function checkTierSum({ tiers }: Draft, report: Report): void {
  const probabilities = allDefined(tiers?.map(({ probability }) => probability));
  if (probabilities === undefined) return;
  const sum = sumDecimals(probabilities.map(decimalOf));
  if (isWithin(sum, ONE, TOLERANCE)) return;
  report('/tiers', `the probabilities sum to ${decimalToNumber(sum)}, not to 1`);
}

/** Rule 4: every symbol of a combination is defined; and the comboString is their displays, joined. */
function checkCombinationSymbols({ symbols, combinations }: Draft, report: Report): void {
  if (symbols === undefined) return;
  const displays = new Map<string, string | undefined>();
  for (const { name, display } of symbols) {
    if (name !== undefined && !displays.has(name)) displays.set(name, display);
  }
  combinations?.forEach(({ reelSymbols, comboString }, index) => {
    reelSymbols?.forEach((name, reel) => {
      if (name === undefined || displays.has(name)) return;
      report(`/combinations/${index}/reelSymbols/${reel}`, `${quote(name)} is not defined in symbols`);
    });
    const shown = allDefined(reelSymbols?.map((name) => (name === undefined ? name : displays.get(name))));
    if (shown === undefined || comboString === undefined || comboString === shown.join('|')) return;
    report(`/combinations/${index}/comboString`, `must be ${quote(shown.join('|'))}`);
  });
}

/** Rule 5: every tier of a combination is defined; and what pays isn't in tier 0. */
function checkCombinationTiers({ tiers, combinations }: Draft, report: Report): void {
  const ids = allDefined(tiers?.map(({ tierId }) => tierId));
  const defined = ids === undefined ? undefined : new Set(ids);
  combinations?.forEach(({ tierId, payMultiplier }, index) => {
    if (tierId === undefined) return;
    if (defined !== undefined && !defined.has(tierId)) {
      report(`/combinations/${index}/tierId`, `tier ${tierId} is not defined in tiers`);
    }
    if (tierId === 0 && payMultiplier !== undefined && payMultiplier > 0) {
      report(`/combinations/${index}/tierId`, 'a winning combination must not be in tier 0 (no win)');
    }
  });
}

/** What a combination pays is a whole number of micro-USD, and bounded. */
function checkPayouts({ denominationUsd, combinations }: Draft, report: Report): void {
  const denominationMicros = denominationUsd === undefined ? undefined : usdToMicros(denominationUsd);
  if (denominationMicros === undefined) return;
  combinations?.forEach(({ payMultiplier }, index) => {
    if (payMultiplier === undefined) return;
    const payout = payoutMicros(denominationMicros, payMultiplier);
    if (payout !== undefined && payout <= MAX_PAYOUT_MICROS) return;
    report(
      `/combinations/${index}/payMultiplier`,
      denominationMicros * payMultiplier > MAX_PAYOUT_MICROS
        ? `denominationUsd × payMultiplier must not be above ${MAX_PAYOUT_MICROS / 1e6}`
        : 'denominationUsd × payMultiplier must be a whole number of micro-USD (6 decimals)',
    );
  });
}

/** Rule 2: a tier's probability is the sum of its combinations'. */
function checkTierProbabilities({ tiers, combinations }: Draft, report: Report): void {
  const parts = allDefined(
    combinations?.map(({ tierId, comboProbability }) =>
      tierId === undefined || comboProbability === undefined ? undefined : { tierId, comboProbability },
    ),
  );
  if (parts === undefined) return;
  tiers?.forEach(({ tierId, probability }, index) => {
    if (tierId === undefined || probability === undefined) return;
    const own = parts.filter((part) => part.tierId === tierId);
    const sum = sumDecimals(own.map((part) => decimalOf(part.comboProbability)));
    if (isWithin(sum, decimalOf(probability), TOLERANCE)) return;
    report(
      `/tiers/${index}/probability`,
      `is ${probability}, but the tier's combinations sum to ${decimalToNumber(sum)}`,
    );
  });
}

/** Rule 3: the return to player computed from the combinations is the certified one. */
function checkRtp({ certifiedRtp, combinations }: Draft, report: Report): void {
  const terms = allDefined(
    combinations?.map(({ comboProbability, payMultiplier }) =>
      comboProbability === undefined || payMultiplier === undefined
        ? undefined
        : multiplyDecimals(decimalOf(comboProbability), decimalOf(payMultiplier)),
    ),
  );
  if (terms === undefined || certifiedRtp === undefined) return;
  const computed = sumDecimals(terms);
  if (isWithin(computed, decimalOf(certifiedRtp), TOLERANCE)) return;
  report(
    '/certifiedRtp',
    `is ${certifiedRtp}, but the RTP computed from the combinations is ${decimalToNumber(computed)}`,
  );
}

// Reading the draft -------------------------------------------------------------------------------------------------

function readDraft(body: unknown): Draft {
  const of = fieldsOf(body);
  return {
    numReels: integerOf(of('numReels')),
    stops: listOf(of('virtualStopsPerReel'), integerOf),
    certifiedRtp: numberOf(of('certifiedRtp')),
    denominationUsd: numberOf(of('denominationUsd')),
    symbols: listOf(of('symbols'), (item) => {
      const ofSymbol = fieldsOf(item);
      return { name: stringOf(ofSymbol('name')), display: stringOf(ofSymbol('display')) };
    }),
    tiers: listOf(of('tiers'), (item) => {
      const ofTier = fieldsOf(item);
      return {
        tierId: integerOf(ofTier('tierId')),
        probability: numberOf(ofTier('probability')),
        payMultiplier: numberOf(ofTier('payMultiplier')),
      };
    }),
    combinations: listOf(of('combinations'), readCombination),
  };
}

function readCombination(item: unknown): DraftCombination {
  const of = fieldsOf(item);
  return {
    reelSymbols: listOf(of('reelSymbols'), stringOf),
    comboString: stringOf(of('comboString')),
    payMultiplier: numberOf(of('payMultiplier')),
    comboProbability: numberOf(of('comboProbability')),
    tierId: integerOf(of('tierId')),
  };
}

function fieldsOf(value: unknown): (name: string) => unknown {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return (name) =>
    isObject && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}

function listOf<T>(value: unknown, read: (item: unknown) => T): T[] | undefined {
  return Array.isArray(value) ? value.map(read) : undefined;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

function integerOf(value: unknown): number | undefined {
  return Number.isInteger(value) ? (value as number) : undefined;
}

function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** The items, if all of them are there. */
function allDefined<T>(items: readonly (T | undefined)[] | undefined): T[] | undefined {
  return items?.every((item) => item !== undefined) ? (items as T[]) : undefined;
}

const MAX_QUOTED_LENGTH = 80;

function quote(value: string): string {
  const shown = value.length > MAX_QUOTED_LENGTH ? `${value.slice(0, MAX_QUOTED_LENGTH)}…` : value;
  return JSON.stringify(shown);
}
