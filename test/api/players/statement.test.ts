/** Tests a player's statement by time and as CSV. */
import { beforeAll, expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { OPERATOR_KEY } from '../../support/client.js';
import { parSheet } from '../../support/sheets.js';

interface Entry {
  readonly entryId: string;
  readonly kind: string;
  readonly createdAt: string;
  readonly requestId: string | null;
  readonly spinId: string | null;
  readonly balanceUsd: number;
}
interface Statement {
  readonly entries: readonly Entry[];
  readonly nextCursor: string | null;
}

/** More than two of every 64 entries, which the index of players has. */
const SPINS = 150;

const { service } = world();
let path: string;
/** All entries of the player, newest first. */
let all: readonly Entry[];

beforeAll(async () => {
  const { partnerId, key } = await service.newPartner({ openingBalanceUsd: 1000 });
  const gameId = await service.newGame(key, parSheet('classic-3-reel'));
  for (let i = 0; i < SPINS; i++) {
    const requestId = i === 0 ? '=1+1' : `spin-${i}`;
    const { status } = await service.spin(key, { gameId, playerId: 'alice', wagerUsd: 0.25, requestId });
    expect(status).toBe(200);
  }
  path = `/partners/${partnerId}/players/alice/statement`;
  all = await read('');
  // The first entry is the opening.
  expect(all).toHaveLength(SPINS + 1);
});

/** Reads all pages of a statement. */
async function read(query: string, limit = 100): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { status, body }: { status: number; body: Statement } = await service.operator(
      'GET',
      `${path}?limit=${limit}${query}${cursor && `&cursor=${cursor}`}`,
    );
    expect(status).toBe(200);
    expect(body.entries.length).toBeLessThanOrEqual(limit);
    entries.push(...body.entries);
    cursor = body.nextCursor;
  }
  return entries;
}

test.each([
  [0, 20],
  [20, 90],
  [70, 149],
  [149, 150],
])(
  'the statement of a range of time has exactly the entries of that time, from entry %i to %i',
  async (newest, oldest) => {
    const [from, to] = [all[oldest]!.createdAt, all[newest]!.createdAt];
    const expected = all.filter(({ createdAt }) => createdAt >= from && createdAt < to);
    for (const limit of [7, 100]) expect(await read(`&from=${from}&to=${to}`, limit)).toEqual(expected);
    expect(await read(`&from=${from}`)).toEqual(all.filter(({ createdAt }) => createdAt >= from));
    expect(await read(`&to=${to}`, 33)).toEqual(all.filter(({ createdAt }) => createdAt < to));
  },
);

test('the statement of a time without entries is empty, and a wrong time is refused', async () => {
  expect(await read('&to=2020-01-01T00:00:00Z')).toEqual([]);
  expect(await read('&from=2099-01-01T00:00:00Z')).toEqual([]);
  for (const [query, fault] of [['from=2026-02-02T00:00:00Z&to=2026-02-01T00:00:00Z', '/to']])
    expect(await service.operator('GET', `${path}?${query}`)).toMatchObject({
      status: 400,
      body: { errorCode: 'KS-4101', details: [{ path: fault }] },
    });
});

test('the statement as CSV has all entries of the range, and neutralizes formulas if asked', async () => {
  const csv = async (query: string): Promise<string[]> => {
    const answer = await service.request('GET', `/api/operator/v1${path}?${query}`, {
      key: OPERATOR_KEY,
      headers: { Accept: 'text/csv' },
    });
    expect(answer.headers.get('content-type')).toMatch(/^text\/csv/);
    return answer.text.split('\r\n').slice(0, -1);
  };
  const [head, ...rows] = await csv('limit=1');
  expect(head).toBe('entryId,kind,createdAt,gameId,wagerUsd,creditUsd,balanceUsd,requestId,spinId');
  expect(rows.map((row) => row.split(',')[0])).toEqual(all.map(({ entryId }) => `"${entryId}"`));
  const first = all.at(-2)!;
  expect(rows.at(-2)).toMatch(
    new RegExp(`^"${first.entryId}","spin","${first.createdAt}",\\d+,0\\.25,.*,"=1\\+1","${first.spinId}"$`),
  );
  expect((await csv('escapeFormulas=true')).at(-2)).toContain(`,"'=1+1",`);
  expect(await csv(`from=${all[10]!.createdAt}&to=${all[0]!.createdAt}`)).toEqual([
    head,
    ...rows.filter(
      (_, i) => all[i]!.createdAt >= all[10]!.createdAt && all[i]!.createdAt < all[0]!.createdAt,
    ),
  ]);
});
