/**
 * Tests the feeds of rounds and adjustments (docs/contract.md §11.2): each item once, within its bounds, for
 * its partner only. Also tests that the bounds of a settlement report select the same spins in each feed.
 */
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshStores } from '../../setup/freshStores.js';
import type { TestPartner } from '../../support/client.js';
import { act, deal, newTable, playOut, type RoundAnswer } from '../../support/rounds.js';
import { startService } from '../../support/service.js';
import { dayAt, microsOf } from '../../support/settlement.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

interface Adjustment {
  entryId: string;
  kind: string;
  playerId: string;
  amountUsd: number;
  balanceAfterUsd: number;
  reason: string;
  gameId?: number;
  spinId?: string;
  createdAt: string;
}
interface Entry {
  entryId: string;
  createdAt: string;
  wagerUsd: number;
  payoutUsd: number;
  balanceAfterUsd: number;
}
type Round = RoundAnswer & { createdAt: string; endedAt: string | null; entries: Entry[] };
interface Feed {
  adjustments: Adjustment[];
  rounds: Round[];
  spins: { spinId: string; createdAt: string }[];
  nextCursor: string | null;
}
type List = 'adjustments' | 'rounds' | 'spins';

const OPENING = 1000;
const PRICE = 0.5;
const AMOUNTS = [5, -2.5, 0.000001];

let stores: TestStores;
let service: Awaited<ReturnType<typeof startService>>;
let sql: postgres.Sql;
let partner: TestPartner;
let other: TestPartner;
let slot: number;
let table: number;
let raffle: number;
const adjusted: string[] = [];
const tickets: string[] = [];
const rounds: RoundAnswer[] = [];

const feed = async (path: string, key = partner.key): Promise<Feed> => {
  const answer = await service.partner<Feed>('GET', path, key);
  expect(answer.status, answer.text).toBe(200);
  return answer.body;
};

async function all<Name extends List>(name: Name, query: string, limit = 100): Promise<Feed[Name]> {
  const items: unknown[] = [];
  for (let cursor = ''; ; ) {
    const page = await feed(`/${name}?${query}&limit=${limit}${cursor}`);
    expect(page[name].length).toBeLessThanOrEqual(limit);
    items.push(...page[name]);
    if (page.nextCursor === null) return items as Feed[Name];
    cursor = `&cursor=${page.nextCursor}`;
  }
}

const adjust = (
  of: TestPartner,
  playerId: string,
  amountUsd: number,
  requestId: string,
  reason = 'goodwill',
) =>
  service.operator<{ adjustmentId: string }>(
    'POST',
    `/partners/${of.partnerId}/players/${playerId}/adjustments`,
    { amountUsd, reason, requestId },
  );

beforeAll(async () => {
  stores = await freshStores();
  service = await startService(stores);
  sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  partner = await service.newPartner({ openingBalanceUsd: OPENING });
  other = await service.newPartner();
  slot = await service.newGame(partner.key, parSheet('classic-3-reel'));
  table = await newTable(service, partner.partnerId);
  raffle = await service.api.newRaffle(partner.partnerId, 'refunded', {
    ticketPriceUsd: PRICE,
    poolSize: 10,
    prizes: [{ prizeName: 'Mug', prizeTier: 1, valueUsd: 2, count: 10 }],
  });
  await adjust(other, 'alice', 3, 'theirs');
  for (const [i, amount] of AMOUNTS.entries()) {
    const { status, body } = await adjust(
      partner,
      i === 1 ? 'bob' : 'alice',
      amount,
      `a-${i}`,
      `reason ${i}`,
    );
    expect(status).toBe(200);
    adjusted.push(body.adjustmentId);
  }
  for (let i = 0; i < 3; i++) {
    const ticket = await service.spin<{ spinId: string }>(partner.key, {
      gameId: raffle,
      playerId: 'alice',
      wagerUsd: PRICE,
      requestId: `t-${i}`,
    });
    expect(ticket.status, ticket.text).toBe(200);
    tickets.push(ticket.body.spinId);
  }
  for (const player of ['alice', 'bob', 'alice']) {
    const dealt = await deal(service, partner.key, table, player, `r-${rounds.length}`);
    expect(dealt.status, dealt.text).toBe(201);
    rounds.push(await playOut(service, partner.key, dealt.body));
  }
  await until(async () => {
    const path = `/raffles/${raffle}/void`;
    return (await service.operator('POST', path, { reason: 'The draw was cancelled' })).body.isDone === true;
  }, 'each ticket is refunded');
}, 120_000);

