/**
 * Tests the operators' search, the search for keys by prefix, and the reasons in the audit log
 * (docs/contract.md §15.8).
 */
import postgres from 'postgres';
import { beforeAll, expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { dealUntil, newTable } from '../../support/rounds.js';
import { parSheet } from '../../support/sheets.js';

const { stores, service } = world();
let partner: { partnerId: number; key: string; slug: string };
let gameId: number;
let spinId: string;

interface Found {
  partners: { partnerId: number; slug: string }[];
  games: { gameConfigId: number; displayName: string }[];
  players: { partnerId: number; playerId: string }[];
  plays: { kind: string; id: string }[];
  keys: { partnerId: number; keyId: number; name: string | null; prefix: string | null }[];
  operators: { name: string; prefix: string | null }[];
}

beforeAll(async () => {
  const made = await service.newPartner();
  const { body } = await service.operator<{ slug: string }>('GET', `/partners/${made.partnerId}`);
  partner = { ...made, slug: body.slug };
  gameId = await service.api.newGame(partner.key, 'golden-reels', parSheet('classic-3-reel'));
  const spun = await service.spin(partner.key, { gameId, playerId: 'alice', wagerUsd: 0.25 });
  spinId = spun.body.spinId as string;
});

const search = async (q: string): Promise<Found> =>
  (await service.operator<Found>('GET', `/search?q=${encodeURIComponent(q)}`)).body;

test('search finds partners, games and keys by part of a name, but players and spins only by the whole name', async () => {
  expect((await search(partner.slug.slice(0, -1))).partners).toMatchObject([
    { partnerId: partner.partnerId },
  ]);
  expect((await search('GOLDEN')).games).toMatchObject([{ gameConfigId: gameId }]);
  expect((await search('alice')).players).toEqual([{ partnerId: partner.partnerId, playerId: 'alice' }]);
  expect((await search(`${partner.slug}/alice`)).players).toHaveLength(1);
  expect((await search('alic')).players).toEqual([]);
  expect((await search(spinId)).plays).toEqual([{ partnerId: partner.partnerId, kind: 'spin', id: spinId }]);
  await service.operator('POST', `/partners/${partner.partnerId}/keys`, { name: 'the lobby' });
  expect((await search('Lobby')).keys).toMatchObject([{ name: 'the lobby' }]);
});

test('search takes its text literally, finds nothing for an empty text, and refuses a text that is too long', async () => {
  expect((await search('%')).partners).toEqual([]);
  expect((await search('  ')).games).toEqual([]);
  const { status, body } = await service.operator('GET', `/search?q=${'x'.repeat(129)}`);
  expect([status, body.errorCode]).toEqual([400, 'KS-4101']);
});

test('records in the audit log the optional reason of every action that stops play, or that ends or replaces something', async () => {
  const { partnerId } = partner;
  const other = await service.newPartner();
  const table = await newTable(service, other.partnerId);
  const round = await dealUntil(service, other.key, table, 'erin', ({ status }) => status === 'OPEN');
  const issued = await service.operator<{ keyId: number }>('POST', `/partners/${partnerId}/keys`, {});
  const { body: sheets } = await service.operator<{ parSheets: { parSheetId: number }[] }>(
    'GET',
    `/par-sheets?partnerId=${partnerId}`,
  );
  for (const name of ['frank', 'grace'])
    await service.operator('POST', '/operators', { name, role: 'auditor' });
  const [, cell] = (await service.operator<{ added: number[] }>('POST', '/cells', { count: 2 })).body.added;
  const rules = {
    enabled: true,
    triggerInterval: 10,
    triggerSplitPct: 100,
    communitySplitPct: 0,
    tiers: [{ tierLevel: 1, tierName: 'One', triggerAtSpins: 100, amountUsd: '1.00' }],
  };
  const today = new Date().toISOString().slice(0, 10);
  const sunsetAt = new Date(Date.now() + 400 * 86_400_000).toISOString();
  const actions: readonly (readonly [string, string, string, Record<string, unknown>?])[] = [
    ['partner.update', 'PATCH', `/partners/${partnerId}`, { maxGames: 7 }],
    ['communal.set', 'PUT', `/games/${gameId}/communal`, rules],
    ['game.update', 'PATCH', `/games/${gameId}`, { status: 'SUSPENDED' }],
    ['par-sheet.update', 'PATCH', `/par-sheets/${sheets.parSheets[0]!.parSheetId}`, { status: 'RETIRED' }],
    ['key.revoke', 'DELETE', `/partners/${partnerId}/keys/${issued.body.keyId}`],
    ['round.close', 'POST', `/rounds/${round.roundId}/close`],
    ['settlement.generate', 'POST', `/partners/${partnerId}/settlements/${today}`],
    ['operator.rotate-key', 'POST', '/operators/frank/rotate', {}],
    ['operator.revoke', 'DELETE', '/operators/grace'],
    ['cell.drain', 'PATCH', `/cells/${cell}`, { isDraining: true }],
    ['partner.move', 'POST', `/partners/${partnerId}/move`, { cell: cell! - 1 }],
    ['api-version.deprecate', 'POST', '/api-versions/v1/deprecate', { sunsetAt }],
  ];
  for (const [action, method, path, body] of actions) {
    const reason = `why ${action}`;
    const answer = await service.operator(
      method,
      body === undefined ? `${path}?reason=${encodeURIComponent(reason)}` : path,
      body && { ...body, reason },
    );
    expect([action, answer.status], answer.text).toEqual([action, expect.toSatisfy((n) => n < 300)]);
    const log = await service.operator<{ entries: { after: { reason?: string } }[] }>(
      'GET',
      `/audit-log?limit=1&action=${action}`,
    );
    expect(log.body.entries).toMatchObject([reasonOf(action, reason)]);
  }
  // Clients that were written before the reason existed send none.
  const again = await service.operator('PATCH', `/games/${gameId}`, { status: 'ACTIVE' });
  expect(again.status).toBe(200);
});

/** Returns the part of an audit log entry that contains the reason. */
const reasonOf = (action: string, reason: string) => ({ action, after: { reason } });

test('finds and lists an API key by its prefix, and stores no more of the key than that', async () => {
  const { partnerId } = partner;
  const made = await service.operator<{ keyId: number; apiKey: string; prefix: string }>(
    'POST',
    `/partners/${partnerId}/keys`,
    { name: 'cashier' },
  );
  const { keyId, apiKey, prefix } = made.body;
  expect(prefix).toBe(apiKey.slice(0, 9));
  const found = [{ partnerId, keyId, name: 'cashier', prefix }];
  expect((await search(prefix)).keys).toEqual(found);
  expect((await search(prefix.slice(0, 8))).keys).toContainEqual(found[0]);
  // Searching with a whole key gives the same result as searching with its prefix.
  expect((await search(apiKey)).keys).toEqual(found);
  expect(
    (await search(prefix.toLowerCase() === prefix ? prefix.toUpperCase() : prefix.toLowerCase())).keys,
  ).toEqual([]);
  const path = `/partners/${partnerId}/keys`;
  const listed = await service.operator<{ keys: { keyId: number; prefix: string | null }[] }>('GET', path);
  expect(listed.body.keys).toContainEqual(expect.objectContaining({ keyId, prefix }));
  const sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  try {
    const rows = await sql`SELECT * FROM api_keys WHERE key_id = ${keyId}`;
    expect(JSON.stringify(rows)).not.toContain(apiKey.slice(0, 10));
    // Keys that were issued by older versions have no prefix.
    await sql`UPDATE api_keys SET prefix = NULL WHERE key_id = ${keyId}`;
    const later = await service.operator<typeof listed.body>('GET', path);
    expect(later.body.keys).toContainEqual(expect.objectContaining({ keyId, prefix: null }));
  } finally {
    await sql.end();
  }
});

test('finds an operator by the prefix of the current key, but not by the prefix of the key before its rotation', async () => {
  const rotate = (body: object) =>
    service.operator<{ apiKey: string; prefix: string }>('POST', '/operators/heidi/rotate', body);
  await service.operator('POST', '/operators', { name: 'heidi', role: 'auditor' });
  const first = (await rotate({})).body;
  expect(first.prefix).toBe(first.apiKey.slice(0, 10));
  expect((await search(first.prefix)).operators).toEqual([{ name: 'heidi', prefix: first.prefix }]);
  expect((await search('HEIDI')).operators).toEqual([{ name: 'heidi', prefix: first.prefix }]);
  const sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  try {
    // An older version of the service changes the hash of a key without updating its prefix.
    await sql`UPDATE operators SET key_hash = sha256('another'::bytea) WHERE name = 'heidi'`;
    expect((await search('heidi')).operators).toEqual([{ name: 'heidi', prefix: null }]);
  } finally {
    await sql.end();
  }
});
