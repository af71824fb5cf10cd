/** Tests the operators' list of the blackjack rounds of all partners. */
import { expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { command } from '../../support/command.js';
import { dealUntil, newTable } from '../../support/rounds.js';

const { service, partner } = world();

test('lists a blackjack round for operators, finds it by its id and shows its cards', async () => {
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
  const found = await service.operator('GET', `/search?q=${round.roundId}`);
  expect(found.body.plays).toMatchObject([{ kind: 'round' }]);
  const others = await service.operator('GET', `/rounds?partnerId=${partner.partnerId}&status=VOIDED`);
  expect(others.body.rounds).toEqual([]);
});

test('lists the blackjack rounds of all partners by page, by status and by table', async () => {
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