afterAll(async () => {
  await sql?.end();
  await service?.stop();
  await stores?.drop();
});

describe('GET /adjustments', () => {
  test('lists the adjustments and the refunds of a partner in the order of their entries', async () => {
    const { adjustments, nextCursor } = await feed('/adjustments?limit=100');
    expect(nextCursor).toBeNull();
    expect(adjustments.slice(0, AMOUNTS.length)).toEqual(
      AMOUNTS.map((amountUsd, i) => ({
        entryId: adjusted[i],
        kind: 'adjustment',
        playerId: i === 1 ? 'bob' : 'alice',
        amountUsd,
        balanceAfterUsd: [OPENING + 5, OPENING - 2.5, OPENING + 5.000001][i],
        reason: `reason ${i}`,
        createdAt: expect.any(String),
      })),
    );
    const refunds = adjustments.slice(AMOUNTS.length);
    expect(refunds).toMatchObject(
      tickets.map(() => ({
        kind: 'refund',
        playerId: 'alice',
        amountUsd: PRICE,
        reason: 'The draw was cancelled',
        gameId: raffle,
      })),
    );
    expect(refunds.map(({ spinId }) => spinId).sort()).toEqual([...tickets].sort());
    const times = adjustments.map(({ createdAt }) => createdAt);
    expect(times).toEqual([...times].sort());
    const { body } = await service.partner('GET', '/players/alice', partner.key);
    const ofAlice = adjustments.filter(({ playerId }) => playerId === 'alice');
    expect(body.balanceUsd).toBe(ofAlice.at(-1)!.balanceAfterUsd);
  });

  test('returns the same adjustments in pages of any size, and after the entryId of any of them', async () => {
    const whole = await all('adjustments', '');
    for (const limit of [1, 2, 4]) expect(await all('adjustments', '', limit)).toEqual(whole);
    for (const [i, { entryId }] of whole.entries())
      expect((await feed(`/adjustments?cursor=${entryId}`)).adjustments).toEqual(whole.slice(i + 1));
    const ofBob = await all('adjustments', 'playerId=bob', 1);
    expect(ofBob).toEqual(whole.filter(({ playerId }) => playerId === 'bob'));
    expect(ofBob).toHaveLength(1);
  });

  test('shows an adjustment as soon as it is answered', async () => {
    const last = (await all('adjustments', '')).at(-1)!;
    for (let i = 0; i < 5; i++) {
      const { body } = await adjust(partner, 'carol', 1, `late-${i}`);
      const after = (await feed(`/adjustments?cursor=${last.entryId}`)).adjustments;
      expect(after.at(-1)!.entryId).toBe(body.adjustmentId);
      expect(after).toHaveLength(i + 1);
    }
  });

  test('continues after 10,000 examined adjustments with an empty page if a filter matches none of them', async () => {
    const { partnerId, key } = await service.newPartner();
    await adjust({ partnerId, key }, 'last', 1, 'real');
    let real: { entry_id: string } | undefined;
    await until(async () => {
      [real] = await sql<{ entry_id: string }[]>`
        SELECT entry_id FROM adjustments WHERE partner_id = ${partnerId} AND entry_id IS NOT NULL`;
      return real !== undefined;
    }, 'the adjustment is committed');
    // Other players' adjustments before the real one. A page with a filter does not read their entries.
    await sql`
      INSERT INTO adjustments (partner_id, request_id, player_id, amount_micros, reason, entry_id)
      SELECT ${partnerId}, 'old-' || i, 'crowd', 1, 'old', ${real!.entry_id}::bigint - 20000 + i FROM generate_series(1, 10000) AS i`;
    const first = await feed('/adjustments?playerId=last', key);
    expect(first.adjustments).toEqual([]);
    expect(first.nextCursor).not.toBeNull();
    const second = await feed(`/adjustments?playerId=last&cursor=${first.nextCursor}`, key);
    expect(second).toMatchObject({ adjustments: [{ playerId: 'last' }], nextCursor: null });
  });
});

