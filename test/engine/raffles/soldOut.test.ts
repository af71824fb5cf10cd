/**
 * Tests the refusal of a ticket after the last ticket is sold, by front ends that have and have not read that
 * the raffle is closed.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { constants, startService } from '../../support/service.js';
import { until } from '../../support/wait.js';

type Service = Awaited<ReturnType<typeof startService>>;

const { stores, service, partner } = world({ CELLS: '1' });
let late: Service;

beforeAll(async () => {
  late = await startService(stores, {
    CELLS: '1',
    ROLES: 'http',
    ...constants({ catalogPollMs: 3_600_000 }),
  });
});

afterAll(async () => {
  await late?.stop();
});

async function newRaffle(): Promise<number> {
  const prizes = [{ prizeName: 'Mug', prizeTier: 1, valueUsd: 1, count: 1 }];
  const terms = { displayName: 'R', ticketPriceUsd: 0.5, poolSize: 3, prizes };
  const path = `/partners/${partner.partnerId}/raffles`;
  const { body, text, status } = await service.operator('POST', path, {
    ...terms,
    configName: `R_${raffles++}`,
  });
  expect(status, text).toBe(201);
  const gameId = Number(body.gameConfigId);
  const state = async () => (await service.operator('GET', `/games/${gameId}`)).body.status;
  await until(async () => (await state()) === 'ACTIVE', 'the raffle is open');
  return gameId;
}
let raffles = 0;

const buy = async (gameId: number, at: Service, more: object = {}): Promise<unknown> => {
  const ticket = { gameId, playerId: 'alice', wagerUsd: 0.5, ...more };
  const { status, body } = await at.spin<{ errorCode?: string }>(partner.key, ticket);
  return body.errorCode ?? status;
};

test.each([
  ['wager', { wagerUsd: 0.25 }, 'KS-4103'],
  ['player', {}, 'KS-4115'],
])(
  'a request for a sold-out raffle gets KS-4218 even if its %s would be refused',
  async (_, wrong, denial) => {
    const gameId = await newRaffle();
    // In the case of a refused player, the ticket is for this blocked player. In the case of a refused wager,
    // the ticket has a wrong wager.
    const playerId = `p-${gameId}`;
    const wrongTicket = 'wagerUsd' in wrong ? wrong : { playerId };
    expect(await buy(gameId, late)).toBe(200);
    expect(await buy(gameId, service, { playerId })).toBe(200);
    const path = `/partners/${partner.partnerId}/players/${playerId}`;
    const blocked = await service.operator('PATCH', path, { status: 'BLOCKED', reason: 'test' });
    expect(blocked.status, blocked.text).toBe(200);
    expect(await buy(gameId, late, wrongTicket)).toBe(denial);
    expect(await buy(gameId, service)).toBe(200);
    for (const at of [late, service]) expect(await buy(gameId, at, wrongTicket)).toBe('KS-4218');
  },
);
