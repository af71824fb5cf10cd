/** Descriptions and examples of the events that partners receive by webhook. */

export interface EventReference {
  readonly description: string;
  /** Example of the body of a delivery. */
  readonly body: unknown;
}

const EVENT = { createdAt: '2026-11-22T04:14:02.132Z', partnerId: 2 };

export const EVENT_REFERENCES: Readonly<Record<string, EventReference>> = {
  'spin.large_win': {
    description: "Sent after a spin whose payout is above the account's threshold.",
    body: {
      id: 'evt_01a201760794207154d366a13cb3032f',
      event: 'spin.large_win',
      ...EVENT,
      data: {
        spinId: '04f965c9ca0a730d47062f0635d6a943',
        gameId: 3,
        playerId: 'alice',
        payoutUsd: 125.5,
        prizeTier: 6,
        requestId: '0197d2c4-9c1e-7a55-8f6e-3b1f0a2c4d5e',
      },
    },
  },
  'settlement.report_ready': {
    description:
      'Sent when a settlement report is ready: daily at about 02:00 UTC, and for each new revision.',
    body: {
      id: 'evt_01a20176079420725461f5ca8df107b1',
      event: 'settlement.report_ready',
      ...EVENT,
      data: {
        reportDate: '2026-11-21',
        revision: 1,
        integrityHash: 'd341d898935042985edfde05394bf7245e8f3a5ede37b2f347c909f4f94eafe1',
        totalSpins: 9,
        ggrUsd: 0.75,
      },
    },
  },
  'block.low_reserve': {
    description: 'Sent once when the number of ready blocks of a game falls below its minimum.',
    body: {
      id: 'evt_01a2017607942073a9c3e1f05d7b2468',
      event: 'block.low_reserve',
      ...EVENT,
      data: { gameId: 3, readyBlocks: 1, minReadyBlocks: 2 },
    },
  },
  'api_key.expiring': {
    description: 'Sent 30 days, 7 days and 1 day before an API key expires.',
    body: {
      id: 'evt_01a20176079420740f1e2d3c4b5a6978',
      event: 'api_key.expiring',
      ...EVENT,
      data: { keyId: 2, name: 'back end', expiresAt: '2026-11-29T00:00:00.000Z', daysLeft: 7 },
    },
  },
  'player.adjusted': {
    description:
      'Sent when the operator adjusts the balance of a player, and for each ticket that is refunded because the operator voided its raffle.',
    body: {
      id: 'evt_01a201760794207681c2d3e4f5a6b7c8',
      event: 'player.adjusted',
      ...EVENT,
      data: {
        entryId: 'f4abbfd7541bd6f71c3311b61d6d2bbd',
        kind: 'adjustment',
        playerId: 'alice',
        amountUsd: -5.5,
        balanceAfterUsd: 1043.75,
        reason: 'Correction of ticket 4711',
      },
    },
  },
  'game.status_changed': {
    description: 'Sent when a game stops or resumes.',
    body: {
      id: 'evt_01a20176079420760c9b8a7f6e5d4c3b',
      event: 'game.status_changed',
      ...EVENT,
      data: { gameId: 3, status: 'DEALING_OFF', reason: 'SWITCH' },
    },
  },
  'api.version.deprecated': {
    description:
      'Sent to every webhook, whatever events it subscribes to, when the end of this API version is announced, and again 30 days, 7 days and 1 day before the end.',
    body: {
      id: 'evt_01a2017607942075d8b7a6f5e4c3b2a1',
      event: 'api.version.deprecated',
      ...EVENT,
      data: {
        version: 'v1',
        deprecatedAt: '2026-11-22T04:14:04.632Z',
        sunsetAt: '2028-01-01T00:00:00.000Z',
        successor: 'v2',
        migrationUrl: 'https://docs.acme.example/v2',
      },
    },
  },
};
