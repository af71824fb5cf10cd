/**
 * Tests the operator API: partners, their settings, caps and keys, games, blocks, PAR sheets, and the audit
 * log of all changes.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { settings } from '../../../src/api/partners/contract.js';
import { SETTING_LIST } from '../../../src/domain/partnerSettings.js';
import { columnOf } from '../../../src/postgres/statements.js';
import { noticeExpiringKeys } from '../../../src/webhooks/notices.store.js';
import { world } from '../../setup/world.js';
import type { Client } from '../../support/client.js';
import { expectWithin } from '../../support/expectWithin.js';
import { ROOT } from '../../support/root.js';
import { constants, startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

type Json = Record<string, unknown>;
interface AuditEntry {
  auditId: number;
  at: string;
  actor: string;
  action: string;
  subject: string;
  before: Json | null;
  after: Json | null;
}

const patient = constants({ authFailureLimit: 1_000_000 });
const { stores, service: client, sql, ownSql, partner } = world(patient);
/** A second front end on the same stores. */
let other: Client & { stop(): Promise<void> };

beforeAll(async () => {
  other = await startService(stores, { ...patient, ROLES: 'http' });
});

afterAll(async () => {
  await other.stop();
});

const failed = (status: number, errorCode: string) => ({ status, body: { status: 'error', errorCode } });
const newPartner = (slug: string, more: Json = {}) =>
  client.operator('POST', '/partners', { slug, name: 'Acme', environment: 'sandbox', ...more });

/** Returns the audit log entries of a subject, oldest first. */
async function audited(subject: string): Promise<AuditEntry[]> {
  const { body } = await client.operator<{ entries: AuditEntry[] }>('GET', '/audit-log?limit=100');
  return body.entries.filter((entry) => entry.subject === subject).reverse();
}

/** The settings that are whole numbers, so that a new one joins the tests by itself. */
const LIMITS = Object.entries<{ type?: unknown; anyOf?: unknown; minimum?: number; maximum?: number }>(
  settings,
).flatMap(([name, { type, minimum, maximum }]) =>
  type === 'integer' ? [{ name, least: minimum!, most: maximum! }] : [],
);
const limits = (choose: (limit: (typeof LIMITS)[number]) => number) =>
  Object.fromEntries(LIMITS.map((limit) => [limit.name, choose(limit)]));
const SETTINGS = {
  ...limits(({ most }) => most),
  openingBalanceUsd: 12.345678,
  balanceMode: 'enforce',
  fundingUsd: 0.000001,
  largeWinThresholdUsd: 0,
  contactEmail: 'ops@example.com',
};
/** Defaults in the table of docs/contract.md §15.1. A row may name several settings, and their defaults. */
const CONTRACT = readFileSync(join(ROOT, 'docs/contract.md'), 'utf8');
const DOCUMENTED = Object.fromEntries(
  [
    ...CONTRACT.slice(CONTRACT.indexOf('### 15.1'), CONTRACT.indexOf('### 15.2')).matchAll(
      /^\| (`\w+`.*?) \| ([^|;]+)/gm,
    ),
  ].flatMap(([, names, values]) =>
    [...names!.matchAll(/`(\w+)`/g)].map(([, name], i) => [name, values!.split(',')[i]]),
  ),
);
const DEFAULTS = {
  ...limits(({ name }) => Number(DOCUMENTED[name])),
  balanceMode: 'track',
  fundingUsd: null,
  largeWinThresholdUsd: 100,
  contactEmail: null,
};

