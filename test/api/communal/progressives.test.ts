/** Tests the operators' list of the communal progressives of all games. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freshStores } from '../../setup/freshStores.js';
import type { Client } from '../../support/client.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';

let stores: TestStores;
let service: Client & { stop(): Promise<void> };

beforeAll(async () => {
  stores = await freshStores();
  service = await startService(stores);
});

afterAll(async () => {
  await service.stop();
  await stores.drop();
});

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
