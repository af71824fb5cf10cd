/**
 * Tests blackjack over HTTP: dealing, playing, retries, concurrent actions, automatic ends, rebuilds and the
 * audit.
 */
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshStores } from '../../setup/freshStores.js';
import type { Answer, TestPartner } from '../../support/client.js';
import {
  act,
  deal,
  dealUntil,
  expectClean,
  holeCard,
  isPlaying,
  newTable,
  play,
  playOut,
  type RoundAnswer,
  registerTable,
  WAGER_USD,
} from '../../support/rounds.js';
import { type LoggedService, startLogged, startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

type Service = Awaited<ReturnType<typeof startService>>;

let stores: TestStores;
let service: LoggedService;
/** A second front end that uses the same stores. */
let other: Service;
let partner: TestPartner;
let gameId: number;
let redis: Redis;
let sql: postgres.Sql<{ bigint: bigint }>;

beforeAll(async () => {
  stores = await freshStores();
  service = await startLogged(stores, { CELLS: '1' });
  other = await startService(stores, { CELLS: '1', ROLES: 'http' });
  partner = await service.newPartner();
  gameId = await newTable(service, partner.partnerId, { lateSurrender: true });
  redis = new Redis(stores.redisUrl, { protocol: 2 });
  sql = postgres(stores.databaseUrl, { max: 2, types: { bigint: postgres.BigInt } });
});

afterAll(async () => {
  redis.disconnect();
  await sql.end();
  await other.stop();
  await service.running.stop();
  await stores.drop();
});

const failed = (status: number, errorCode: string) => ({ status, body: { errorCode } });
const balanceOf = async (playerId: string): Promise<number> =>
  (await service.partner<{ balanceUsd: number }>('GET', `/players/${playerId}`, partner.key)).body.balanceUsd;
const rowsOf = async (round: RoundAnswer): Promise<{ kind: number }[]> =>
  sql`SELECT kind FROM ledger WHERE game_id = ${round.gameId} AND outcome_index = ${round.shoe.index} AND kind IN (6, 7, 8)
      ORDER BY entry_id`;
/**
 * Deals rounds to new players until a deal is refused.
 * @returns the refusal
 */
async function dealAll(table: number): Promise<Answer<RoundAnswer>> {
  for (let from = 0; from < 20_000; from += 64) {
    const asked = Array.from({ length: 64 }, (_, i) => deal(service, partner.key, table, `all-${from + i}`));
    const refused = (await Promise.all(asked)).find(({ status }) => status !== 201);
    if (refused !== undefined) return refused;
  }
  throw new Error('The shoes do not end');
}

describe('a blackjack round: dealing and concurrent requests', () => {
  test('a blackjack round is dealt once per requestId, can be played, and reveals its seed only after it has ended', async () => {
    for (let i = 0; i < 40; i++) {
      const player = `p${i}`;
      const dealt = await deal(service, partner.key, gameId, player, `deal-${i}`);
      expect(dealt.status, dealt.text).toBe(201);
      const again = await deal(other, partner.key, gameId, player, `deal-${i}`);
      expect([again.status, again.text]).toEqual([201, dealt.text]);
      expect(again.headers.get('idempotent-replayed')).toBe('true');
      if (dealt.body.status === 'OPEN') expect(dealt.body.shoe.seed).toBeUndefined();
      const ended = await playOut(i % 2 === 0 ? service : other, partner.key, dealt.body);
      expect(ended.status).toBe('SETTLED');
      expect(ended.shoe.seed).toMatch(/^[0-9a-f]{64}$/);
      expect(await balanceOf(player)).toBeCloseTo(1000 - ended.wageredUsd + ended.payoutUsd!, 6);
      expect(ended.balance.balanceUsd).toBe(await balanceOf(player));
      const read = await play(other, partner.key, 'GET', `/rounds/${ended.roundId}`);
      expect(read.body).toMatchObject(ended);
      // A retried deal gets the response of the first request, whatever actions followed.
      expect((await deal(service, partner.key, gameId, player, `deal-${i}`)).text).toBe(dealt.text);
    }
    const list = await play<{ rounds: RoundAnswer[]; total: number }>(
      service,
      partner.key,
      'GET',
      '/rounds?playerId=p7&status=SETTLED',
    );
    expect(list.body).toMatchObject({ total: 1, rounds: [{ playerId: 'p7' }] });
    await expectClean(stores, sql);
  });

  test('a deal without a shoe fails with KS-4203 if the table had shoes before, and with KS-5012 if it never had shoes', async () => {
    const table = await newTable(service, partner.partnerId);
    // The trigger in Postgres prevents new blocks while the test runs. Rounds are still committed.
    await sql.unsafe(`
      CREATE FUNCTION no_blocks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no blocks now'; END $$;
      CREATE TRIGGER no_blocks BEFORE INSERT ON blocks EXECUTE FUNCTION no_blocks()`);
    const bare = await registerTable(service, partner.partnerId);
    try {
      const drained = await dealAll(table);
      expect(drained).toMatchObject(failed(503, 'KS-4203'));
      expect(Number(drained.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(await deal(service, partner.key, bare, 'p', 'no-shoe-p')).toMatchObject(failed(503, 'KS-5012'));
    } finally {
      await sql.unsafe('DROP FUNCTION no_blocks CASCADE');
    }
    for (const [id, player] of [
      [table, 'after'],
      [bare, 'p'],
    ] as const) {
      const dealt = async () =>
        (await deal(service, partner.key, id, player, `no-shoe-${player}`)).status === 201;
      await until(dealt, 'the table has shoes again');
    }
  });

  test('accepts one of 64 equal concurrent blackjack actions and answers all of them with the same bytes', async () => {
    const round = await dealUntil(service, partner.key, gameId, 'race', isPlaying);
    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, i) =>
        act(i % 2 === 0 ? service : other, partner.key, round.roundId, 'stand', 1),
      ),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(answers.filter(({ headers }) => headers.get('idempotent-replayed') === null)).toHaveLength(1);
    expect(await rowsOf(round)).toMatchObject([{ kind: 6 }, { kind: 7 }]);
    // A client that lost the response to its action gets the same bytes when it retries, and the balance
    // changes only once.
    const again = await act(other, partner.key, round.roundId, 'stand', 1);
    expect([again.text, again.headers.get('idempotent-replayed')]).toEqual([answers[0]!.text, 'true']);
    const { wageredUsd, payoutUsd } = again.body;
    expect(await balanceOf(round.playerId)).toBeCloseTo(1000 - wageredUsd + payoutUsd!, 6);
    // If different actions are sent with the same sequence number, exactly one of them is accepted.
    const second = await dealUntil(service, partner.key, gameId, 'race2', isPlaying);
    const mixed = await Promise.all(
      Array.from({ length: 32 }, (_, i) =>
        act(i % 3 === 0 ? other : service, partner.key, second.roundId, i % 2 === 0 ? 'hit' : 'stand', 1),
      ),
    );
    const done = mixed.filter(({ status }) => status === 200);
    expect(new Set(done.map(({ text }) => text)).size).toBe(1);
    expect(mixed.filter(({ status }) => status !== 200)).toMatchObject(
      Array.from({ length: 32 - done.length }, () => failed(409, 'KS-4224')),
    );
    expect(await rowsOf(second)).toHaveLength(2);
  });

  test('64 concurrent deals for one player open at most one blackjack round', async () => {
    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, i) =>
        deal(i % 2 === 0 ? service : other, partner.key, gameId, 'greedy', i % 4 === 0 ? 'one' : undefined),
      ),
    );
    const shown = answers.filter(({ status }) => status === 201).map(({ body }) => body);
    const open = new Set(shown.filter(({ status }) => status === 'OPEN').map(({ roundId }) => roundId));
    expect(open.size).toBeLessThanOrEqual(1);
    const [row] =
      await sql`SELECT count(*)::int AS open FROM rounds WHERE player_id = 'greedy' AND status = 'OPEN'`;
    expect(row!.open).toBe(open.size);
    for (const answer of answers.filter(({ status }) => status !== 201)) {
      const details = [{ path: '/playerId', roundId: [...open][0], lastActionSeq: 0 }];
      expect(answer).toMatchObject({ status: 409, body: { errorCode: 'KS-4222', details } });
    }
  });
});

