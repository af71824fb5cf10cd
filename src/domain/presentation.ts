/**
 * Presentation of outcomes to players. All parts of a slot spin's response that depend only on the
 * combination are rendered once per PAR sheet, as JSON text (docs/contract.md §9.2).
 *
 * The virtual reel strip is a formula, not a list. The stops of a reel with S stops are numbered by position
 * and by ordinal, and each symbol owns a run of ordinals. Ordinal o has the position `o × g mod S`, where g
 * is the number coprime to S nearest above S divided by the golden ratio. So every position is taken once,
 * and a run of ordinals is spread almost evenly over the reel.
 */

import { decimalOf, toCommonExponent } from './decimal.js';
import { microsToUsdText, payoutMicros } from './money.js';
import type { ParCombination, ParSheet } from './par.js';
import { normalFromSpins } from './rtp.js';

export type CelebrationTier = 'none' | 'small' | 'medium' | 'large' | 'jackpot';

export interface RenderedCombination {
  readonly prizeTier: number;
  readonly payoutMicros: number;
  readonly isBonusTrigger: boolean;
  /**
   * JSON text `"outcome":{…},"presentation":{…}` without enclosing braces. In a response, `{"spinId":"…",`
   * comes before this text, and `,"balance":{"balanceUsd":…},"communityBonus":null}` after it.
   */
  readonly json: string;
}

export interface RenderedSheet {
  readonly wagerMicros: number;
  /** Largest payout among the sheet's combinations that can be drawn. */
  readonly maxPayoutMicros: number;
  /** Rendered combinations by combination index, which is the outcome code in a block. */
  readonly combinations: readonly RenderedCombination[];
}

export interface OutcomeStatistics {
  /** Expected payout as a fraction of the wager. */
  readonly rtp: number;
  /** Probability that a spin pays anything. */
  readonly hitFrequency: number;
  /** Variance of one spin's payout, in squared wagers. */
  readonly variancePerSpin: number;
  /** Number of spins from which the return can be judged by a band. */
  readonly normalFromSpins: number;
}

/** Range of ordinals of a symbol on one reel. */
interface StopRun {
  readonly firstOrdinal: number;
  readonly stops: number;
}

/** Strip of one reel. The ranges of its symbols cover the ordinals 0 to stops − 1. */
interface ReelLayout {
  readonly stops: number;
  readonly stride: number;
  readonly runs: ReadonlyMap<string, StopRun>;
}

const BONUS_SYMBOLS_TO_TRIGGER = 3;
const NEAR_MISS_TIER_MIN = 3;
const PAYOUT_BYTES = 8;
const GOLDEN_RATIO = (1 + Math.sqrt(5)) / 2;

export function renderSheet(sheet: ParSheet): RenderedSheet {
  const layouts = sheet.virtualStopsPerReel.map((_, reel) => layOutReel(sheet, reel));
  const displays = new Map(sheet.symbols.map((symbol) => [symbol.name, symbol.display]));
  const isNearMiss = nearMissTest(sheet);
  let maxPayoutMicros = 0;
  const combinations = sheet.combinations.map((combination, index): RenderedCombination => {
    const payout = payoutOf(sheet, combination);
    if (combination.comboProbability > 0) maxPayoutMicros = Math.max(maxPayoutMicros, payout);
    const prizeTier = combination.tierId;
    const isBonusTrigger = combination.reelSymbols.filter(isBonusSymbol).length >= BONUS_SYMBOLS_TO_TRIGGER;
    const presentation = {
      type: 'slot',
      comboString: combination.comboString,
      reelSymbols: combination.reelSymbols.map((name) => ({
        name,
        display: displays.get(name),
        isWild: isWildSymbol(name),
      })),
      reelStops: layouts.map((layout, reel) => stopOf(layout, combination.reelSymbols[reel]!, index)),
      animationHints: {
        celebrationTier: celebrationTierOf(prizeTier, payout, sheet.denominationMicros),
        isNearMiss: isNearMiss(combination),
        isBonusTrigger,
      },
    };
    const outcome = `{"prizeTier":${prizeTier},"payoutUsd":${microsToUsdText(payout)},"isBonusTrigger":${isBonusTrigger}}`;
    const json = `"outcome":${outcome},"presentation":${JSON.stringify(presentation)}`;
    return { prizeTier, payoutMicros: payout, isBonusTrigger, json };
  });
  return { wagerMicros: sheet.denominationMicros, maxPayoutMicros, combinations };
}

