/** PAR sheets of test/par-sheets, and a faulty variant for each fault that a sheet can have. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './root.js';

/** Reads a sheet of test/par-sheets by name. */
export const parSheet = (name: string): Record<string, unknown> =>
  JSON.parse(readFileSync(join(ROOT, 'test', 'par-sheets', `${name}.json`), 'utf8')) as Record<
    string,
    unknown
  >;

/**
 * Returns the sheet five-reel-wild with the RTP of its combinations (0.7775). The file states another RTP, so
 * the service refuses the file itself.
 */
export const fiveReelWild = (): Record<string, unknown> => ({
  ...parSheet('five-reel-wild'),
  certifiedRtp: 0.7775,
});

// biome-ignore lint/suspicious/noExplicitAny: sheets are broken on purpose
type Sheet = any;

/**
 * For each fault: its description, the path that the service must report, and the change that causes it in a
 * valid sheet (classic-3-reel).
 */
export const PAR_FAULTS: readonly [what: string, path: string, spoil: (sheet: Sheet) => void][] = [
  ['the tier probabilities do not sum to 1', '/tiers', (s) => (s.tiers[0].probability = 0.5)],
  [
    'a tier is not the sum of its combinations',
    '/tiers/1/probability',
    (s) => (s.tiers[1].probability += 0.001),
  ],
  ['the RTP is not the computed one', '/certifiedRtp', (s) => (s.certifiedRtp = 0.95)],
  [
    'a symbol is not defined',
    '/combinations/0/reelSymbols/0',
    (s) => (s.combinations[0].reelSymbols[0] = 'Ghost'),
  ],
  ['a tier is not defined', '/combinations/0/tierId', (s) => s.tiers.shift()],
  ['the stops are not one for each reel', '/virtualStopsPerReel', (s) => s.virtualStopsPerReel.pop()],
  [
    'a combination has a reel too few',
    '/combinations/0/reelSymbols',
    (s) => s.combinations[0].reelSymbols.pop(),
  ],
  ['a reel has fewer stops than symbols', '/virtualStopsPerReel/0', (s) => (s.virtualStopsPerReel[0] = 1)],
  ['there are 11 reels', '/numReels', (s) => (s.numReels = 11)],
  ['a probability is above 1', '/tiers/0/probability', (s) => (s.tiers[0].probability = 1.1)],
  [
    'a multiplier is negative',
    '/combinations/0/payMultiplier',
    (s) => (s.combinations[0].payMultiplier = -1),
  ],
  ['a tier id is above 6', '/tiers/6/tierId', (s) => (s.tiers[6].tierId = 7)],
  ['a tier is there twice', '/tiers/2/tierId', (s) => (s.tiers[2].tierId = 1)],
  ['tier 0 is missing', '/tiers', (s) => s.tiers.shift()],
  ['tier 0 pays', '/tiers/0/payMultiplier', (s) => (s.tiers[0].payMultiplier = 1)],
  [
    'a winning combination is in tier 0',
    '/combinations/0/tierId',
    (s) => (s.combinations[0].payMultiplier = 1),
  ],
  ['a symbol is there twice', '/symbols/1/name', (s) => (s.symbols[1].name = s.symbols[0].name)],
  [
    'the comboString is not its displays',
    '/combinations/0/comboString',
    (s) => (s.combinations[0].comboString = 'X'),
  ],
  ['the denomination is 0', '/denominationUsd', (s) => (s.denominationUsd = 0)],
  ['the denomination has 7 decimals', '/denominationUsd', (s) => (s.denominationUsd = 0.2500001)],
  [
    'a payout is finer than a micro-USD',
    '/combinations/0/payMultiplier',
    (s) => (s.combinations[0].payMultiplier = 1e-7),
  ],
  ['a required field is missing', '/gameTitle', (s) => delete s.gameTitle],
  ['a field has the wrong type', '/manufacturer', (s) => (s.manufacturer = 7)],
];

/** Returns the sheet with a fault. */
export function spoiled(spoil: (sheet: Sheet) => void): Sheet {
  const sheet = parSheet('classic-3-reel');
  spoil(sheet);
  return sheet;
}