describe('refusals of blackjack requests, in the order of the checks', () => {
  test('refuses a blackjack deal with the error of the first check that fails', async () => {
    const slots = await service.newGame(partner.key, parSheet('classic-3-reel'));
    const stranger = await service.newPartner();
    const strange = await newTable(service, stranger.partnerId);
    const send = (body: Record<string, unknown>, key = partner.key) =>
      play(service, key, 'POST', '/deal', body);
    const good = { gameId, playerId: 'order', wagerUsd: WAGER_USD, requestId: 'order-1' };
    expect(await send(good, '')).toMatchObject(failed(401, 'KS-4001'));
    expect(await send({ ...good, playerId: 7 })).toMatchObject(failed(400, 'KS-4101'));
    expect(await send({ ...good, gameId: strange })).toMatchObject(failed(403, 'KS-4006'));
    expect(await send({ ...good, gameId: slots, wagerUsd: 9 })).toMatchObject(failed(400, 'KS-4101'));
    expect(await send({ ...good, wagerUsd: 0.5 })).toMatchObject(failed(400, 'KS-4103'));
    const dealt = await dealUntil(service, partner.key, gameId, 'order', isPlaying);
    const openBody = { ...good, playerId: dealt.playerId };
    await service.operator('PATCH', `/games/${gameId}`, { status: 'SUSPENDED' });
    expect(await send({ ...openBody, wagerUsd: 9 })).toMatchObject(failed(400, 'KS-4202'));
    // Open rounds of a suspended game can still be played.
    expect((await act(service, partner.key, dealt.roundId, 'hit', 1)).status).toBe(200);
    await service.operator('PATCH', `/games/${gameId}`, { status: 'ACTIVE' });
    const second = await dealUntil(service, partner.key, gameId, 'order2', isPlaying);
    expect(await send({ ...openBody, playerId: second.playerId, wagerUsd: 9 })).toMatchObject(
      failed(400, 'KS-4103'),
    );
    expect(await send({ ...openBody, playerId: second.playerId })).toMatchObject({
      status: 409,
      body: { errorCode: 'KS-4222', details: [{ roundId: second.roundId, lastActionSeq: 0 }] },
    });
    // Spins and deals share their request ids, and a bound requestId is answered before the game is checked.
    const spin = { gameId: slots, playerId: 'order', wagerUsd: 0.25, requestId: 'shared' };
    expect((await service.spin(partner.key, spin)).status).toBe(200);
    expect(await send({ ...good, requestId: 'shared' })).toMatchObject(failed(409, 'KS-4111'));
    expect((await send({ ...good, requestId: 'shared-2' })).status).toBe(201);
    expect(await service.spin(partner.key, { ...spin, requestId: 'shared-2' })).toMatchObject(
      failed(409, 'KS-4111'),
    );
    expect(await service.spin(partner.key, { ...spin, gameId, requestId: 'new' })).toMatchObject(
      failed(400, 'KS-4220'),
    );
    expect(
      await service.spin(partner.key, { gameId, playerId: 'order', wagerUsd: 0.25, requestId: 'shared-2' }),
    ).toMatchObject(failed(409, 'KS-4111'));
    // A blocked player can't start a round, but can finish an open round.
    await service.operator('PATCH', `/partners/${partner.partnerId}/players/${second.playerId}`, {
      status: 'BLOCKED',
      reason: 'test',
    });
    expect(await send({ ...good, playerId: second.playerId, requestId: 'b' })).toMatchObject(
      failed(403, 'KS-4115'),
    );
    expect((await act(service, partner.key, second.roundId, 'stand', 1)).status).toBe(200);
  });

  test('refuses a blackjack action with the error of the first check that fails', async () => {
    const round = await dealUntil(service, partner.key, gameId, 'acts', isPlaying);
    const send = (body: Record<string, unknown>, key = partner.key) =>
      play(service, key, 'POST', '/action', body);
    const good = { roundId: round.roundId, action: 'stand', seq: 1 };
    expect(await send({ ...good, action: 'insurance', seq: 2 })).toMatchObject(failed(409, 'KS-4224'));
    expect(await send({ ...good, action: 'insurance' })).toMatchObject(failed(409, 'KS-4223'));
    const ended = await send(good);
    expect(ended.status).toBe(200);
    expect((await send(good)).text).toBe(ended.text);
    expect(await send({ ...good, action: 'hit' })).toMatchObject(failed(409, 'KS-4224'));
    expect(await send({ ...good, action: 'hit', seq: 2 })).toMatchObject(failed(409, 'KS-4223'));
  });

  test("refuses a blackjack deal or action that the balance or the funding of the partner can't cover", async () => {
    const poor = await service.newPartner({ balanceMode: 'enforce', openingBalanceUsd: 0.3 });
    const table = await newTable(service, poor.partnerId);
    const canDouble = ({ phase, legalActions }: RoundAnswer): boolean =>
      phase === 'PLAYER' && legalActions.some(({ action }) => action === 'double');
    const round = await dealUntil(service, poor.key, table, 'poor', canDouble);
    expect(await act(service, poor.key, round.roundId, 'split', 3)).toMatchObject(failed(409, 'KS-4224'));
    expect(await act(service, poor.key, round.roundId, 'double', 1)).toMatchObject(failed(400, 'KS-4225'));
    expect((await act(service, poor.key, round.roundId, 'stand', 1)).status).toBe(200);
    const lost = await dealUntil(service, poor.key, table, 'lost', ({ phase }) => phase === 'PLAYER');
    expect((await act(service, poor.key, lost.roundId, 'hit', 1)).status).toBe(200);
    const funded = await service.newPartner({ fundingUsd: 1 });
    const bounded = await newTable(service, funded.partnerId);
    // The funding must cover the largest payout of a round, 4 × `maxHands` × wager. With two hands this is 2
    // USD.
    expect(await deal(service, funded.key, bounded, 'x', 'r')).toMatchObject(failed(503, 'KS-5011'));
    const broke = await service.newPartner({ balanceMode: 'enforce', openingBalanceUsd: 0 });
    const closed = await newTable(service, broke.partnerId);
    expect(await deal(service, broke.key, closed, 'x', 'r')).toMatchObject(failed(400, 'KS-4225'));
  });
});

