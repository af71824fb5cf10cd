/** Tests the operators' lists of the games and PAR sheets of all partners. */
import { beforeAll, expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import type { TestPartner } from '../../support/client.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

type Body = Record<string, unknown>;

const { service, partner } = world();
let other: TestPartner;
let gameId: number;
const SPINS = 3;

beforeAll(async () => {
  other = await service.newPartner();
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  for (let i = 0; i < SPINS; i++) {
    expect((await service.spin(partner.key, { gameId, playerId: 'alice', wagerUsd: 0.25 })).status).toBe(200);
  }
});

const get = async <T = Body>(path: string): Promise<T> => {
  const answer = await service.operator<T & Record<string, unknown>>('GET', path);
  expect(answer.status, `${path} ${answer.text}`).toBe(200);
  return answer.body;
};

test('lists games for all partners and for one partner, with expected returns, totals and daily figures', async () => {
  await until(
    async () => (await get<{ games: { totals: Body }[] }>('/games')).games[0]!.totals.spins === SPINS,
    'the spins are booked',
  );
  const all = await get<{ games: Body[]; total: number }>('/games');
  expect(all).toMatchObject({ total: 1, games: [{ gameConfigId: gameId, partnerId: partner.partnerId }] });
  expect(all.games[0]).toMatchObject({
    expected: { rtp: expect.any(Number), variancePerSpin: expect.any(Number) },
    totals: { spins: SPINS },
  });
  const { expected } = await get<{ expected: { normalFromSpins: number } }>(`/games/${gameId}/rtp`);
  expect(all.games[0]!.expected).toMatchObject({ normalFromSpins: expected.normalFromSpins });
  expect(await get(`/games?partnerId=${other.partnerId}`)).toMatchObject({ games: [], total: 0 });
  expect(await get(`/games/${gameId}/days`)).toMatchObject({
    days: [{ day: new Date().toISOString().slice(0, 10), spins: SPINS, wageredUsd: SPINS * 0.25 }],
  });
});

test('lists a PAR sheet and shows its content as it was uploaded', async () => {
  const { body } = await service.operator<{ parSheets: { parSheetId: number }[] }>(
    'GET',
    `/par-sheets?partnerId=${partner.partnerId}`,
  );
  expect(body.parSheets).toHaveLength(1);
  const detail = await service.operator('GET', `/par-sheets/${body.parSheets[0]!.parSheetId}`);
  expect(detail.body.sheet).toEqual(parSheet('classic-3-reel'));
});