describe('partners in the operator API', () => {
  test('creates a partner with the documented defaults of its environment', async () => {
    const sandbox = await newPartner('defaults-sandbox');
    expect(sandbox).toMatchObject({
      status: 201,
      body: { slug: 'defaults-sandbox', name: 'Acme', isActive: true, openingBalanceUsd: 1000, ...DEFAULTS },
    });
    const production = await newPartner('defaults-production', { environment: 'production' });
    expect(production.body).toMatchObject({ environment: 'production', openingBalanceUsd: 0, ...DEFAULTS });
  });

  test('a migration gives an earlier partner the same setting that a new partner begins with', async () => {
    const columns = await sql<{ column_name: string; column_default: string | null }[]>`
      SELECT column_name, column_default FROM information_schema.columns WHERE table_name = 'partners'`;
    const inMigrations = new Map(columns.map((row) => [row.column_name, row.column_default]));
    for (const { name, initial } of SETTING_LIST) {
      const value = inMigrations.get(columnOf(name));
      expect(value, name).not.toBeUndefined();
      if (value !== null) expect(value, name).toBe(String(initial));
    }
  });

  test('creates a partner with every setting, and reads, lists and changes these settings', async () => {
    const made = await newPartner('all-settings', SETTINGS);
    expect(made).toMatchObject({ status: 201, body: SETTINGS });
    expect(Object.keys(SETTINGS).sort()).toEqual(Object.keys(settings).sort());
    const id = made.body.partnerId;
    expect((await client.operator('GET', `/partners/${id}`)).body).toEqual(made.body);
    const list = await client.operator<{ partners: Json[] }>('GET', '/partners');
    expect(list.body.partners).toContainEqual(made.body);
    for (const change of [
      ...LIMITS.map(({ name, least }) => ({ [name]: least })),
      { openingBalanceUsd: 0 },
      { balanceMode: 'track' },
      { fundingUsd: null },
      { fundingUsd: 9_000_000_000 },
      { largeWinThresholdUsd: 0.01 },
      { contactEmail: null },
      { name: 'Ünïcode 🎰' },
      { isActive: false },
      {},
    ]) {
      const before = (await client.operator('GET', `/partners/${id}`)).body;
      const changed = await client.operator('PATCH', `/partners/${id}`, change);
      expect(changed, JSON.stringify(change)).toMatchObject({ status: 200, body: { ...before, ...change } });
      expect((await client.operator('GET', `/partners/${id}`)).body).toEqual(changed.body);
    }
  });

  test('never changes the slug or environment of a partner', async () => {
    const { body } = await newPartner('for-life');
    await client.operator('PATCH', `/partners/${body.partnerId}`, { slug: 'new', environment: 'production' });
    expect((await client.operator('GET', `/partners/${body.partnerId}`)).body).toEqual(body);
  });

  test('refuses a partner whose slug is taken with KS-4211', async () => {
    await newPartner('taken');
    expect(await newPartner('taken')).toMatchObject(failed(409, 'KS-4211'));
  });
});