/** Encodes the payouts of the combinations, in micro-USD, as signed 64-bit little-endian integers. */
export function payoutTable({ combinations }: Pick<RenderedSheet, 'combinations'>): Buffer {
  const table = Buffer.alloc(combinations.length * PAYOUT_BYTES);
  combinations.forEach((combination, index) => {
    table.writeBigInt64LE(BigInt(combination.payoutMicros), index * PAYOUT_BYTES);
  });
  return table;
}

/** Computes the sheet's expected statistics, against which actual payouts are monitored. */
export function outcomeStatistics(sheet: ParSheet): OutcomeStatistics {
  let total = 0;
  let mean = 0;
  let meanSquare = 0;
  let hits = 0;
  for (const { comboProbability, payMultiplier } of sheet.combinations) {
    total += comboProbability;
    mean += comboProbability * payMultiplier;
    meanSquare += comboProbability * payMultiplier * payMultiplier;
    if (payMultiplier > 0) hits += comboProbability;
  }
  const rtp = mean / total;
  const variancePerSpin = Math.max(0, meanSquare / total - rtp * rtp);
  const sigma = Math.sqrt(variancePerSpin);
  // The exact moments of a large sheet take too long for the thread that deals.
  const cubes = sheet.combinations.reduce(
    (sum, { comboProbability, payMultiplier }) => sum + comboProbability * (payMultiplier - rtp) ** 3,
    0,
  );
  const skewness = sigma === 0 ? 0 : cubes / total / (variancePerSpin * sigma);
  return {
    rtp,
    hitFrequency: hits / total,
    variancePerSpin,
    normalFromSpins: normalFromSpins({ sigma, skewness }),
  };
}

/**
 * Returns the celebration of a prize: none unless it pays more than the wager. Slots and raffles use the same
 * rule.
 */
export function celebrationTierOf(prizeTier: number, payout: number, wagerMicros: number): CelebrationTier {
  if (prizeTier === 0 || payout <= wagerMicros) return 'none';
  if (prizeTier <= 2) return 'small';
  if (prizeTier === 3) return 'medium';
  return prizeTier <= 5 ? 'large' : 'jackpot';
}

export function isWildSymbol(name: string): boolean {
  return hasWord(name, 'WILD');
}

export function isBonusSymbol(name: string): boolean {
  return hasWord(name, 'BONUS') || hasWord(name, 'SCATTER');
}

/**
 * Returns the complete strip of a reel, the symbol at each position, for an integrator's reel art and for
 * tests.
 */
export function reelStrip(sheet: ParSheet, reel: number): string[] {
  const layout = layOutReel(sheet, reel);
  const strip = new Array<string>(layout.stops);
  for (const [name, run] of layout.runs) {
    for (let i = 0; i < run.stops; i++) strip[positionOf(layout, run.firstOrdinal + i)] = name;
  }
  return strip;
}

/**
 * Returns whether a name contains a word, in upper or lower case. A word ends at a character that is not a
 * letter (`WILD_2X`, `wild2`) or where camel case begins the next one (`DoubleWild`); `Wilderness` is one
 * word.
 */
