/** A search over everything, lists that operators find things by, and reasons in the audit log (docs/contract.md §15.8). */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freshStores } from '../setup/freshStores.js';
import type { Client } from '../support/client.js';
import { command } from '../support/command.js';
import { dealUntil, newTable } from '../support/rounds.js';
import { startService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import type { TestStores } from '../support/stores.js';

let stores: TestStores;
let service: Client & { stop(): Promise<void> };
let partner: { partnerId: number; key: string; slug: string };
let gameId: number;
let spinId: string;

interface Found {
  partners: { partnerId: number; slug: string }[];
  games: { gameConfigId: number; displayName: string }[];
  players: { partnerId: number; playerId: string }[];
  plays: { kind: string; id: string }[];
  keys: { keyId: number; name: string | null }[];
}

beforeAll(async () => {
  stores = await freshStores();
  service = await startService(stores);
  const made = await service.newPartner();
  const { body } = await service.operator<{ slug: string }>('GET', `/partners/${made.partnerId}`);
  partner = { ...made, slug: body.slug };
  gameId = await service.api.newGame(partner.key, 'golden-reels', parSheet('classic-3-reel'));
  const spun = await service.spin(partner.key, { gameId, playerId: 'alice', wagerUsd: 0.25 });
  spinId = spun.body.spinId as string;
});

afterAll(async () => {
  await service.stop();
  await stores.drop();
});

const search = async (q: string): Promise<Found> =>
  (await service.operator<Found>('GET', `/search?q=${encodeURIComponent(q)}`)).body;

test('a search finds partners, games and keys by a part of their name, players and spins by the whole', async () => {
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

test('a search takes its text as it is, finds nothing at no text, and refuses one that is too long', async () => {
  expect((await search('%')).partners).toEqual([]);
  expect((await search('  ')).games).toEqual([]);
  const { status, body } = await service.operator('GET', `/search?q=${'x'.repeat(129)}`);
  expect([status, body.errorCode]).toEqual([400, 'KS-4101']);
});

test('a round is listed, found by its id, and shown with its cards', async () => {
  const table = await newTable(service, partner.partnerId);
  const round = await dealUntil(service, partner.key, table, 'bob', () => true);
  const listed = await service.operator<{ rounds: { roundId: string; wageredUsd: number }[]; total: number }>(
    'GET',
    `/rounds?partnerId=${partner.partnerId}&gameId=${table}`,
  );
  expect(listed.body).toMatchObject({ total: 1, rounds: [{ roundId: round.roundId, playerId: 'bob-0' }] });
  expect(listed.body.rounds[0]!.wageredUsd).toBe(round.wageredUsd);
  const list = ['round', 'list', String(partner.partnerId), '--game', String(table)];
  expect(JSON.parse((await command(service, ...list, '--json')).out)).toEqual(listed.body);
  expect((await command(service, ...list)).out).toContain(round.roundId);
  expect((await search(round.roundId)).plays).toMatchObject([{ kind: 'round' }]);
  const others = await service.operator('GET', `/rounds?partnerId=${partner.partnerId}&status=VOIDED`);
  expect(others.body.rounds).toEqual([]);
});

test('rounds of all partners are listed by page, by status and by table', async () => {
  const other = await service.newPartner();
  const table = await newTable(service, other.partnerId);
  const dealt = [];
  for (const player of ['carol', 'dave']) {
    dealt.push(await dealUntil(service, other.key, table, player, ({ status }) => status === 'OPEN'));
  }
  const list = async (query: string) =>
    (
      await service.operator<{
        rounds: { roundId: string; partnerId: number; gameName: string; status: string }[];
        total: number;
      }>('GET', `/rounds${query}`)
    ).body;
  const all = await list('');
  expect(new Set(all.rounds.map(({ partnerId }) => partnerId))).toEqual(
    new Set([partner.partnerId, other.partnerId]),
  );
  expect(all.rounds[0]).toMatchObject({ roundId: dealt[1]!.roundId, partnerId: other.partnerId });
  expect(JSON.parse((await command(service, 'round', 'list', '--json')).out)).toEqual(all);
  expect((await command(service, 'round', 'list', '--status', 'open')).out).toMatch(
    new RegExp(`${dealt[1]!.roundId} +${other.partnerId} +${table} +dave`),
  );
  const pages = await Promise.all([1, 2].map((page) => list(`?limit=1&page=${page}`)));
  expect(pages.map(({ rounds }) => rounds[0]!.roundId)).toEqual(
    all.rounds.slice(0, 2).map(({ roundId }) => roundId),
  );
  expect(pages[0]!.total).toBe(all.total);
  const open = await list('?status=OPEN&limit=100');
  expect(open.rounds.map(({ roundId }) => roundId)).toEqual(
    expect.arrayContaining(dealt.map(({ roundId }) => roundId)),
  );
  expect(open.rounds.every(({ status }) => status === 'OPEN')).toBe(true);
  const ofTable = await list(`?gameId=${table}&limit=100`);
  expect(ofTable.rounds.slice(0, 1)).toMatchObject([{ roundId: dealt[1]!.roundId }]);
  expect(ofTable.rounds.every(({ partnerId }) => partnerId === other.partnerId)).toBe(true);
});

test('a PAR sheet is listed, and shown as it was uploaded', async () => {
  const { body } = await service.operator<{ parSheets: { parSheetId: number }[] }>(
    'GET',
    `/par-sheets?partnerId=${partner.partnerId}`,
  );
  expect(body.parSheets).toHaveLength(1);
  const detail = await service.operator('GET', `/par-sheets/${body.parSheets[0]!.parSheetId}`);
  expect(detail.body.sheet).toEqual(parSheet('classic-3-reel'));
  expect((await service.operator('GET', '/par-sheets/999999')).status).toBe(404);
});

test('traffic has each day of the range, and what was played today', async () => {
  const { body } = await service.operator<{ days: { day: string; spins: number }[] }>(
    'GET',
    '/traffic?days=3',
  );
  expect(body.days).toHaveLength(3);
  expect(body.days.map(({ day }) => day)).toEqual(body.days.map(({ day }) => day).toSorted());
  expect(body.days.at(-1)!.spins).toBeGreaterThan(0);
  const none = await service.operator<typeof body>('GET', '/traffic?days=2&partnerId=999999');
  expect(none.body.days.map(({ spins }) => spins)).toEqual([0, 0]);
});

test('a game with a communal progressive is listed with its budget', async () => {
  const rules = {
    ...{ enabled: true, triggerInterval: 10, triggerSplitPct: 100, communitySplitPct: 0 },
    tiers: [{ tierLevel: 1, tierName: 'One', triggerAtSpins: 100, amountUsd: '1.00' }],
  };
  expect((await service.operator('PUT', `/games/${gameId}/communal`, rules)).status).toBe(200);
  const { body } = await service.operator('GET', '/progressives');
  expect(body.progressives).toMatchObject([{ gameConfigId: gameId, isEnabled: true, paidUsd: 0 }]);
});

test('a reason of a change of a partner, a game or a key is in the audit log', async () => {
  const { partnerId } = partner;
  await service.operator('PATCH', `/partners/${partnerId}`, { maxGames: 7, reason: 'asked for' });
  await service.operator('PATCH', `/games/${gameId}`, { status: 'SUSPENDED', reason: 'a fault' });
  const issued = await service.operator<{ keyId: number }>('POST', `/partners/${partnerId}/keys`, {});
  await service.operator('DELETE', `/partners/${partnerId}/keys/${issued.body.keyId}?reason=leaked`);
  const log = await service.operator<{ entries: { action: string; after: { reason?: string } }[] }>(
    'GET',
    '/audit-log?limit=10',
  );
  const reasons = log.body.entries.map(({ action, after }) => `${action}: ${after?.reason}`);
  expect(reasons).toEqual(
    expect.arrayContaining(['partner.update: asked for', 'game.update: a fault', 'key.revoke: leaked']),
  );
});
