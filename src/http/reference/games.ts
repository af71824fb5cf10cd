/** Descriptions and examples: PAR sheets and games. */
import { ERRORS } from '../../domain/errors.js';
import type { References } from './operationReference.js';

const SLOT_GAME = {
  gameConfigId: 3,
  displayName: 'Classic Three',
  configName: 'CLASSIC_THREE',
  gameType: 'slot',
  status: 'ACTIVE',
  parSheetId: 2,
  minWagerUsd: 0.25,
  maxWagerUsd: 0.25,
  wagerIncrementUsd: 0.25,
};

const RAFFLE_GAME = {
  gameConfigId: 4,
  displayName: 'Spring Raffle',
  configName: 'SPRING_RAFFLE',
  gameType: 'raffle',
  status: 'ACTIVE',
  parSheetId: null,
  minWagerUsd: 1,
  maxWagerUsd: 1,
  wagerIncrementUsd: 1,
  poolSize: 1000,
  poolCommitment: 'c52d486e3cfaf7bd8c98764f22378544f585fed376706fccfe80cbb891459928',
};

/** A sheet that the service accepts: two symbols on one reel. */
const SHEET_BODY = {
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

const SHEET = {
  parSheetId: 2,
  gameTitle: 'Coin Flip',
  numReels: 1,
  certifiedRtp: 0.9,
  symbolCount: 2,
  tierCount: 2,
  combinationCount: 2,
};

const OPERATOR_GAME = {
  ...SLOT_GAME,
  partnerId: 2,
  expected: { rtp: 0.9, variancePerSpin: 0.99 },
  queue: { readyBlocks: 3, outcomesReady: 6143, consumed: 1 },
  totals: { spins: 1, wageredUsd: 0.25, paidOutUsd: 0.5, actualRtp: 2 },
};

export const GAME_REFERENCES: References = {
  uploadParSheet: {
    description: `Stores the mathematics of a slot game after checking all of it: the probabilities sum to 1, the tiers agree with their combinations, and the computed return to player is the certified one. ${ERRORS.invalidParSheet.code} lists every fault in \`details\`.`,
    request: SHEET_BODY,
    response: SHEET,
  },
  listParSheets: {
    description: 'Lists the sheets that games can be registered on. Retired ones are not listed.',
    response: { parSheets: [SHEET] },
  },
  registerGame: {
    description: `Makes a game of a PAR sheet. Its wager is the denomination of the sheet. Several games can share a sheet; each has its own queue of outcomes. The first outcomes are ready a moment later; until then a spin answers ${ERRORS.noBlockServable.code}.`,
    request: { parSheetId: 2, displayName: 'Classic Three', configName: 'CLASSIC_THREE' },
    response: SLOT_GAME,
  },
  listGames: {
    description: 'Lists all games of the account, the raffles too, whatever their status.',
    response: {
      games: [{ ...SLOT_GAME, certifiedRtp: 0.925, hitFrequency: 0.2, topPrizeUsd: 250 }, RAFFLE_GAME],
    },
  },
  getGame: {
    description:
      'Shows how many outcomes are ready and what the ledger has of the game: spins, wagers, payouts and the return to player so far.',
    response: OPERATOR_GAME,
  },
  updateGame: {
    description: `A suspended game refuses spins with ${ERRORS.gameNotActive.code}; a repeated \`requestId\` still gets its original answer. In force on every front end within a second.`,
    request: { status: 'SUSPENDED' },
    response: { ...OPERATOR_GAME, status: 'SUSPENDED' },
  },
  makeBlocks: {
    description: 'Blocks are made on demand anyway. Use this before an event that will bring many spins.',
    request: { count: 2 },
    response: { gameConfigId: 3, requested: 2 },
  },
  updateParSheet: {
    description: 'No further game can be registered on a retired sheet. Games that use it go on.',
    request: { status: 'RETIRED' },
    response: { ...SHEET, partnerId: 2, status: 'RETIRED' },
  },
};
