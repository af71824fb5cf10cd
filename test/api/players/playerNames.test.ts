/**
 * Tests players whose names can't appear in a URL path, or only percent-encoded. Such players can play, and
 * partners and operators can read, block and pay them.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { Spindle } from '../../../clients/typescript/src/index.js';
import { namedPlayer } from '../../../clients/typescript/src/playerNames.js';
import { operatorClient } from '../../../src/api/client/apiClients.js';
import { world } from '../../setup/world.js';
import { OPERATOR_KEY } from '../../support/client.js';
import { parSheet } from '../../support/sheets.js';

const NAMES = [
  ...[
    '.',
    '..',
    '...',
    '%2e',
    '%2E%2E',
    '%252e',
    '.%2e',
    '../..',
    './',
    '/',
    '//',
    '/../',
    '%2F',
    '_',
    '__',
    '-',
  ],
  ...[' ', '\u00a0', '\u200b', '\u3000', '+', '%', '?', '#', '?playerId=x', ';', ':', '*', '\\', 'null', '0'],
];

const { service, partner } = world();
let spindle: Spindle;

beforeAll(async () => {
  const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  spindle = new Spindle({ baseUrl: service.base, apiKey: partner.key });
  for (const playerId of NAMES) await spindle.spin({ gameId, playerId, wagerUsd: 0.25 });
});

/** Sends a request with `fetch`, which normalizes paths as browsers do. */
async function fetched(method: string, path: string, playerId: string, body?: object) {
  const { inPath, inQuery } = namedPlayer(playerId);
  const query = new URLSearchParams(inQuery as Record<string, string>);
  const url = `${service.base}/api/operator/v1/partners/${partner.partnerId}/players/${encodeURIComponent(inPath.playerId)}${path}?${query}`;
  const headers = { 'X-API-Key': OPERATOR_KEY, 'Content-Type': 'application/json' };
  const answer = await fetch(url, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

describe.each(NAMES.map((name) => [JSON.stringify(name), name]))('a player named %s', (_shown, playerId) => {
  test('finds a player with an unusual name by every call of the TypeScript client', async () => {
    expect(await spindle.getPlayer(playerId)).toMatchObject({ playerId, status: 'ACTIVE' });
    const spins = [];
    for await (const spin of spindle.playerSpins(playerId)) spins.push(spin);
    expect(spins).toHaveLength(1);
    expect(await spindle.recall(playerId)).toHaveLength(1);
    for await (const bonus of spindle.communal.bonuses(playerId)) expect.unreachable(bonus.eventId);
  });

  test('lets operators read, block, unblock and pay a player with an unusual name through clients that normalize paths', async () => {
    expect(await fetched('GET', '/statement', playerId)).toMatchObject({ status: 200, body: { playerId } });
    expect((await fetched('GET', '/recall', playerId)).body.games).toHaveLength(1);
    for (const status of ['BLOCKED', 'ACTIVE']) {
      const order = { status, reason: 'test' };
      expect(await fetched('PATCH', '', playerId, order)).toMatchObject({
        status: 200,
        body: { playerId, status },
      });
      expect(await spindle.getPlayer(playerId)).toMatchObject({ playerId, status });
    }
    const order = { amountUsd: 1, reason: 'test', requestId: `pay ${playerId}` };
    expect(await fetched('POST', '/adjustments', playerId, order)).toMatchObject({
      status: 200,
      body: { playerId },
    });
  });

  test('finds a player by an encoded name in the path if no client normalizes that path', async () => {
    const path = { id: partner.partnerId, playerId };
    const { data } = await operatorClient(service.base, OPERATOR_KEY).GET(
      '/partners/{id}/players/{playerId}/statement',
      { params: { path } },
    );
    expect(data).toMatchObject({ playerId });
  });
});

test('accepts a player name in the query only once, and only if the path has the placeholder `_` for the player', async () => {
  const ask = (path: string) => service.partner('GET', path, partner.key);
  expect(await ask('/players/_?playerId=..')).toMatchObject({ status: 200, body: { playerId: '..' } });
  expect(await ask('/players/_?playerId=_')).toMatchObject({ status: 200, body: { playerId: '_' } });
  expect(await ask('/players/_')).toMatchObject({ status: 200, body: { playerId: '_' } });
  for (const wrong of [
    '/players/alice?playerId=..',
    '/players/_?playerId=a&playerId=b',
    '/players/_?playerId=%00',
  ])
    expect(await ask(wrong)).toMatchObject({
      status: 400,
      body: { errorCode: 'KS-4101', details: [{ path: '/playerId' }] },
    });
});