describe('GET /rounds', () => {
  test('lists the rounds of a partner in the order of their deals, with every entry of the ledger', async () => {
    const listed = (await feed('/rounds?limit=100')).rounds;
    expect(listed.map(({ roundId }) => roundId)).toEqual(rounds.map(({ roundId }) => roundId));
    for (const [i, round] of listed.entries()) {
      const { entries } = round;
      expect(round).toMatchObject({ ...rounds[i]!, requestId: `r-${i}` });
      expect(entries[0]).toMatchObject({ entryId: round.roundId, createdAt: round.createdAt });
      expect(round.endedAt).toBe(entries.at(-1)!.createdAt);
      const sum = (of: (entry: Entry) => number) =>
        entries.reduce((total, entry) => total + microsOf(of(entry)), 0n);
      expect(sum(({ wagerUsd }) => wagerUsd)).toBe(microsOf(round.wageredUsd));
      expect(sum(({ payoutUsd }) => payoutUsd)).toBe(microsOf(round.payoutUsd));
      expect(entries.at(-1)!.balanceAfterUsd).toBe(round.balance.balanceUsd);
    }
  });

  test('returns the same rounds in pages of any size, and only those of a game or a player', async () => {
    const whole = await all('rounds', '');
    expect(await all('rounds', '', 1)).toEqual(whole);
    expect((await feed(`/rounds?cursor=${whole[0]!.roundId}`)).rounds).toEqual(whole.slice(1));
    expect(await all('rounds', 'playerId=bob', 1)).toEqual([whole[1]]);
    expect(await all('rounds', `gameId=${table}`, 2)).toEqual(whole);
    expect(await all('rounds', `gameId=${slot}`)).toEqual([]);
  });

  test('lists an open round without an end, and a voided round with its stake returned', async () => {
    const player = `open-${Date.now()}`;
    let round: RoundAnswer | undefined;
    for (let i = 0; round?.status !== 'OPEN'; i++)
      round = (await deal(service, partner.key, table, `${player}-${i}`)).body;
    const query = `playerId=${round.playerId}`;
    expect(await all('rounds', query)).toMatchObject([
      {
        roundId: round.roundId,
        status: 'OPEN',
        endedAt: null,
        payoutUsd: null,
        entries: [{ wagerUsd: 0.25 }],
      },
    ]);
    const voided = await service.operator('POST', `/rounds/${round.roundId}/void`, { reason: 'a fault' });
    expect(voided.status).toBe(200);
    const [listed] = await all('rounds', query);
    expect(listed).toMatchObject({
      status: 'VOIDED',
      entries: [
        { wagerUsd: 0.25, payoutUsd: 0 },
        { wagerUsd: -0.25, payoutUsd: 0 },
      ],
    });
    expect(listed!.endedAt).toBe(listed!.entries[1]!.createdAt);
    const stale = await act(service, partner.key, round.roundId, 'stand', 1);
    expect(stale.status).not.toBe(200);
  });
});

