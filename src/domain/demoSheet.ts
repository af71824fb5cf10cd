/** PAR sheet of the game that the first start of a service creates. It is also the default sheet of tests. */

const symbols = { SEVEN: '7', BAR: 'BAR', BELL: 'BELL', CHERRY: 'CH', WILD: 'W', BLANK: '-' };
const display = (names: readonly string[]): string =>
  names.map((name) => symbols[name as keyof typeof symbols]).join('|');
const combination = (
  tierId: number,
  payMultiplier: number,
  comboProbability: number,
  ...reelSymbols: string[]
) => ({
  reelSymbols,
  comboString: display(reelSymbols),
  payMultiplier,
  comboProbability,
  tierId,
  displayWeight: 1,
});

/** Sheet with three reels, a wager of 0.25 USD and an RTP of 0.94. */
export const DEMO_SHEET = {
  gameTitle: 'Demo Sevens',
  manufacturer: 'Spindle',
  numReels: 3,
  virtualStopsPerReel: [32, 32, 32],
  certifiedRtp: 0.94,
  denominationUsd: 0.25,
  symbols: Object.entries(symbols).map(([name, text]) => ({ name, display: text })),
  tiers: [
    { tierId: 0, name: 'No win', probability: 0.785, payMultiplier: 0 },
    { tierId: 1, name: 'Cherries', probability: 0.15, payMultiplier: 2 },
    { tierId: 2, name: 'Bells', probability: 0.05, payMultiplier: 5 },
    { tierId: 3, name: 'Bars', probability: 0.012, payMultiplier: 15 },
    { tierId: 5, name: 'Sevens', probability: 0.003, payMultiplier: 70 },
  ],
  combinations: [
    combination(0, 0, 0.4, 'CHERRY', 'BLANK', 'BELL'),
    combination(0, 0, 0.3, 'BAR', 'BELL', 'BLANK'),
    combination(0, 0, 0.085, 'SEVEN', 'SEVEN', 'BLANK'),
    combination(1, 2, 0.1, 'CHERRY', 'CHERRY', 'CHERRY'),
    combination(1, 2, 0.05, 'CHERRY', 'WILD', 'CHERRY'),
    combination(2, 5, 0.05, 'BELL', 'BELL', 'BELL'),
    combination(3, 15, 0.012, 'BAR', 'BAR', 'BAR'),
    combination(5, 70, 0.003, 'SEVEN', 'SEVEN', 'SEVEN'),
  ],
};
