/** Flushes are an hour apart here, unless somebody waits for one. */
import { expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { constants, startLogged } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';

const SETTINGS = { CELLS: '1', ...constants({ flushIntervalMs: 3_600_000 }) };
const { stores, service, partner } = world(SETTINGS);

test('a spin is committed at once when somebody asks for its history, from any process', async () => {
  const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  const front = await startLogged(stores, { ...SETTINGS, ROLES: 'http' });
  for (const client of [service, front]) {
    for (let spins = 1; spins <= 3; spins++) {
      const playerId = `asks-${client === front}`;
      const { body } = await client.partner<{ spinId: string }>('POST', '/spin', partner.key, {
        gameId,
        playerId,
        wagerUsd: 0.25,
      });
      const list = await client.partner<{ total: number; spins: { spinId: string }[] }>(
        'GET',
        `/players/${playerId}/spins`,
        partner.key,
      );
      expect(list.body.total).toBe(spins);
      expect(list.body.spins[0]!.spinId).toBe(body.spinId);
    }
  }
  await front.running.stop();
});

test('the search finds a spin as soon as it is answered', async () => {
  const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  const spun = await service.spin(partner.key, { gameId, playerId: 'searched', wagerUsd: 0.25 });
  const { spinId } = spun.body;
  const found = await service.operator<{ plays: unknown[] }>('GET', `/search?q=${spinId}`);
  expect(found.body.plays).toEqual([{ partnerId: partner.partnerId, kind: 'spin', id: spinId }]);
});
