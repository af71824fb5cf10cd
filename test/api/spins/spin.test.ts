import { beforeAll, describe, expect, test } from 'vitest';
import { listPlayerSpins } from '../../../src/api/players/contract.js';
import { serializerOf } from '../../../src/api/server/serializers.js';
import { getSpin, listSpins } from '../../../src/api/spins/contract.js';
import { parseExactJson } from '../../../src/domain/exactJson.js';
import { world } from '../../setup/world.js';
import type { Client, TestPartner } from '../../support/client.js';
import { parSheet } from '../../support/sheets.js';

const { service } = world();
let client: Client;
let partner: TestPartner;
let gameId: number;

beforeAll(async () => {
  client = service;
  partner = await client.newPartner();
  gameId = await client.newGame(partner.key, parSheet('classic-3-reel'));
});

const body = (more: object = {}) => ({ gameId, playerId: 'alice', wagerUsd: 0.25, ...more });

/** Removes the fields of a history item that the response to its spin did not have. */
function asAnswered(item: Record<string, unknown>) {
  const { createdAt, gameId: _, wagerUsd, balanceBeforeUsd, balanceAfterUsd, outcomeIndex, ...spin } = item;
  return spin;
}

describe('spins over HTTP', () => {
  test('answers a spin with every member of the contract (§8.3)', async () => {
    const answer = await client.spin(partner.key, body({ requestId: 'r-1' }));
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({
      spinId: expect.stringMatching(/^[0-9a-f]{32}$/),
      presentation: { type: 'slot' },
      communityBonus: null,
      requestId: 'r-1',
    });
  });

  test('answers a repeated requestId with the same bytes', async () => {
    const first = await client.spin(partner.key, body({ requestId: 'r-2' }));
    const again = await client.spin(partner.key, body({ requestId: 'r-2' }));
    expect(again.text).toBe(first.text);
    expect(first.headers.get('idempotent-replayed')).toBeNull();
    expect(again.headers.get('idempotent-replayed')).toBe('true');
  });

  test('refuses a spin that reuses a requestId with a different body', async () => {
    await client.spin(partner.key, body({ requestId: 'r-3' }));
    for (const other of [{ playerId: 'bob' }, { wagerUsd: 1 }, { gameId: gameId + 1000 }]) {
      const answer = await client.spin(partner.key, body({ requestId: 'r-3', ...other }));
      expect(answer.status).toBe(409);
      expect(answer.body.errorCode).toBe('KS-4111');
    }
  });

  test('a history of spins has the bytes that the serializer of its schema would write', async () => {
    const { body: spun } = await client.spin(partner.key, body({ requestId: '"ä"', playerId: 'dörte' }));
    await client.spin(partner.key, body({ playerId: 'dörte' }));
    const reads = [
      [listSpins, `/spins?playerId=${encodeURIComponent('dörte')}`],
      [listPlayerSpins, `/players/${encodeURIComponent('dörte')}/spins`],
      [getSpin, `/spins/${spun.spinId}`],
    ] as const;
    for (const [endpoint, path] of reads) {
      const { text } = await client.partner('GET', path, partner.key);
      expect(text).toContain('\\"ä\\"');
      expect(text).toBe(serializerOf(endpoint)!(parseExactJson(text)));
    }
  });

  test("returns a player's spins in pages, and each spin by its id", async () => {
    const answers: Record<string, unknown>[] = [];
    for (let i = 0; i < 150; i++)
      answers.push((await client.spin(partner.key, body({ playerId: 'carol' }))).body);
    for (const [page, limit] of [
      [1, 20],
      [2, 70],
      [8, 20],
      [3, 64],
      [1, 100],
      [9, 20],
    ] as const) {
      const list = await client.partner<{ spins: Record<string, unknown>[]; total: number }>(
        'GET',
        `/players/carol/spins?page=${page}&limit=${limit}`,
        partner.key,
      );
      expect(list.status).toBe(200);
      expect(list.body.total).toBe(150);
      const expected = [...answers].reverse().slice((page - 1) * limit, page * limit);
      expect(list.body.spins.map(asAnswered)).toEqual(expected);
    }
    const one = await client.partner('GET', `/spins/${answers[7]!.spinId}`, partner.key);
    expect(one.body).toMatchObject({
      ...answers[7],
      createdAt: expect.any(String),
      gameId,
      playerId: 'carol',
    });
    const player = await client.partner('GET', '/players/carol', partner.key);
    expect(player.body).toMatchObject({
      playerId: 'carol',
      balanceUsd: (answers.at(-1)!.balance as { balanceUsd: number }).balanceUsd,
    });
  });
});
