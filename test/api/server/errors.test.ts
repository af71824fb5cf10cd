/**
 * Tests every error of the catalogue that the partner API can return, over HTTP on real stores. API keys and
 * rate limits have test files of their own.
 */
import autocannon from 'autocannon';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshStores } from '../../setup/freshStores.js';
import type { Answer, Client, TestPartner } from '../../support/client.js';
import { chunked, raw } from '../../support/rawRequest.js';
import { constants, startService } from '../../support/service.js';
import { PAR_FAULTS, parSheet, spoiled } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

type Service = Client & { stop(): Promise<void> };
type Json = Record<string, unknown>;

const BASE = '/api/partner/v1';
const WAGER = 0.25;

const failed = (status: number, errorCode: string) => ({ status, body: { status: 'error', errorCode } });
const pathsOf = (answer: Answer): string[] =>
  ((answer.body.details as { path: string }[] | undefined) ?? []).map((fault) => fault.path).sort();

describe('errors while both stores answer', () => {
  let stores: TestStores;
  let client: Service;
  let worker: Service;
  let partner: TestPartner;
  let gameId: number;

  beforeAll(async () => {
    stores = await freshStores();
    const patient = constants({ authFailureLimit: 1_000_000 });
    worker = await startService(stores, { ...patient, ROLES: 'worker' });
    client = await startService(stores, { ...patient, ROLES: 'http' });
    partner = await client.newPartner();
    gameId = await client.newGame(partner.key, parSheet('classic-3-reel'));
  });

  afterAll(async () => {
    await client.stop();
    await worker.stop();
    await stores.drop();
  });

  const body = (more: Json = {}) => ({ gameId, playerId: 'p', wagerUsd: WAGER, ...more });
  const spin = (more: Json = {}, key = partner.key) => client.spin(key, body(more));
  const setGame = (status: string) => client.operator('PATCH', `/games/${gameId}`, { status });
  const settle = (settings: Json, { partnerId } = partner) =>
    client.operator('PATCH', `/partners/${partnerId}`, settings);

  describe('errors of a spin', () => {
    test('answers KS-4111 to a spin that reuses the requestId of a different request', async () => {
      const requestId = 'conflict';
      expect((await spin({ requestId })).status).toBe(200);
      for (const more of [
        { playerId: 'q' },
        { wagerUsd: 1 },
        { wagerUsd: 1e-9 },
        { gameId: 2_000_000_000 },
      ]) {
        expect(await spin({ requestId, ...more })).toMatchObject(failed(409, 'KS-4111'));
      }
      // The gameId of this request equals the id of the first game modulo 2^32. It is still another game, so
      // the requestId conflicts at any wager.
      const alias = await spin({ requestId, gameId: gameId + 2 ** 32, wagerUsd: 1e-9 });
      expect(alias).toMatchObject(failed(409, 'KS-4111'));
    });

    test('answers KS-4225 to a spin above an enforced balance, and changes nothing', async () => {
      const poor = await client.newPartner({ balanceMode: 'enforce', openingBalanceUsd: WAGER - 0.01 });
      const game = await client.newGame(poor.key, parSheet('classic-3-reel'));
      const sent = { gameId: game, playerId: 'p', wagerUsd: WAGER, requestId: 'r' };
      expect(await client.spin(poor.key, sent)).toMatchObject(failed(400, 'KS-4225'));
      const player = await client.partner('GET', '/players/p', poor.key);
      expect(player).toMatchObject(failed(404, 'KS-4204'));
      await settle({ openingBalanceUsd: WAGER }, poor);
      expect((await client.spin(poor.key, sent)).status).toBe(200);
    });

    test('answers KS-5011 to a spin whose maximum payout exceeds the funding, whatever its outcome', async () => {
      const funded = await client.newPartner({ fundingUsd: 9.624999 });
      const game = await client.newGame(funded.key, parSheet('classic-3-reel'));
      const sent = { gameId: game, playerId: 'p', wagerUsd: WAGER, requestId: 'r' };
      const refused = await client.spin(funded.key, sent);
      expect(refused).toMatchObject(failed(503, 'KS-5011'));
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      await settle({ fundingUsd: 9.625 }, funded);
      expect((await client.spin(funded.key, sent)).status).toBe(200);
    });

    test("answers KS-5003 to a spin after which the balance would exceed its range, and doesn't deduct the wager", async () => {
      const rich = await client.newPartner({ openingBalanceUsd: 9_000_000_000 });
      const game = await client.newGame(rich.key, parSheet('classic-3-reel'));
      const sent = { gameId: game, playerId: 'p', wagerUsd: WAGER };
      expect(await client.spin(rich.key, sent)).toMatchObject(failed(500, 'KS-5003'));
      expect(await client.partner('GET', '/players/p', rich.key)).toMatchObject(failed(404, 'KS-4204'));
    });
  });

  describe('the order of checks on a spin', () => {
    test('checks a spin in this order: key, body, requestId, game, wager, funding', async () => {
      const large = JSON.stringify(body({ more: 'x'.repeat(4096) }));
      expect(await client.spin('ks_wrong', large)).toMatchObject(failed(401, 'KS-4002'));
      expect(await client.spin(partner.key, large)).toMatchObject(failed(413, 'KS-4101'));
      expect((await spin({ requestId: 'order' })).status).toBe(200);
      expect(await spin({ requestId: 'order', playerId: 7 })).toMatchObject(failed(400, 'KS-4101'));
      await setGame('SUSPENDED');
      await settle({ fundingUsd: 0 });
      try {
        expect(await spin({ requestId: 'order', wagerUsd: 7 })).toMatchObject(failed(409, 'KS-4111'));
        expect(await spin({ wagerUsd: 7 })).toMatchObject(failed(400, 'KS-4202'));
        expect(await spin({ gameId: 2_000_000_000, wagerUsd: 7 })).toMatchObject(failed(403, 'KS-4006'));
        await setGame('ACTIVE');
        expect(await spin({ wagerUsd: 7 })).toMatchObject(failed(400, 'KS-4103'));
        expect(await spin()).toMatchObject(failed(503, 'KS-5011'));
      } finally {
        await setGame('ACTIVE');
        await settle({ fundingUsd: null });
      }
    });

    test('replays a spin even if its game was suspended and its funding withdrawn afterwards', async () => {
      const first = await spin({ requestId: 'since' });
      await setGame('SUSPENDED');
      await settle({ fundingUsd: 0 });
      const again = await spin({ requestId: 'since' });
      await settle({ fundingUsd: null });
      await setGame('ACTIVE');
      expect(again.status).toBe(200);
      expect(again.text).toBe(first.text);
      expect(again.headers.get('idempotent-replayed')).toBe('true');
    });

    test('leaves a requestId unbound after every spin that was refused', async () => {
      const requestId = 'unbound';
      expect((await spin({ requestId, wagerUsd: 7 })).status).toBe(400);
      expect((await spin({ requestId, gameId: 2_000_000_000 })).status).toBe(403);
      expect((await spin({ requestId, playerId: '' })).status).toBe(400);
      await setGame('SUSPENDED');
      expect((await spin({ requestId, playerId: 'q' })).status).toBe(400);
      await setGame('ACTIVE');
      await settle({ fundingUsd: 1 });
      expect((await spin({ requestId, playerId: 'r' })).status).toBe(503);
      await settle({ fundingUsd: null });
      const happened = await spin({ requestId });
      expect(happened.status).toBe(200);
      expect(happened.headers.get('idempotent-replayed')).toBeNull();
    });
  });

  describe('errors of a PAR sheet upload', () => {
    const upload = (sheet: unknown) => client.partner('POST', '/par-sheets', partner.key, sheet);

    test.each(PAR_FAULTS)('answers KS-4104 to a PAR sheet where %s', async (_what, path, spoil) => {
      const answer = await upload(spoiled(spoil));
      expect(answer).toMatchObject(failed(400, 'KS-4104'));
      expect(pathsOf(answer)).toContain(path);
    });

    test('names every fault of a PAR sheet that has several', async () => {
      const answer = await upload({ gameTitle: 7, numReels: 'x', symbols: {}, tiers: [{}] });
      expect(answer).toMatchObject(failed(400, 'KS-4104'));
      expect(pathsOf(answer)).toEqual(
        expect.arrayContaining(['/combinations', '/gameTitle', '/numReels', '/symbols', '/tiers/0/tierId']),
      );
    });

    test('stores a PAR sheet of 10,240 bytes, and answers 413 KS-4101 to a longer one, also in chunks', async () => {
      const sheet = JSON.stringify(parSheet('classic-3-reel'));
      const head = [`POST ${BASE}/par-sheets HTTP/1.1`, `X-API-Key: ${partner.key}`];
      for (const [size, status] of [
        [10_240, 201],
        [10_241, 413],
        [200_000, 413],
      ] as const) {
        const text = sheet + ' '.repeat(size - sheet.length);
        for (const answer of [
          await raw(client.base, [...head, `Content-Length: ${size}`], text),
          await raw(client.base, [...head, 'Transfer-Encoding: chunked'], chunked(text)),
        ]) {
          expect(answer.status, `${size} bytes`).toBe(status);
          if (status === 413) expect(JSON.parse(answer.body)).toMatchObject({ errorCode: 'KS-4101' });
        }
      }
    });
  });

  describe('errors of a game registration', () => {
    const register = async (more: Json, key = partner.key) => {
      const sheets = await client.partner<{ parSheets: { parSheetId: number }[] }>(
        'GET',
        '/par-sheets',
        partner.key,
      );
      const { parSheetId } = sheets.body.parSheets[0]!;
      return client.partner('POST', '/games', key, {
        parSheetId,
        displayName: 'G',
        configName: 'G',
        ...more,
      });
    };

    test('answers KS-4108 to a game registration with a configName that the partner already uses', async () => {
      expect((await register({ configName: 'TAKEN', gameType: 'slot', minWagerUsd: 0.25 })).status).toBe(201);
      expect(await register({ configName: 'TAKEN' })).toMatchObject(failed(409, 'KS-4108'));
    });
  });

  test('answers KS-4215 to an unknown path or method, but only after it has checked the key', async () => {
    for (const [method, path] of [
      ['GET', `${BASE}/`],
      ['GET', `${BASE}/nowhere/at/all`],
      ['GET', `${BASE}/spin`],
      ['PUT', `${BASE}/games`],
      ['DELETE', `${BASE}/par-sheets`],
      ['PATCH', `${BASE}/version`],
      ['POST', `${BASE}/version`],
    ] as const) {
      const { key } = partner;
      expect(await client.request(method, path, { key }), `${method} ${path}`).toMatchObject(
        failed(404, 'KS-4215'),
      );
      expect(await client.request(method, path)).toMatchObject(failed(401, 'KS-4001'));
    }
    expect(await client.request('GET', '/elsewhere')).toMatchObject(failed(404, 'KS-4215'));
    expect(await client.operator('PUT', '/partners')).toMatchObject(failed(404, 'KS-4215'));
    const head = await raw(client.base, [`HEAD ${BASE}/spin HTTP/1.1`, `X-API-Key: ${partner.key}`]);
    expect(head).toMatchObject({ status: 404, body: '' });
    expect(Number(head.headers.get('content-length'))).toBeGreaterThan(0);
  });

  // This test must be last, because it stops the worker and starts it again.
  test('answers KS-4203 for an empty queue and KS-5012 for a game without a block, until blocks arrive', async () => {
    const { key } = await client.newPartner({ minReadyBlocks: 1 });
    const drained = await client.newGame(key, parSheet('classic-3-reel'));
    const outcomesReady = async () =>
      (await client.operator<{ queue: { outcomesReady: number } }>('GET', `/games/${drained}`)).body.queue
        .outcomesReady;
    await until(async () => (await outcomesReady()) === 4096, 'the queue is as full as demand calls for');
    await worker.stop();
    const url = `${client.base}${BASE}/spin`;
    const headers = { 'X-API-Key': key };
    const sent = { gameId: drained, playerId: 'p', wagerUsd: WAGER };
    const run = await autocannon({
      url,
      method: 'POST',
      headers,
      body: JSON.stringify(sent),
      amount: 4096,
      connections: 16,
    });
    expect(run['2xx']).toBe(4096);
    const exhausted = await client.spin(key, { ...sent, requestId: 'r' });
    expect(exhausted).toMatchObject(failed(503, 'KS-4203'));
    expect(Number(exhausted.headers.get('retry-after'))).toBeGreaterThan(0);

    const next = await client.newPartner({ fundingUsd: 0 });
    const uploaded = await client.partner('POST', '/par-sheets', next.key, parSheet('classic-3-reel'));
    const made = await client.partner('POST', '/games', next.key, {
      parSheetId: uploaded.body.parSheetId,
      displayName: 'New',
      configName: 'NEW',
    });
    const fresh = { ...sent, gameId: made.body.gameConfigId, requestId: 'n' };
    const early = await client.spin(next.key, fresh);
    expect(early, 'funding comes before the queue').toMatchObject(failed(503, 'KS-5011'));
    await settle({ fundingUsd: null }, next);
    expect(await client.spin(next.key, fresh)).toMatchObject(failed(503, 'KS-5012'));

    worker = await startService(stores, { ROLES: 'worker' });
    for (const [of, again] of [
      [key, { ...sent, requestId: 'r' }],
      [next.key, fresh],
    ] as const) {
      await until(async () => (await client.spin(of, again)).status === 200, 'the same spin is dealt');
    }
  });
});