function hasWord(name: string, word: string): boolean {
  return name.split(/[^\p{L}\p{M}]+/u).some((part) => {
    const camelWords = part.split(/(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/u);
    return part.toUpperCase() === word || camelWords.some((camelWord) => camelWord.toUpperCase() === word);
  });
}

function payoutOf(sheet: ParSheet, combination: ParCombination): number {
  const payout = payoutMicros(sheet.denominationMicros, combination.payMultiplier);
  if (payout === undefined)
    throw new RangeError('a payout of the PAR sheet is not a whole number of micro-USD');
  return payout;
}

/**
 * Returns a function that recognises near misses: no-win combinations that differ from a winning combination
 * of tier 3 or above in exactly one reel. Winning combinations are indexed by their symbols with one reel
 * masked, so that the function needs one lookup per reel.
 */
function nearMissTest(sheet: ParSheet): (combination: ParCombination) => boolean {
  const symbolsByRest = new Map<string, Set<string>>();
  for (const { tierId, reelSymbols } of sheet.combinations) {
    if (tierId < NEAR_MISS_TIER_MIN) continue;
    reelSymbols.forEach((name, reel) => {
      const rest = maskReel(reelSymbols, reel);
      const symbols = symbolsByRest.get(rest);
      if (symbols === undefined) symbolsByRest.set(rest, new Set([name]));
      else symbols.add(name);
    });
  }
  return ({ tierId, reelSymbols }) =>
    tierId === 0 &&
    reelSymbols.some((name, reel) => {
      const symbols = symbolsByRest.get(maskReel(reelSymbols, reel));
      return symbols !== undefined && (symbols.size > 1 || !symbols.has(name));
    });
}

function maskReel(reelSymbols: readonly string[], masked: number): string {
  return JSON.stringify(reelSymbols.map((name, reel) => (reel === masked ? null : name)));
}

/**
 * Lays out a reel. Every symbol that a combination has on the reel gets one stop. The other stops are
 * distributed by the symbols' probabilities on the reel, by largest remainder (the first symbol wins a tie).
 */
function layOutReel(sheet: ParSheet, reel: number): ReelLayout {
  const stops = sheet.virtualStopsPerReel[reel]!;
  const massByName = symbolMasses(sheet, reel);
  const spare = BigInt(stops - massByName.size);
  const totalMass = [...massByName.values()].reduce((sum, mass) => sum + mass, 0n);
  const shares = [...massByName].map(([name, mass]) => ({
    name,
    stops: 1 + Number((spare * mass) / totalMass),
    remainder: (spare * mass) % totalMass,
  }));
  let unshared = stops - shares.reduce((sum, share) => sum + share.stops, 0);
  const byRemainder = [...shares].sort((a, b) => compareBigInts(b.remainder, a.remainder));
  for (const share of byRemainder) {
    if (unshared === 0) break;
    share.stops++;
    unshared--;
  }
  const runs = new Map<string, StopRun>();
  let firstOrdinal = 0;
  for (const share of shares) {
    runs.set(share.name, { firstOrdinal, stops: share.stops });
    firstOrdinal += share.stops;
  }
  return { stops, stride: strideOf(stops), runs };
}

/**
 * Computes the probability of each symbol on the reel, as a multiple of one power of ten, in the order of
 * first appearance.
 */
function symbolMasses(sheet: ParSheet, reel: number): Map<string, bigint> {
  const { digits } = toCommonExponent(sheet.combinations.map((each) => decimalOf(each.comboProbability)));
  const masses = new Map<string, bigint>();
  sheet.combinations.forEach(({ reelSymbols }, index) => {
    const name = reelSymbols[reel]!;
    masses.set(name, (masses.get(name) ?? 0n) + digits[index]!);
  });
  return masses;
}

function compareBigInts(a: bigint, b: bigint): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/**
 * Returns a stop at which the reel shows the symbol. The choice among several stops depends on the
 * combination only.
 */
function stopOf(layout: ReelLayout, name: string, combinationIndex: number): number {
  const run = layout.runs.get(name)!;
  return positionOf(layout, run.firstOrdinal + (combinationIndex % run.stops));
}

function positionOf(layout: ReelLayout, ordinal: number): number {
  return (ordinal * layout.stride) % layout.stops;
}

function strideOf(stops: number): number {
  let stride = Math.max(1, Math.floor(stops / GOLDEN_RATIO));
  while (greatestCommonDivisor(stride, stops) !== 1) stride++;
  return stride;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