describe('games in the operator API', () => {
  const queueOf = async (gameId: number) =>
    (await client.operator<{ queue: Record<string, number> }>('GET', `/games/${gameId}`)).body.queue;

  test('refuses spins of a suspended game on every front end within a second, until it is active again', async () => {
    const { key, partnerId } = await client.newPartner();
    const gameId = await client.newGame(key, parSheet('classic-3-reel'));
    const spin = (from: Client) => from.spin(key, { gameId, playerId: 'p', wagerUsd: 0.25 });
    const within = async (status: number, started = performance.now()) => {
      await until(async () => (await spin(other)).status === status, `the other front end answers ${status}`);
      expectWithin(performance.now() - started, 1000);
    };
    await within(200);
    const suspended = await client.operator('PATCH', `/games/${gameId}`, { status: 'SUSPENDED' });
    expect(suspended).toMatchObject({
      status: 200,
      body: { gameConfigId: gameId, partnerId, status: 'SUSPENDED' },
    });
    expect(await spin(client)).toMatchObject(failed(400, 'KS-4202'));
    await within(400);
    expect(await spin(other)).toMatchObject(failed(400, 'KS-4202'));
    const list = await client.partner<{ games: Json[] }>('GET', '/games', key);
    expect(list.body.games).toMatchObject([{ gameConfigId: gameId, status: 'SUSPENDED' }]);
    expect((await client.operator('PATCH', `/games/${gameId}`, { status: 'ACTIVE' })).status).toBe(200);
    expect((await spin(client)).status).toBe(200);
    await within(200);
  });

  test('shows the queue of a game and, once its spins are committed, its totals', async () => {
    const { key } = await client.newPartner();
    const gameId = await client.newGame(key, parSheet('classic-3-reel'));
    const fresh = await client.operator('GET', `/games/${gameId}`);
    expect(fresh.body).toMatchObject({ queue: { consumed: 0 }, totals: { spins: 0, actualRtp: null } });
    let paidOutUsd = 0;
    for (let i = 0; i < 4; i++) {
      const spun = await client.spin<{ outcome: { payoutUsd: number } }>(key, {
        gameId,
        playerId: 'p',
        wagerUsd: 0.25,
      });
      paidOutUsd += spun.body.outcome.payoutUsd;
    }
    const totals = { spins: 4, wageredUsd: 1, paidOutUsd, actualRtp: paidOutUsd };
    await until(async () => {
      const { body } = await client.operator<{ totals: Json }>('GET', `/games/${gameId}`);
      return JSON.stringify(body.totals) === JSON.stringify(totals);
    }, 'the totals are those of the four spins');
    expect((await queueOf(gameId)).consumed).toBe(4);
  });

  test('adds as many blocks to a game as the operator requests, beyond what its demand needs', async () => {
    const { key } = await client.newPartner({ minReadyBlocks: 1 });
    const gameId = await client.newGame(key, parSheet('penny-sub-cent'));
    await until(
      async () => (await queueOf(gameId)).readyBlocks === 2,
      'the queue is as full as demand calls for',
    );
    const accepted = await client.operator('POST', `/games/${gameId}/blocks`, { count: 3 });
    expect(accepted).toMatchObject({ status: 202, body: { gameConfigId: gameId, requested: 3 } });
    await until(async () => (await queueOf(gameId)).readyBlocks === 5, 'three more blocks are ready');
  });
});

describe('retired PAR sheets', () => {
  test('refuses a new game on a retired PAR sheet (KS-4208) and unlists the sheet, but its old games go on', async () => {
    const { key } = await client.newPartner();
    const gameId = await client.newGame(key, parSheet('classic-3-reel'));
    const list = () => client.partner<{ parSheets: { parSheetId: number }[] }>('GET', '/par-sheets', key);
    const parSheetId = (await list()).body.parSheets[0]!.parSheetId;
    const retired = await client.operator('PATCH', `/par-sheets/${parSheetId}`, { status: 'RETIRED' });
    expect(retired).toMatchObject({ status: 200, body: { parSheetId, status: 'RETIRED' } });
    const register = await client.partner('POST', '/games', key, {
      parSheetId,
      displayName: 'G',
      configName: 'G',
    });
    expect(register).toMatchObject(failed(400, 'KS-4208'));
    expect((await list()).body.parSheets).toEqual([]);
    expect((await client.spin(key, { gameId, playerId: 'p', wagerUsd: 0.25 })).status).toBe(200);
  });
});

