/**
 * Tests the operator API: partners and their settings, keys, games, blocks, PAR sheets, and the audit log of
 * all changes.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { settings } from '../../../src/api/partners/contract.js';
import { SETTING_LIST } from '../../../src/domain/partnerSettings.js';
import { columnOf } from '../../../src/postgres/statements.js';
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
const { stores, service: client, sql } = world(patient);
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