describe('the bounds of feeds', () => {
  test('include the first moment of a time range and exclude the last', async () => {
    for (const name of ['adjustments', 'rounds'] as const) {
      const whole: readonly { createdAt: string }[] = await all(name, '');
      const { createdAt } = whole[1]!;
      expect(await all(name, `from=${createdAt}`)).toEqual(
        whole.filter((each) => each.createdAt >= createdAt),
      );
      expect(await all(name, `to=${createdAt}`)).toEqual(whole.filter((each) => each.createdAt < createdAt));
      expect(await all(name, `from=${createdAt}&to=${createdAt}`)).toEqual([]);
    }
  });

  test('select the entries that a settlement report covers', async () => {
    const player = { gameId: slot, playerId: 'dora', wagerUsd: 0.25 };
    await service.spin(partner.key, player);
    await adjust(partner, 'dora', 1, 'before the report');
    const before = {
      spins: await all('spins', ''),
      adjustments: await all('adjustments', ''),
      rounds: await all('rounds', ''),
    };
    const path = `/partners/${partner.partnerId}/settlements/${dayAt(Date.now())}`;
    const { body } = await service.operator<{ ledgerFrom: string; ledgerTo: string; adjustmentsUsd: number }>(
      'POST',
      path,
    );
    await service.spin(partner.key, player);
    await adjust(partner, 'dora', 1, 'after the report');
    await deal(service, partner.key, table, 'dora');
    const bounds = `fromEntry=${body.ledgerFrom}&toEntry=${body.ledgerTo}`;
    for (const name of ['spins', 'adjustments', 'rounds'] as const) {
      expect(await all(name, bounds)).toEqual(before[name]);
      expect(await all(name, `fromEntry=${body.ledgerTo}`)).toHaveLength(1);
    }
    const sum = before.adjustments.reduce((total, { amountUsd }) => total + microsOf(amountUsd), 0n);
    expect(sum).toBe(microsOf(body.adjustmentsUsd));
    expect((await all('spins', `${bounds}&playerId=dora`)).length).toBe(1);
    expect(await all('spins', 'fromEntry=9999999999999999999')).toEqual([]);
  });

  test('never show data of another partner, not even through its cursor', async () => {
    expect((await feed('/rounds', other.key)).rounds).toEqual([]);
    expect((await feed('/adjustments', other.key)).adjustments).toMatchObject([{ amountUsd: 3 }]);
    for (const [name, cursor] of [
      ['adjustments', adjusted[0]],
      ['rounds', rounds[0]!.roundId],
    ]) {
      const answer = await service.partner('GET', `/${name}?cursor=${cursor}`, other.key);
      expect(answer).toMatchObject({
        status: 400,
        body: { errorCode: 'KS-4101', details: [{ path: '/cursor' }] },
      });
    }
  });

  test.each([
    ['from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z', '/to'],
    ['fromEntry=-1', '/fromEntry'],
    ['fromEntry=01', '/fromEntry'],
    ['toEntry=99999999999999999999', '/toEntry'],
    ['fromEntry=5&toEntry=4', '/toEntry'],
    ['page=1', '/page'],
  ])('refuse the query %s with KS-4101 in every feed', async (query, path) => {
    for (const name of ['adjustments', 'rounds', 'spins']) {
      const answer = await service.partner<{ details: { path: string; message: string }[] }>(
        'GET',
        `/${name}?${query}`,
        partner.key,
      );
      expect(answer, name).toMatchObject({ status: 400, body: { errorCode: 'KS-4101' } });
      expect(answer.body.details.map((fault) => fault.path)).toEqual([path]);
      // A pattern says nothing to the reader of an error.
      expect(answer.body.details[0]!.message).not.toMatch(/[\^$\\]/);
    }
  });
});

test("the recall of a player has the adjustments since the oldest of the player's games", async () => {
  const recall = async (limit: number) =>
    (
      await service.partner<{ games: { createdAt: string }[]; adjustments: Adjustment[] }>(
        'GET',
        `/players/alice/recall?limit=${limit}`,
        partner.key,
      )
    ).body;
  const ofAlice = (await all('adjustments', 'playerId=alice')).reverse();
  expect((await recall(50)).adjustments).toEqual(ofAlice);
  const { games, adjustments } = await recall(2);
  expect(games).toHaveLength(2);
  // Both games are rounds, which alice played after the operator's adjustments and before the refunds.
  expect(adjustments).toEqual(ofAlice.filter(({ kind }) => kind === 'refund').slice(0, 2));
});
