/** Tests the operators' list of the communal progressives of all games. */
import { expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { parSheet } from '../../support/sheets.js';

const { service } = world();

test('lists a game that has a communal progressive, with the state and the budget of the progressive', async () => {
  const partner = await service.newPartner();
  const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  const rules = {
    enabled: true,
    triggerInterval: 10,
    triggerSplitPct: 100,
    communitySplitPct: 0,
    tiers: [{ tierLevel: 1, tierName: 'One', triggerAtSpins: 100, amountUsd: '1.00' }],
  };
  expect((await service.operator('PUT', `/games/${gameId}/communal`, rules)).status).toBe(200);
  const { body } = await service.operator('GET', '/progressives');
  expect(body.progressives).toMatchObject([{ gameConfigId: gameId, isEnabled: true, paidUsd: 0 }]);
});
