/**
 * Rules of a PAR sheet beyond its schema (docs/contract.md §6). Sums are exact decimal sums; only comparisons
 * have a tolerance.
 */
import {
  type Decimal,
  decimalOf,
  decimalToNumber,
  isWithin,
  multiplyDecimals,
  sumDecimals,
} from './decimal.js';
import { payoutMicros, usdToMicros } from './money.js';
import type { Draft } from './parDraft.js';

/** Maximum denomination of a PAR sheet: 10,000 USD. */
const MAX_DENOMINATION_MICROS = 10_000_000_000;
/** Maximum payout of a spin: 10,000,000 USD. */
const MAX_PAYOUT_MICROS = 10_000_000_000_000;
const TOLERANCE: Decimal = { digits: 1n, exponent: -6 };
const ONE: Decimal = { digits: 1n, exponent: 0 };

/** Reports a fault, given as a JSON Pointer into the upload and a message. */
export type ReportFault = (path: string, message: string) => void;
type Rule = (draft: Draft, report: ReportFault) => void;

export const PAR_RULES: readonly Rule[] = [
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
  checkTierMultipliers,
  checkRtp,
];

/** Rule 6: the numbers of stop counts, and of symbols in every combination, equal the number of reels. */
function checkReelLengths(draft: Draft, report: ReportFault): void {
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

/** Checks that each reel has at least as many stops as distinct symbols in the combinations. */
function checkStops(draft: Draft, report: ReportFault): void {
  // Collects the symbols of all reels in one pass over the combinations, however many stop counts were sent.
  const symbolsOfReels: Set<string>[] = [];
  for (const { reelSymbols } of draft.combinations ?? []) {
    reelSymbols?.forEach((name, reel) => {
      symbolsOfReels[reel] ??= new Set();
      if (name !== undefined) symbolsOfReels[reel].add(name);
    });
  }
  draft.stops?.forEach((stops, reel) => {
    const symbols = symbolsOfReels[reel]?.size ?? 0;
    if (stops === undefined || stops >= symbols) return;
    report(
      `/virtualStopsPerReel/${reel}`,
      `must be at least ${symbols}, the number of symbols on this reel, but is ${stops}`,
    );
  });
}

function checkDenomination({ denominationUsd }: Draft, report: ReportFault): void {
  if (denominationUsd === undefined) return;
  const micros = usdToMicros(denominationUsd);
  if (micros !== undefined && micros <= MAX_DENOMINATION_MICROS) return;
  report(
    '/denominationUsd',
    denominationUsd * 1e6 > MAX_DENOMINATION_MICROS
      ? `must not be above ${MAX_DENOMINATION_MICROS / 1e6}`
      : 'must have at most 6 decimals',
  );
}

function checkSymbols({ symbols }: Draft, report: ReportFault): void {
  const seen = new Set<string>();
  symbols?.forEach(({ name }, index) => {
    if (name === undefined) return;
    if (seen.has(name)) report(`/symbols/${index}/name`, `${quote(name)} is not unique`);
    seen.add(name);
  });
}

/** Checks that tier ids are unique, and that tier 0 exists and pays nothing. */
function checkTiers({ tiers }: Draft, report: ReportFault): void {
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

/** Rule 1: the probabilities of the tiers sum to 1. */
function checkTierSum({ tiers }: Draft, report: ReportFault): void {
  const probabilities = allDefined(tiers?.map(({ probability }) => probability));
  if (probabilities === undefined) return;
  const sum = sumDecimals(probabilities.map(decimalOf));
  if (isWithin(sum, ONE, TOLERANCE)) return;
  report('/tiers', `the probabilities sum to ${decimalToNumber(sum)}, not to 1`);
}

/**
 * Rule 4: every symbol of a combination is defined, and the comboString is the concatenation of their
 * displays.
 */
function checkCombinationSymbols({ symbols, combinations }: Draft, report: ReportFault): void {
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

/** Rule 5: every tier of a combination is defined. A combination pays if and only if its tier is not 0. */
function checkCombinationTiers({ tiers, combinations }: Draft, report: ReportFault): void {
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
    if (tierId > 0 && payMultiplier === 0) {
      report(`/combinations/${index}/payMultiplier`, 'must be above 0 in a tier above 0');
    }
  });
}

/** Checks that the payout of each combination is a whole number of micro-USD within the limit. */
function checkPayouts({ denominationUsd, combinations }: Draft, report: ReportFault): void {
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

/** Rule 2: the probability of a tier is the sum of the probabilities of its combinations. */
function checkTierProbabilities({ tiers, combinations }: Draft, report: ReportFault): void {
  const parts = allDefined(
    combinations?.map(({ tierId, comboProbability }) =>
      tierId === undefined || comboProbability === undefined ? undefined : { tierId, comboProbability },
    ),
  );
  if (parts === undefined) return;
  const ofTiers = new Map<number, Decimal[]>();
  for (const { tierId, comboProbability } of parts) {
    const own = ofTiers.get(tierId);
    if (own === undefined) ofTiers.set(tierId, [decimalOf(comboProbability)]);
    else own.push(decimalOf(comboProbability));
  }
  const sums = new Map([...ofTiers].map(([tierId, own]) => [tierId, sumDecimals(own)]));
  tiers?.forEach(({ tierId, probability }, index) => {
    if (tierId === undefined || probability === undefined) return;
    const sum = sums.get(tierId) ?? sumDecimals([]);
    if (isWithin(sum, decimalOf(probability), TOLERANCE)) return;
    report(
      `/tiers/${index}/probability`,
      `is ${probability}, but the tier's combinations sum to ${decimalToNumber(sum)}`,
    );
  });
}

/** The multiplier of a tier lies among those of its combinations, which are what a spin pays. */
function checkTierMultipliers({ tiers, combinations }: Draft, report: ReportFault): void {
  const paid = allDefined(
    combinations?.map(({ tierId, payMultiplier }) =>
      tierId === undefined || payMultiplier === undefined ? undefined : { tierId, payMultiplier },
    ),
  );
  if (paid === undefined) return;
  tiers?.forEach(({ tierId, payMultiplier }, index) => {
    const own = paid.filter((each) => each.tierId === tierId).map((each) => each.payMultiplier);
    if (payMultiplier === undefined || own.length === 0 || tierId === 0) return;
    const [least, most] = [Math.min(...own), Math.max(...own)];
    if (payMultiplier >= least && payMultiplier <= most) return;
    const range = least === most ? least : `${least} to ${most}`;
    report(`/tiers/${index}/payMultiplier`, `is ${payMultiplier}, but the tier's combinations pay ${range}`);
  });
}

/** Rule 3: the return to player computed from the combinations equals the certified one. */
function checkRtp({ certifiedRtp, combinations }: Draft, report: ReportFault): void {
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

function allDefined<T>(items: readonly (T | undefined)[] | undefined): T[] | undefined {
  return items?.every((item) => item !== undefined) ? (items as T[]) : undefined;
}

const MAX_QUOTED_LENGTH = 80;

function quote(value: string): string {
  const shown = value.length > MAX_QUOTED_LENGTH ? `${value.slice(0, MAX_QUOTED_LENGTH)}…` : value;
  return JSON.stringify(shown);
}