describe('caps of a partner', () => {
  const refused = { status: 409, body: { errorCode: 'KS-4114' } };

  test("refuses games, active PAR sheets and webhooks beyond a partner's cap (KS-4114), which operators can change", async () => {
    const { partnerId, key } = await client.newPartner();
    const first = await client.operator('GET', `/partners/${partnerId}`);
    expect(first.body).toMatchObject({ maxGames: 1000, maxParSheets: 1000, maxWebhooks: 50 });
    const capped = await client.operator('PATCH', `/partners/${partnerId}`, {
      maxGames: 2,
      maxParSheets: 2,
      maxWebhooks: 1,
    });
    expect(capped.body).toMatchObject({ maxGames: 2, maxParSheets: 2, maxWebhooks: 1 });

    const upload = () => client.partner('POST', '/par-sheets', key, parSheet('classic-3-reel'));
    const sheets = await Promise.all(Array.from({ length: 6 }, upload));
    const stored = sheets.filter(({ status }) => status === 201);
    expect(stored).toHaveLength(2);
    expect(sheets.find(({ status }) => status !== 201)).toMatchObject(refused);
    const parSheetId = stored[0]!.body.parSheetId as number;

    const register = (_: unknown, i: number) =>
      client.partner('POST', '/games', key, { parSheetId, displayName: 'g', configName: `G_${i}` });
    const games = await Promise.all(Array.from({ length: 6 }, register));
    expect(games.filter(({ status }) => status === 201)).toHaveLength(2);
    expect(games.find(({ status }) => status !== 201)).toMatchObject(refused);

    const hook = { url: 'http://localhost:1/', events: ['spin.large_win'] };
    expect((await client.partner('POST', '/webhooks', key, hook)).status).toBe(201);
    expect(await client.partner('POST', '/webhooks', key, hook)).toMatchObject(refused);

    // A retired PAR sheet does not count against the partner's maxParSheets. A game that the operator creates
    // does not count against the partner's maxGames.
    const retired = stored[1]!.body.parSheetId as number;
    expect((await client.operator('PATCH', `/par-sheets/${retired}`, { status: 'RETIRED' })).status).toBe(
      200,
    );
    expect((await upload()).status).toBe(201);
    const raffle = {
      displayName: 'r',
      configName: 'R',
      ticketPriceUsd: 1,
      poolSize: 2,
      prizes: [{ prizeName: 'One', prizeTier: 1, valueUsd: 1, count: 1 }],
    };
    expect((await client.operator('POST', `/partners/${partnerId}/raffles`, raffle)).status).toBe(201);
    expect(
      await client.partner('POST', '/games', key, { parSheetId, displayName: 'g', configName: 'X' }),
    ).toMatchObject(refused);
    await client.operator('PATCH', `/partners/${partnerId}`, { maxGames: 3 });
    expect(
      (await client.partner('POST', '/games', key, { parSheetId, displayName: 'g', configName: 'X' })).status,
    ).toBe(201);
  });

  test('lists each PAR sheet with the same fields as the response to its upload', async () => {
    const { key } = await client.newPartner();
    const made = await client.partner('POST', '/par-sheets', key, parSheet('double-strike'));
    const list = await client.partner('GET', '/par-sheets', key);
    expect(list.body).toEqual({ parSheets: [made.body] });
  });
});

