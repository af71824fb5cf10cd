/**
 * Reads a PAR sheet to check the response to a slot spin: the payout of each combination and its
 * presentation.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { amount, at, type Decimal, decimal, type Json, micros, numbersAsText, product } from './decimal.js';

export const SHEET_NAMES = ['classic-3-reel', 'double-strike', 'five-reel-wild', 'penny-sub-cent'] as const;
export type SheetName = (typeof SHEET_NAMES)[number];

export interface Combination {
  readonly text: string;
  readonly names: readonly string[];
  readonly payout: bigint;
  readonly tier: number;
  readonly isDrawn: boolean;
  readonly isNearMiss: boolean;
}

/** Returns the text of a sheet of test/par-sheets. The wrong RTP of five-reel-wild is corrected. */
function sheetText(name: SheetName): string {
  const text = readFileSync(join(import.meta.dirname, '..', 'par-sheets', `${name}.json`), 'utf8');
  return name === 'five-reel-wild' ? text.replace('"certifiedRtp": 0.9175', '"certifiedRtp": 0.7775') : text;
}

const list = (json: Json | undefined): readonly Json[] => json as readonly Json[];
const text = (json: Json | undefined): string => json as string;

export class Sheet {
  /** Text of the sheet in the form in which it is uploaded. */
  readonly text: string;
  /** The only wager of the sheet's games, in the notation of the sheet. */
  readonly denomination: Decimal;
  readonly wager: bigint;
  /** Largest payout that can be drawn. */
  readonly largestPayout: bigint;
  readonly payouts: readonly bigint[];
  /** Combinations, each at its index in the sheet. */
  readonly combinations: readonly Combination[];
  readonly #stops: readonly number[];
  readonly #displays: ReadonlyMap<string, string>;
  readonly #combinations: ReadonlyMap<string, Combination>;

  constructor(readonly name: SheetName) {
    this.text = sheetText(name);
    const sheet = numbersAsText(this.text);
    this.denomination = decimal(text(at(sheet, 'denominationUsd')));
    this.wager = amount(at(sheet, 'denominationUsd'))!;
    this.#stops = list(at(sheet, 'virtualStopsPerReel')).map(Number);
    this.#displays = new Map(
      list(at(sheet, 'symbols')).map((each) => [text(at(each, 'name')), text(at(each, 'display'))]),
    );
    const combinations = list(at(sheet, 'combinations')).map((each) => ({
      text: text(at(each, 'comboString')),
      names: list(at(each, 'reelSymbols')).map(text),
      payout: micros(product(this.denomination, decimal(text(at(each, 'payMultiplier')))))!,
      tier: Number(at(each, 'tierId')),
      // No combination of these sheets has a displayWeight of 0, so every combination can be drawn.
      isDrawn: decimal(text(at(each, 'comboProbability'))).digits > 0n,
    }));
    const isNearMiss = (tier: number, names: readonly string[]): boolean =>
      tier === 0 &&
      combinations.some(
        (other) => other.tier >= 3 && other.names.filter((name, reel) => name !== names[reel]).length === 1,
      );
    this.combinations = combinations.map((each) => ({
      ...each,
      isNearMiss: isNearMiss(each.tier, each.names),
    }));
    this.#combinations = new Map(this.combinations.map((each) => [each.text, each]));
    const drawn = combinations.filter((each) => each.isDrawn).map((each) => each.payout);
    this.payouts = [...new Set(drawn)];
    this.largestPayout = drawn.reduce((largest, payout) => (payout > largest ? payout : largest));
  }

  /**
   * Checks the response to a spin against the sheet.
   * @param spin response with its numbers as text
   * @param strip symbols of this game by stop, as far as responses have shown them; new ones are added
   * @returns the payout, or a text that describes the fault
   */
  judge(spin: Json, strip: Map<string, string>): bigint | string {
    const shown = at(spin, 'presentation', 'comboString');
    const combination = typeof shown === 'string' ? this.#combinations.get(shown) : undefined;
    const isForced = at(spin, 'sandbox', 'forced') === true;
    if (combination === undefined || !(combination.isDrawn || isForced))
      return `the sheet has no combination «${shown}»`;
    const { names, payout, tier, isNearMiss } = combination;
    const isBonus = names.filter((name) => /(^|[^a-z])(bonus|scatter)([^a-z]|$)/i.test(name)).length >= 3;
    const wanted: [path: readonly string[], value: Json][] = [
      [['outcome', 'prizeTier'], String(tier)],
      [['outcome', 'isBonusTrigger'], isBonus],
      [['presentation', 'type'], 'slot'],
      [['presentation', 'animationHints', 'isNearMiss'], isNearMiss],
      [['presentation', 'animationHints', 'isBonusTrigger'], isBonus],
      [['presentation', 'animationHints', 'celebrationTier'], celebration(tier, payout > this.wager)],
    ];
    for (const [path, value] of wanted) {
      const found = at(spin, ...path);
      if (found !== value) return `${path.join('.')} of «${shown}» is ${found}, and should be ${value}`;
    }
    const paid = amount(at(spin, 'outcome', 'payoutUsd'));
    if (paid !== payout) return `«${shown}» pays ${payout} micro-USD, and ${paid} were paid`;
    const symbols = at(spin, 'presentation', 'reelSymbols');
    const stops = at(spin, 'presentation', 'reelStops');
    if (!Array.isArray(symbols) || !Array.isArray(stops)) return 'reels are missing';
    if (symbols.length !== names.length || stops.length !== names.length)
      return 'the reels are too few or many';
    for (const [reel, name] of names.entries()) {
      const symbol: Json = symbols[reel] as Json;
      if (at(symbol, 'name') !== name || at(symbol, 'display') !== this.#displays.get(name)) {
        return `reel ${reel} of «${shown}» shows ${JSON.stringify(symbol)}`;
      }
      if (at(symbol, 'isWild') !== /(^|[^a-z])wild([^a-z]|$)/i.test(name))
        return `${name} has a wrong isWild`;
      const stop = stops[reel] as Json;
      if (typeof stop !== 'string' || !/^\d+$/.test(stop) || Number(stop) >= this.#stops[reel]!) {
        return `reel ${reel} has no stop ${stop}`;
      }
      const place = `${reel}:${stop}`;
      const before = strip.get(place) ?? name;
      if (before !== name) return `stop ${stop} of reel ${reel} shows ${name}, and showed ${before} before`;
      strip.set(place, name);
    }
    return payout;
  }
}

function celebration(tier: number, isAboveWager: boolean): string {
  if (!isAboveWager) return 'none';
  return ['none', 'small', 'small', 'medium', 'large', 'large', 'jackpot'][tier]!;
}
