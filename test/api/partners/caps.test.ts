/** Tests the caps on a partner's games, PAR sheets and webhooks, which the operator can change. */
import { expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { parSheet } from '../../support/sheets.js';

const { service } = world();

const refused = { status: 409, body: { errorCode: 'KS-4114' } };

test("refuses games, active PAR sheets and webhooks beyond a partner's cap (KS-4114), which operators can change", async () => {
  const { partnerId, key } = await service.newPartner();
  const first = await service.operator('GET', `/partners/${partnerId}`);
  expect(first.body).toMatchObject({ maxGames: 1000, maxParSheets: 1000, maxWebhooks: 50 });
  const capped = await service.operator('PATCH', `/partners/${partnerId}`, {
    maxGames: 2,
    maxParSheets: 2,
    maxWebhooks: 1,
  });
  expect(capped.body).toMatchObject({ maxGames: 2, maxParSheets: 2, maxWebhooks: 1 });

  const upload = () => service.partner('POST', '/par-sheets', key, parSheet('classic-3-reel'));
  const sheets = await Promise.all(Array.from({ length: 6 }, upload));
  const stored = sheets.filter(({ status }) => status === 201);
  expect(stored).toHaveLength(2);
  expect(sheets.find(({ status }) => status !== 201)).toMatchObject(refused);
  const parSheetId = stored[0]!.body.parSheetId as number;

  const register = (_: unknown, i: number) =>
    service.partner('POST', '/games', key, { parSheetId, displayName: 'g', configName: `G_${i}` });
  const games = await Promise.all(Array.from({ length: 6 }, register));
  expect(games.filter(({ status }) => status === 201)).toHaveLength(2);
  expect(games.find(({ status }) => status !== 201)).toMatchObject(refused);

  const hook = { url: 'http://localhost:1/', events: ['spin.large_win'] };
  expect((await service.partner('POST', '/webhooks', key, hook)).status).toBe(201);
  expect(await service.partner('POST', '/webhooks', key, hook)).toMatchObject(refused);

  // A retired PAR sheet does not count against the partner's maxParSheets. A game that the operator creates
  // does not count against the partner's maxGames.
  const retired = stored[1]!.body.parSheetId as number;
  expect((await service.operator('PATCH', `/par-sheets/${retired}`, { status: 'RETIRED' })).status).toBe(200);
  expect((await upload()).status).toBe(201);
  const raffle = {
    displayName: 'r',
    configName: 'R',
    ticketPriceUsd: 1,
    poolSize: 2,
    prizes: [{ prizeName: 'One', prizeTier: 1, valueUsd: 1, count: 1 }],
  };
  expect((await service.operator('POST', `/partners/${partnerId}/raffles`, raffle)).status).toBe(201);
  expect(
    await service.partner('POST', '/games', key, { parSheetId, displayName: 'g', configName: 'X' }),
  ).toMatchObject(refused);
  await service.operator('PATCH', `/partners/${partnerId}`, { maxGames: 3 });
  expect(
    (await service.partner('POST', '/games', key, { parSheetId, displayName: 'g', configName: 'X' })).status,
  ).toBe(201);
});

test('lists each PAR sheet with the same fields as the response to its upload', async () => {
  const { key } = await service.newPartner();
  const made = await service.partner('POST', '/par-sheets', key, parSheet('double-strike'));
  const list = await service.partner('GET', '/par-sheets', key);
  expect(list.body).toEqual({ parSheets: [made.body] });
});
