/** The PAR sheet that the examples use. */

/** A valid PAR sheet: two symbols on one reel. */
export const SHEET_BODY = {
  gameTitle: 'Coin Flip',
  manufacturer: 'Acme Games',
  numReels: 1,
  virtualStopsPerReel: [32],
  certifiedRtp: 0.9,
  denominationUsd: 0.25,
  symbols: [
    { name: 'HEADS', display: 'H' },
    { name: 'TAILS', display: 'T' },
  ],
  tiers: [
    { tierId: 0, name: 'No win', probability: 0.55, payMultiplier: 0 },
    { tierId: 1, name: 'Heads', probability: 0.45, payMultiplier: 2 },
  ],
  combinations: [
    {
      reelSymbols: ['TAILS'],
      comboString: 'T',
      payMultiplier: 0,
      comboProbability: 0.55,
      tierId: 0,
      displayWeight: 1,
    },
    {
      reelSymbols: ['HEADS'],
      comboString: 'H',
      payMultiplier: 2,
      comboProbability: 0.45,
      tierId: 1,
      displayWeight: 1,
    },
  ],
};