describe("secrecy of the dealer's hole card", () => {
  test("no byte of a response reveals the dealer's hole card before the blackjack round is settled", async () => {
    const rounds: RoundAnswer[] = [];
    const texts: string[] = [];
    while (rounds.length < 60) {
      const answer = await deal(service, partner.key, gameId, `hole-${texts.length}`);
      texts.push('');
      if (answer.body.phase !== 'PLAYER') continue;
      rounds.push(answer.body);
      texts[texts.length - 1] = answer.text;
      const { roundId } = answer.body;
      const read = await play(service, partner.key, 'GET', `/rounds/${roundId}`);
      expect(await act(service, partner.key, roundId, 'insurance', 1)).toMatchObject(failed(409, 'KS-4223'));
      const bytes = [answer, read].map(({ text, headers }) => text + JSON.stringify([...headers])).join();
      const { card, seed } = await holeCard(sql, answer.body);
      const shown = [...answer.body.dealer.cards, ...answer.body.hands.flatMap(({ cards }) => cards)];
      expect(shown).toHaveLength(3);
      // Text of a response without the cards that it reveals and without random values such as ids and
      // timestamps.
      const rest = bytes
        .replaceAll(/[0-9a-f]{32,}|[0-9A-Za-z_-]{20,}|"cards":\[[^\]]*\]/g, '')
        .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z|GMT|"\d+"/g, '');
      expect(rest).not.toMatch(new RegExp(`\\b${card}\\b`));
      expect(bytes).not.toContain(seed);
    }
    const metrics = await (await fetch(`http://127.0.0.1:${service.running.metricsPort}/metrics`)).text();
    const spoken = JSON.stringify(service.lines) + metrics;
    for (const round of rounds) {
      const { seed } = await holeCard(sql, round);
      expect(spoken).not.toContain(seed);
      expect(spoken).not.toContain(round.roundId);
    }
    const unseen = await sql`SELECT count(*)::int AS n FROM events WHERE body LIKE '%"roundId"%'`;
    expect(unseen[0]!.n).toBe(0);
  });
});

