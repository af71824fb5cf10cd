/** Tests how every operation handles unknown and invalid parameters. */
import { expect, test } from 'vitest';
import { ENDPOINTS } from '../../../src/api/index.js';
import { fuzzParameters } from '../../fuzz/parameters.js';
import { world } from '../../setup/world.js';
import { OPERATOR_KEY } from '../../support/client.js';
import { parSheet } from '../../support/sheets.js';

/** Share of the hostile values that this test sends. The command `npm run test:fuzz` sends all of them. */
const SHARE = 0.1;

const { service, partner } = world({ CELLS: '2' });

const faultsOf = async (path: string, method = 'GET', body?: unknown) => {
  const answer = await service.partner<{ errorCode: string; details: { path: string; message: string }[] }>(
    method,
    path,
    partner.key,
    body,
  );
  return [
    answer.status,
    answer.body.errorCode,
    ...(answer.body.details ?? []).map(({ path, message }) => `${path} ${message}`),
  ];
};

test("refuses query parameters that an operation doesn't have, and lists the parameters that it has", async () => {
  const known = 'which accepts from, to, fromEntry, toEntry, gameId, playerId, cursor, limit, escapeFormulas';
  expect(await faultsOf('/spins?page=2')).toEqual([
    400,
    'KS-4101',
    `/page is not a query parameter of this operation, ${known}`,
  ]);
  expect(await faultsOf('/spins?player=alice&limit=0')).toEqual([
    400,
    'KS-4101',
    `/player is not a query parameter of this operation, ${known}`,
    '/limit must be >= 1',
  ]);
  expect(await faultsOf('/games?limit=5')).toEqual([
    400,
    'KS-4101',
    '/limit is not a query parameter of this operation, which accepts none',
  ]);
});

test('refuses query values that are badly encoded, given twice, or contain control characters', async () => {
  expect(await faultsOf('/spins?playerId=%zz')).toEqual([
    400,
    'KS-4101',
    '/playerId must be percent-encoded UTF-8',
  ]);
  expect(await faultsOf('/spins?limit=5&limit=6')).toEqual([400, 'KS-4101', '/limit must be sent only once']);
  expect(await faultsOf('/spins?playerId=a%00b')).toEqual([
    400,
    'KS-4101',
    '/playerId must not contain control characters',
  ]);
});

test('refuses a spin whose requestId is in the query, and deals nothing', async () => {
  const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  const body = { gameId, playerId: 'queried', wagerUsd: 0.25 };
  expect(await faultsOf('/spin?requestId=r', 'POST', body)).toEqual([
    400,
    'KS-4101',
    '/requestId is not a query parameter of this operation, which accepts none',
  ]);
  expect((await service.partner('GET', '/players/queried', partner.key)).status).toBe(404);
});

test('limits the pages of every list to 1 to 100 items, with 20 as the default', () => {
  const lists = ENDPOINTS.flatMap(({ operationId, query }) => {
    const properties = (query as { properties?: Record<string, object> } | undefined)?.properties ?? {};
    const isPaged = ['page', 'cursor', 'after'].some((name) => name in properties);
    return isPaged && 'limit' in properties ? [{ operationId, limit: properties.limit }] : [];
  });
  expect(lists.length).toBeGreaterThan(10);
  for (const { operationId, limit } of lists)
    expect(limit, operationId).toMatchObject({ minimum: 1, maximum: 100, default: 20 });
});

test('answers hostile values for a tenth of all parameters and members without an internal error', async () => {
  const { faults, requests } = await fuzzParameters(service, OPERATOR_KEY, SHARE);
  expect(faults).toEqual([]);
  expect(requests).toBeGreaterThan(500);
});
