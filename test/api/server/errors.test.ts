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
  let stranger: TestPartner;

  beforeAll(async () => {
    stores = await freshStores();
    const patient = constants({ authFailureLimit: 1_000_000 });
    worker = await startService(stores, { ...patient, ROLES: 'worker' });
    client = await startService(stores, { ...patient, ROLES: 'http' });
    partner = await client.newPartner();
    gameId = await client.newGame(partner.key, parSheet('classic-3-reel'));
    stranger = await client.newPartner();
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
    test('answers KS-4006 to a spin of a game that is unknown or belongs to another partner', async () => {
      for (const id of [2_000_000_000, Number.MAX_SAFE_INTEGER]) {
        expect(await spin({ gameId: id })).toMatchObject(failed(403, 'KS-4006'));
      }
      expect(await spin({}, stranger.key)).toMatchObject(failed(403, 'KS-4006'));
    });

    test('answers KS-4102 to a spin without its required fields, and names each of them', async () => {
      for (const names of [['gameId'], ['playerId'], ['wagerUsd'], ['gameId', 'playerId', 'wagerUsd']]) {
        const sent: Json = body();
        for (const name of names) delete sent[name];
        const answer = await client.spin(partner.key, sent);
        expect(answer).toMatchObject(failed(400, 'KS-4102'));
        expect(pathsOf(answer)).toEqual(names.map((name) => `/${name}`));
      }
    });

    test.each<[string, unknown[]]>([
      ['gameId', ['1', 1.5, 0, -1, null, true, [], {}, 2 ** 53]],
      ['playerId', ['', 7, null, [], {}, 'a\u0000b', '\ud800', 'x'.repeat(129), '\u0085']],
      ['wagerUsd', ['0.25', null, true, [], {}]],
      ['requestId', ['', 7, null, [], {}, 'a\nb', '\udfff', '🎰'.repeat(129)]],
    ])('answers KS-4101 to a spin whose %s has the wrong type or is out of range', async (name, values) => {
      for (const value of values) {
        const answer = await spin({ [name]: value });
        expect(answer, JSON.stringify(value)).toMatchObject(failed(400, 'KS-4101'));
        expect(new Set(pathsOf(answer))).toEqual(new Set([`/${name}`]));
      }
    });

    test('names every fault of a spin that has several', async () => {
      const several = await client.spin(partner.key, {
        gameId: 'x',
        playerId: '',
        wagerUsd: {},
        requestId: 1,
      });
      expect(several).toMatchObject(failed(400, 'KS-4101'));
      expect(pathsOf(several)).toEqual(['/gameId', '/playerId', '/requestId', '/wagerUsd']);
    });

    test.each([0.2500001, 0, -0.25, 0.2499999999999999, 25, 1e300, 1e-300])(
      'answers KS-4103 to a spin of %d USD on a game of 0.25 USD',
      async (wagerUsd) => expect(await spin({ wagerUsd })).toMatchObject(failed(400, 'KS-4103')),
    );

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

    test("answers KS-4205 to a game registration on a PAR sheet that is unknown or another partner's", async () => {
      expect(await register({ parSheetId: 2_000_000_000 })).toMatchObject(failed(404, 'KS-4205'));
      expect(await register({}, stranger.key)).toMatchObject(failed(404, 'KS-4205'));
    });

    test('answers KS-4205 to a game registration whose PAR sheet id exceeds the range of the database', async () => {
      expect(await register({ parSheetId: 2 ** 31 })).toMatchObject(failed(404, 'KS-4205'));
      expect(await register({ parSheetId: Number.MAX_SAFE_INTEGER })).toMatchObject(failed(404, 'KS-4205'));
    });

    test('answers KS-4216 to a game registration with another game type than slot', async () => {
      for (const gameType of ['raffle', 'scratch_card', '', 7, null]) {
        expect(await register({ gameType })).toMatchObject(failed(400, 'KS-4216'));
      }
    });

    test('answers KS-4103 to a game registration whose wager range is not the denomination of the PAR sheet', async () => {
      const answer = await register({ minWagerUsd: 0.1, maxWagerUsd: 0.25, wagerIncrementUsd: 1 });
      expect(answer).toMatchObject(failed(400, 'KS-4103'));
      expect(pathsOf(answer)).toEqual(['/minWagerUsd', '/wagerIncrementUsd']);
    });

    test('answers KS-4108 to a game registration with a configName that the partner already uses', async () => {
      expect((await register({ configName: 'TAKEN', gameType: 'slot', minWagerUsd: 0.25 })).status).toBe(201);
      expect(await register({ configName: 'TAKEN' })).toMatchObject(failed(409, 'KS-4108'));
    });

    test('answers KS-4101 to a game registration with invalid fields, and KS-4102 to one without required fields', async () => {
      const wrong = {
        parSheetId: '1',
        displayName: '',
        configName: 'lower',
        minWagerUsd: '1',
        maxWagerUsd: null,
      };
      const answer = await register(wrong);
      expect(answer).toMatchObject(failed(400, 'KS-4101'));
      expect(pathsOf(answer)).toEqual(
        Object.keys(wrong)
          .map((name) => `/${name}`)
          .sort(),
      );
      const empty = await client.partner('POST', '/games', partner.key, {});
      expect(empty).toMatchObject(failed(400, 'KS-4102'));
      expect(pathsOf(empty)).toEqual(['/configName', '/displayName', '/parSheetId']);
      for (const text of ['', '[]', '{"a":', 'null']) {
        const refused = await client.partner('POST', '/games', partner.key, text);
        expect(refused).toMatchObject(failed(400, 'KS-4101'));
      }
    });
  });

  test("answers KS-4204 for a player and KS-4215 for a spin that the partner doesn't have", async () => {
    const spun = await spin({ playerId: 'a/b %ü' });
    const own = encodeURIComponent('a/b %ü');
    expect((await client.partner('GET', `/players/${own}`, partner.key)).status).toBe(200);
    for (const [path, code] of [
      [`/players/${own}`, 'KS-4204'],
      [`/players/${own}/spins`, 'KS-4204'],
      [`/spins/${spun.body.spinId}`, 'KS-4215'],
    ] as const) {
      expect(await client.partner('GET', path, stranger.key)).toMatchObject(failed(404, code));
    }
    for (const id of ['0'.repeat(32), 'f'.repeat(32), 'x', '%20']) {
      expect(await client.partner('GET', `/spins/${id}`, partner.key)).toMatchObject(failed(404, 'KS-4215'));
    }
    for (const path of ['/players/%ff', '/players/%', '/players/%ed%a0%80/spins', '/spins/%c3']) {
      expect(await client.partner('GET', path, partner.key)).toMatchObject(failed(400, 'KS-4101'));
    }
    for (const query of ['page=0', 'limit=101', 'page=x']) {
      const refused = await client.partner('GET', `/players/${own}/spins?${query}`, partner.key);
      expect(refused).toMatchObject(failed(400, 'KS-4101'));
    }
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