describe('open blackjack rounds that expire or are voided', () => {
  test('an expired blackjack round ends once, even if worker, operator and player end it at the same moment', async () => {
    for (let i = 0; i < 5; i++) {
      const round = await dealUntil(service, partner.key, gameId, `late${i}-`, isPlaying);
      await sql`UPDATE rounds SET expires_at = now() WHERE deal_id = (SELECT deal_id FROM rounds
        WHERE game_id = ${gameId} AND shoe_index = ${round.shoe.index})`;
      const closes = Array.from({ length: 8 }, (_, n) =>
        (n % 2 === 0 ? service : other).operator('POST', `/rounds/${round.roundId}/close`),
      );
      const answers = await Promise.all([...closes, act(other, partner.key, round.roundId, 'stand', 1)]);
      const isEnded = async (): Promise<boolean> =>
        (await play(service, partner.key, 'GET', `/rounds/${round.roundId}`)).body.status === 'SETTLED';
      await until(isEnded, 'the round has ended');
      expect(await rowsOf(round)).toMatchObject([{ kind: 6 }, { kind: 7 }]);
      expect(answers.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(1);
    }
    const round = await dealUntil(service, partner.key, gameId, 'alone', isPlaying);
    const hit = await act(service, partner.key, round.roundId, 'hit', 1);
    if (hit.body.status === 'OPEN') {
      await sql`UPDATE rounds SET expires_at = now() WHERE game_id = ${gameId} AND shoe_index = ${round.shoe.index}`;
      const read = () => play(service, partner.key, 'GET', `/rounds/${round.roundId}`);
      await until(async () => (await read()).body.status === 'SETTLED', 'the worker has played it out');
      expect((await read()).body).toMatchObject({
        autoCompleted: true,
        lastActionSeq: 1,
        actions: ['hit', 'timeout'],
      });
      expect((await act(other, partner.key, round.roundId, 'hit', 1)).text).toBe(hit.text);
      expect(await act(other, partner.key, round.roundId, 'stand', 2)).toMatchObject(failed(409, 'KS-4223'));
    }
  });

  test('a blackjack round that an operator voids refunds every stake and is left out of all totals', async () => {
    const totals = async (): Promise<unknown> =>
      (await service.operator<{ totals: unknown }>('GET', `/games/${gameId}`)).body.totals;
    const before = await totals();
    const round = await dealUntil(
      service,
      partner.key,
      gameId,
      'void',
      ({ legalActions, phase }) =>
        phase === 'PLAYER' && legalActions.some(({ action }) => action === 'split'),
    );
    const other201 = Number(round.playerId.split('-')[1]);
    const split = await act(service, partner.key, round.roundId, 'split', 1);
    expect(split.status).toBe(200);
    if (split.body.status !== 'OPEN') return;
    const voided = await service.operator<RoundAnswer>('POST', `/rounds/${round.roundId}/void`, {
      reason: 'a test',
    });
    expect(voided).toMatchObject({
      status: 200,
      body: { status: 'VOIDED', phase: 'VOIDED', balance: { balanceUsd: 1000 } },
    });
    expect(voided.body.shoe.seed).toMatch(/^[0-9a-f]{64}$/);
    expect(await balanceOf(round.playerId)).toBe(1000);
    expect(await service.operator('POST', `/rounds/${round.roundId}/close`)).toMatchObject(
      failed(409, 'KS-4223'),
    );
    expect(await service.operator('POST', `/rounds/${round.roundId}/void`, { reason: 'x' })).toMatchObject(
      failed(409, 'KS-4223'),
    );
    if (other201 === 0) expect(await totals()).toEqual(before);
    const log = await service.operator<{ entries: { action: string; subject: string }[] }>(
      'GET',
      '/audit-log?limit=100',
    );
    expect(log.body.entries.filter(({ subject }) => subject === `round:${round.roundId}`)).toMatchObject([
      { action: 'round.void', after: { reason: 'a test' } },
    ]);
    await expectClean(stores, sql);
  });
});