describe('rotated keys', () => {
  const keysPath = (): string => `/partners/${partner.partnerId}/keys`;

  async function issue(body: Json = {}): Promise<{ keyId: number; apiKey: string }> {
    const answer = await client.operator<{ keyId: number; apiKey: string }>('POST', keysPath(), body);
    expect(answer.status).toBe(201);
    return answer.body;
  }

  const rotate = (keyId: number, body?: Json) =>
    client.operator<Json & { apiKey: string; keyId: number }>('POST', `${keysPath()}/${keyId}/rotate`, body);
  const patch = (keyId: number, body: Json) => client.operator<Json>('PATCH', `${keysPath()}/${keyId}`, body);
  const statusWith = async (apiKey: string): Promise<number> =>
    (await client.partner('GET', '/version', apiKey)).status;
  const listed = async (keyId: number): Promise<Json> => {
    const { body } = await client.operator<{ keys: Json[] }>('GET', keysPath());
    return body.keys.find((key) => key.keyId === keyId)!;
  };
  const inHours = (hours: number): string => new Date(Date.now() + hours * 3_600_000).toISOString();

  test('a rotation issues a key with the same name, and both keys are valid until the overlap ends', async () => {
    const old = await issue({ name: 'back end' });
    const before = Date.now();
    const { status, body } = await rotate(old.keyId, { reason: 'yearly' });
    const after = Date.now();
    expect(status).toBe(201);
    expect(body).toMatchObject({ name: 'back end', expiresAt: null, replacedKeyId: old.keyId });
    const ends = Date.parse(String(body.replacedExpiresAt)) - 24 * 3_600_000;
    expect(ends).toBeGreaterThanOrEqual(before);
    expect(ends).toBeLessThanOrEqual(after);
    expect([await statusWith(old.apiKey), await statusWith(body.apiKey)]).toEqual([200, 200]);
    expect(await listed(old.keyId)).toMatchObject({ status: 'active', expiresAt: body.replacedExpiresAt });
    const { body: log } = await client.operator<{ entries: Json[] }>('GET', '/audit-log?action=key.&limit=2');
    expect(log.entries).toMatchObject([
      {
        action: 'key.expiry',
        subject: `key:${old.keyId}`,
        before: { expiresAt: null },
        after: { expiresAt: body.replacedExpiresAt, reason: 'yearly' },
      },
      { action: 'key.issue', subject: `key:${body.keyId}`, after: { replaces: old.keyId, reason: 'yearly' } },
    ]);
    expect(JSON.stringify(log)).not.toContain(body.apiKey);
  });

  test('every front end refuses the replaced key once the overlap has ended', async () => {
    const old = await issue();
    const { body } = await rotate(old.keyId);
    expect(await statusWith(old.apiKey)).toBe(200);
    expect((await patch(old.keyId, { expiresAt: new Date(Date.now() + 1500).toISOString() })).status).toBe(
      200,
    );
    await until(async () => (await statusWith(old.apiKey)) === 401, 'the replaced key is refused');
    expect(await client.partner('GET', '/version', old.apiKey)).toMatchObject({
      body: { errorCode: 'KS-4004' },
    });
    expect(await statusWith(body.apiKey)).toBe(200);
    // A key that has expired stays refused.
    for (const refused of [await patch(old.keyId, { expiresAt: null }), await rotate(old.keyId)])
      expect(refused).toMatchObject({
        status: 400,
        body: { errorCode: 'KS-4101', details: [{ message: 'The key has expired. Issue another key.' }] },
      });
  });

  test('a rotation never extends the validity of the replaced key', async () => {
    const expiresAt = inHours(2);
    const old = await issue({ expiresAt });
    const given = { name: 'new', expiresAt: inHours(48), overlapSeconds: 36_000 };
    const { body } = await rotate(old.keyId, given);
    expect(body).toMatchObject({ name: 'new', expiresAt: given.expiresAt, replacedExpiresAt: expiresAt });
    const short = await rotate(old.keyId, { overlapSeconds: 60 });
    expect(String(short.body.replacedExpiresAt) < expiresAt).toBe(true);
  });

  test('an expiry can be moved or removed', async () => {
    const { keyId } = await issue({ expiresAt: inHours(1) });
    const later = inHours(5);
    expect(await patch(keyId, { expiresAt: later, reason: 'a slow partner' })).toMatchObject({
      status: 200,
      body: { keyId, expiresAt: later, status: 'active' },
    });
    expect((await patch(keyId, { expiresAt: null })).body).toMatchObject({ expiresAt: null });
    const { body } = await client.operator<{ entries: Json[] }>(
      'GET',
      '/audit-log?action=key.expiry&limit=2',
    );
    expect(body.entries).toMatchObject([
      { before: { expiresAt: later }, after: { expiresAt: null } },
      { after: { expiresAt: later, reason: 'a slow partner' } },
    ]);
  });

  test('a revoked key is neither rotated nor changed', async () => {
    const { keyId } = await issue();
    await client.operator('DELETE', `${keysPath()}/${keyId}`);
    for (const refused of [await patch(keyId, { expiresAt: null }), await rotate(keyId)])
      expect(refused.body.errorCode).toBe('KS-4101');
  });

  test('a new expiry is announced to the partner, even if the earlier expiry was announced', async () => {
    const { keyId } = await issue();
    await ownSql`UPDATE api_keys SET created_at = now() - interval '60 days' WHERE key_id = ${keyId}`;
    await ownSql`INSERT INTO key_notices (key_id, days) VALUES (${keyId}, 1)`;
    const { body } = await rotate(keyId);
    interface Event {
      readonly data: Json;
    }
    const announced = async (): Promise<Event | undefined> => {
      const path = '/events?limit=100';
      const answer = await client.partner<{ events: Event[] }>('GET', path, body.apiKey);
      return answer.body.events.find(({ data }) => data.keyId === keyId);
    };
    await noticeExpiringKeys(ownSql, new Date(Date.now() + 1000));
    expect((await announced())!.data).toMatchObject({ expiresAt: body.replacedExpiresAt, daysLeft: 1 });
  });
});

