/** Tests the partner's list of games, and the return to player that it contains for each kind of game. */
import { expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { newTable } from '../../support/rounds.js';
import { parSheet } from '../../support/sheets.js';

const { service } = world({ CELLS: '1' });

test('lists the return to player of a slot, a raffle and a blackjack table', async () => {
  const { key, partnerId } = await service.newPartner();
  const slotId = await service.newGame(key, parSheet('classic-3-reel'));
  const tableId = await newTable(service, partnerId);
  const raffle = await service.operator<{ gameConfigId: number }>('POST', `/partners/${partnerId}/raffles`, {
    displayName: 'R',
    configName: 'LISTED',
    ticketPriceUsd: 2,
    poolSize: 1000,
    prizes: [
      { prizeName: 'Car', prizeTier: 6, valueUsd: 1000, count: 1 },
      { prizeName: 'Cup', prizeTier: 2, valueUsd: 10, count: 60 },
    ],
  });
  const { body } = await service.partner<{ games: Record<string, unknown>[] }>('GET', '/games', key);
  const shown = new Map(
    body.games.map(({ gameConfigId, certifiedRtp, hitFrequency, topPrizeUsd, basicStrategyRtp }) => [
      gameConfigId,
      { certifiedRtp, hitFrequency, topPrizeUsd, basicStrategyRtp },
    ]),
  );
  expect(shown.get(slotId)).toEqual({ certifiedRtp: 0.925, hitFrequency: 0.3, topPrizeUsd: 9.625 });
  // The prizes are worth 1,000 + 60 × 10 USD, and all tickets of the pool cost 2,000 USD together.
  expect(shown.get(raffle.body.gameConfigId)).toEqual({ certifiedRtp: 0.8, topPrizeUsd: 1000 });
  // The published house edge of the default rules is 0.0046 of the first wager. The stakes of a round are
  // 1.1273 wagers on average, so the return is 1 − 0.0046 ÷ 1.1273.
  expect(shown.get(tableId)?.basicStrategyRtp).toBeCloseTo(0.99592, 5);
  expect(shown.get(tableId)?.certifiedRtp).toBeUndefined();
});
