/** Examples that several operations share. */

export const SLOT_SPIN = {
  spinId: '04f965c9ca0a730d47062f0635d6a943',
  outcome: { prizeTier: 1, payoutUsd: 0.5, isBonusTrigger: false },
  presentation: {
    type: 'slot',
    comboString: 'CH|CH|-',
    reelSymbols: [
      { name: 'Cherry', display: 'CH', isWild: false },
      { name: 'Cherry', display: 'CH', isWild: false },
      { name: 'Blank', display: '-', isWild: false },
    ],
    reelStops: [23, 8, 3],
    animationHints: { celebrationTier: 'small', isNearMiss: false, isBonusTrigger: false },
  },
  balance: { balanceUsd: 1000.25 },
  communityBonus: null,
  requestId: '0197d2c4-9c1e-7a55-8f6e-3b1f0a2c4d5e',
};

export const RAFFLE_SPIN = {
  spinId: '06b9feb83947c76c18c42e8c8071e3ce',
  outcome: { prizeTier: 4, payoutUsd: 50, isBonusTrigger: false },
  presentation: {
    type: 'raffle',
    prizeName: 'Dinner for two',
    prizeTier: 4,
    celebrationTier: 'large',
  },
  balance: { balanceUsd: 1049.25 },
  communityBonus: null,
  requestId: '0197d2c4-a3b0-7c11-9d2e-5f6a7b8c9d0e',
};

export const SLOT_HISTORY = {
  ...SLOT_SPIN,
  createdAt: '2026-11-22T04:14:01.121Z',
  gameId: 3,
  wagerUsd: 0.25,
  balanceBeforeUsd: 1000,
  balanceAfterUsd: 1000.25,
  outcomeIndex: 1041,
};

export const RAFFLE_HISTORY = {
  ...RAFFLE_SPIN,
  createdAt: '2026-11-22T04:14:01.140Z',
  gameId: 4,
  wagerUsd: 1,
  balanceBeforeUsd: 1000.25,
  balanceAfterUsd: 1049.25,
  outcomeIndex: 17,
};

/** Example of the communal bonus in the answer to the player whose spin triggered the event. */
export const TOLD_BONUS = {
  triggered: true,
  tierName: 'Mini',
  tierLevel: 1,
  totalAmountUsd: '5.00',
  yourShareUsd: '2.00',
  isTriggerPlayer: true,
  eventId: '9d8f0f6a2f1b4c7e8a5d3c2b1a0f9e8d',
};

export const WEBHOOK = {
  id: 1,
  url: 'https://games.acme.example/spindle-events',
  events: ['spin.large_win', 'settlement.report_ready'],
  isActive: true,
  createdAt: '2026-11-22T04:13:57.068Z',
};

export const LISTED_WEBHOOK = {
  ...WEBHOOK,
  health: {
    state: 'failing',
    reason: 'answered 503',
    failingSince: '2026-11-22T07:12:31.405Z',
    pending: 618,
    limitedBy: null,
    restsUntil: '2026-11-22T07:45:12.220Z',
  },
};

export const TRAFFIC = { spins: 48_210, wageredUsd: 12_052.5, paidOutUsd: 11_390.25 };

export const STATEMENT_ENTRY = {
  entryId: '7412907446960128010',
  kind: 'spin',
  createdAt: '2026-11-22T04:13:57.812Z',
  gameId: 3,
  wagerUsd: 0.25,
  creditUsd: 0.5,
  balanceUsd: 1000.25,
  requestId: 'first-spin',
  spinId: '3f0c1f5ab3d94dd0a6a1c9d1b0e0f4c2',
};
