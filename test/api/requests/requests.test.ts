/** Tests the look-up of a request by its requestId, while Redis binds the id and after its release. */
import { beforeAll, expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { untilReleased } from '../../support/requestSegments.js';
import { deal, newTable } from '../../support/rounds.js';
import { parSheet } from '../../support/sheets.js';

type Json = Record<string, unknown>;
interface Found extends Json {
  readonly spins: readonly { readonly partnerId: number; readonly spin: Json; readonly entry: Json }[];
  readonly rounds: readonly Json[];
  readonly adjustment: Json | null;
  readonly refusedAdjustments: readonly Json[];
}

const { service, redis, partner } = world(
  { CELLS: '1', REQUEST_ID_WINDOW_S: '1' },
  { partner: { openingBalanceUsd: 100, balanceMode: 'enforce' } },
);
let gameId: number;

beforeAll(async () => {
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
});

async function find(requestId: string, partnerId = partner.partnerId): Promise<Found> {
  const path = `/partners/${partnerId}/requests?requestId=${encodeURIComponent(requestId)}`;
  const { status, body, text } = await service.operator<Found>('GET', path);
  expect(status, text).toBe(200);
  expect(body).toMatchObject({ partnerId, requestId });
  return body;
}

const NOTHING = { spins: [], rounds: [], adjustment: null, refusedAdjustments: [] };

test('finds a spin by its requestId while Redis binds the id, and after the id was released', async () => {
  const requestId = 'Überweisung & Co/1?';
  const spun = await service.spin(partner.key, { gameId, playerId: 'alice', wagerUsd: 0.25, requestId });
  expect(spun.status).toBe(200);
  const wanted = {
    ...NOTHING,
    spins: [
      { partnerId: partner.partnerId, spin: { ...spun.body, playerId: 'alice' }, entry: { requestId } },
    ],
  };
  expect(await find(requestId)).toMatchObject(wanted);
  await untilReleased(redis, 0);
  expect(await find(requestId)).toMatchObject(wanted);
  // The same text is a different id for another partner.
  const stranger = await service.newPartner();
  expect(await find(requestId, stranger.partnerId)).toMatchObject(NOTHING);
});

test('finds a round by the requestId of its deal', async () => {
  const table = await newTable(service, partner.partnerId);
  const { body } = await deal(service, partner.key, table, 'carol', 'deal-1');
  const { spins, rounds } = await find('deal-1');
  expect(spins).toEqual([]);
  expect(rounds).toMatchObject([{ roundId: body.roundId }]);
});

test('finds a raffle ticket by its requestId', async () => {
  const prizes = [{ prizeName: 'Car', prizeTier: 6, valueUsd: 2, count: 1 }];
  const terms = { ticketPriceUsd: 0.5, poolSize: 12, prizes };
  const raffle = await service.api.newRaffle(partner.partnerId, 'SPRING', terms);
  const order = { gameId: raffle, playerId: 'dora', wagerUsd: 0.5, requestId: 'ticket-1' };
  const { body } = await service.spin(partner.key, order);
  expect(await find('ticket-1')).toMatchObject({
    ...NOTHING,
    spins: [{ spin: { spinId: body.spinId, playerId: 'dora' } }],
  });
});

test('finds adjustments and refused adjustments, apart from a spin with the same requestId', async () => {
  const adjust = (amountUsd: number, requestId: string) =>
    service.operator<Json>('POST', `/partners/${partner.partnerId}/players/erin/adjustments`, {
      amountUsd,
      reason: 'a test',
      requestId,
    });
  const made = await adjust(12.5, 'adjust-1');
  expect(await find('adjust-1')).toMatchObject({
    ...NOTHING,
    adjustment: {
      playerId: 'erin',
      amountUsd: 12.5,
      reason: 'a test',
      adjustmentId: made.body.adjustmentId,
    },
  });
  expect((await adjust(-1000, 'adjust-2')).body).toMatchObject({ errorCode: 'KS-4225' });
  expect(await find('adjust-2')).toMatchObject({
    ...NOTHING,
    refusedAdjustments: [
      {
        playerId: 'erin',
        amountUsd: -1000,
        actor: 'operator',
        refusal: 'insufficientBalance',
        reason: 'a test',
      },
    ],
  });
  await service.spin(partner.key, { gameId, playerId: 'erin', wagerUsd: 0.25, requestId: 'adjust-1' });
  expect(await find('adjust-1')).toMatchObject({
    spins: [{ spin: { playerId: 'erin' } }],
    adjustment: { amountUsd: 12.5 },
  });
});

test('finds nothing for an unknown requestId and for a refused spin', async () => {
  expect(await find('never')).toMatchObject(NOTHING);
  const refused = { gameId, playerId: 'frank', wagerUsd: 7, requestId: 'refused-1' };
  expect((await service.spin(partner.key, refused)).status).toBe(400);
  expect(await find('refused-1')).toMatchObject(NOTHING);
});