describe('the audit log in the operator API', () => {
  test('records who changed what and when, with the values before and after, for every change', async () => {
    const from = Date.now() - 1000;
    const { key, partnerId } = await client.newPartner();
    await client.operator('PATCH', `/partners/${partnerId}`, { spinRateLimit: 5, isActive: false });
    await client.operator('PATCH', `/partners/${partnerId}`, { isActive: true });
    const gameId = await client.newGame(key, parSheet('penny-sub-cent'));
    await client.operator('PATCH', `/games/${gameId}`, { status: 'SUSPENDED' });
    await client.operator('POST', `/games/${gameId}/blocks`, { count: 2 });
    const sheets = await client.partner<{ parSheets: { parSheetId: number }[] }>('GET', '/par-sheets', key);
    const { parSheetId } = sheets.body.parSheets[0]!;
    await client.operator('PATCH', `/par-sheets/${parSheetId}`, { status: 'RETIRED' });
    const keys = await client.operator<{ keys: { keyId: number }[] }>('GET', `/partners/${partnerId}/keys`);
    const { keyId } = keys.body.keys[0]!;
    await client.operator('DELETE', `/partners/${partnerId}/keys/${keyId}`);

    const partner = await audited(`partner:${partnerId}`);
    expect(partner).toMatchObject([
      { action: 'partner.create', before: null, after: { partnerId, isActive: true } },
      {
        action: 'partner.update',
        before: { spinRateLimit: 1_000_000_000, isActive: true },
        after: { spinRateLimit: 5, isActive: false },
      },
      { action: 'partner.update', before: { isActive: false }, after: { isActive: true } },
    ]);
    const game = await audited(`game:${gameId}`);
    expect(game).toMatchObject([
      { action: 'game.update', before: { status: 'ACTIVE' }, after: { status: 'SUSPENDED' } },
      { action: 'game.blocks', before: { blocksRequested: 0 }, after: { blocksRequested: 2 } },
    ]);
    const sheet = await audited(`par-sheet:${parSheetId}`);
    expect(sheet).toMatchObject([
      { action: 'par-sheet.update', before: { status: 'ACTIVE' }, after: { status: 'RETIRED' } },
    ]);
    const keyEntries = await audited(`key:${keyId}`);
    expect(keyEntries).toMatchObject([
      { action: 'key.issue', before: null, after: { keyId, partnerId } },
      { action: 'key.revoke', before: { revokedAt: null }, after: { revokedAt: expect.any(String) } },
    ]);
    for (const entry of [...partner, ...game, ...sheet, ...keyEntries]) {
      expect(entry.actor).toBe('operator');
      expect(Date.parse(entry.at)).toBeGreaterThan(from);
      expect(Date.parse(entry.at)).toBeLessThanOrEqual(Date.now() + 1000);
    }
  });

  test('records nothing in the audit log for a refused request', async () => {
    const total = async () =>
      (await client.operator<{ total: number }>('GET', '/audit-log?limit=1')).body.total;
    const before = await total();
    await newPartner('taken-again');
    await newPartner('taken-again');
    expect(await total()).toBe(before + 1);
  });

  test('pages through the audit log newest first', async () => {
    const first = await client.operator<{ entries: AuditEntry[] }>('GET', '/audit-log?page=1&limit=4');
    const second = await client.operator<{ entries: AuditEntry[] }>('GET', '/audit-log?page=2&limit=2');
    expect(first.body).toMatchObject({ page: 1, limit: 4 });
    expect(second.body.entries).toEqual(first.body.entries.slice(2));
    const ids = first.body.entries.map((entry) => entry.auditId);
    expect(ids).toEqual([...ids].sort((a, b) => b - a));
  });
});
