/**
 * Tests that blackjack rounds and their data last: settlement reports, events, proofs, and open rounds after
 * a wipe of Redis.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { verifySettlements } from '../../../src/books/settlement/verify.js';
import { verifyRound } from '../../../src/cli/verifyRound.js';
import { DEFAULT_RULES } from '../../../src/domain/games/blackjackRules.js';
import { cardText } from '../../../src/domain/games/cards.js';
import { shuffleShoe } from '../../../src/domain/games/shoe.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { world } from '../../setup/world.js';
import type { Answer } from '../../support/client.js';
import { startReceiver } from '../../support/receiver.js';
import {
  act,
  deal,
  dealUntil,
  expectClean,
  isPlaying,
  newTable,
  play,
  playOut,
  type RoundAnswer,
} from '../../support/rounds.js';
import { startService } from '../../support/service.js';
import { until } from '../../support/wait.js';

type Service = Awaited<ReturnType<typeof startService>>;

const { stores, service, sql, redis, partner } = world({ CELLS: '1' });
/** A second front end that uses the same stores. */
let other: Service;
let gameId: number;

beforeAll(async () => {
  other = await startService(stores, { CELLS: '1', ROLES: 'http' });
  gameId = await newTable(service, partner.partnerId);
});

afterAll(async () => {
  await other.stop();
});

const failed = (status: number, errorCode: string) => ({ status, body: { errorCode } });

test('a settlement report counts open and settled blackjack rounds exactly as the ledger does', async () => {
  const own = await service.newPartner({ largeWinThresholdUsd: 0.3 });
  const table = await newTable(service, own.partnerId);
  const receiver = await startReceiver();
  const hook = { url: receiver.url(), events: ['spin.large_win'] };
  await service.partner('POST', '/webhooks', own.key, hook);
  const open = await dealUntil(service, own.key, table, 'open', isPlaying);
  let won: RoundAnswer | undefined;
  for (let i = 0; won === undefined; i++) {
    const dealt = await deal(service, own.key, table, `wins-${i}`, `wins-${i}`);
    const ended = await playOut(service, own.key, dealt.body);
    if (ended.payoutUsd! > 0.3) won = ended;
  }
  const voided = await dealUntil(service, own.key, table, 'gone', isPlaying);
  await service.operator('POST', `/rounds/${voided.roundId}/void`, { reason: 'a test' });
  const [rows] =
    await sql`SELECT count(*)::int AS n, sum(w)::float8 / 1e6 AS wagered FROM rounds, unnest(wagers_micros) AS w
    WHERE partner_id = ${own.partnerId} AND status <> 'VOIDED'`;
  // Rounds in which the player can still buy insurance count as open as well.
  const [count] = await sql`
    SELECT count(*)::int AS n, (count(*) FILTER (WHERE status = 'OPEN'))::int AS open FROM rounds
    WHERE partner_id = ${own.partnerId} AND status <> 'VOIDED'`;
  expect(count!.open).toBeGreaterThan(0);
  const day = new Date().toISOString().slice(0, 10);
  const made = await service.operator('POST', `/partners/${own.partnerId}/settlements/${day}`);
  expect(made.body).toMatchObject({
    totalSpins: count!.n,
    totalWageredUsd: rows!.wagered,
    openRounds: count!.open,
    openWageredUsd: count!.open * open.wageredUsd,
  });
  const connection = connectPostgres(stores.databaseUrl, { max: 2, name: 'test', onError: () => {} });
  expect((await verifySettlements(connection, undefined)).differences).toEqual([]);
  await connection.end();
  await until(
    () => receiver.received.some(({ event }) => event.data.roundId === won!.roundId),
    'the win is told',
  );
  const told = receiver.received.find(({ event }) => event.data.roundId === won!.roundId)!.event.data;
  expect(told).toEqual({
    spinId: won.roundId,
    roundId: won.roundId,
    gameId: table,
    playerId: won.playerId,
    payoutUsd: won.payoutUsd,
    prizeTier: 0,
    ...(told.requestId === undefined ? {} : { requestId: won.requestId }),
  });
  await receiver.close();
});

test('an ended blackjack round is verified by its published data, and any changed field fails the verification', async () => {
  const ended: RoundAnswer[] = [];
  for (let i = 0; i < 12; i++) {
    const { body } = await deal(service, partner.key, gameId, `proof-${i}`);
    await playOut(service, partner.key, body);
    ended.push((await play(service, partner.key, 'GET', `/rounds/${body.roundId}`)).body);
  }
  for (const round of ended) {
    expect(verifyRound(round, round.shoe.commitment)).toEqual([]);
    expect(verifyRound(round, 'f'.repeat(64))).toHaveLength(1);
    expect(verifyRound({ ...round, payoutUsd: round.payoutUsd! + 0.25 })).toHaveLength(1);
    expect(verifyRound({ ...round, dealer: { ...round.dealer, cards: ['As', '2s'] } })).toHaveLength(1);
    expect(verifyRound({ ...round, actions: [...round.actions!, 'hit'] })).toHaveLength(1);
    const seed = `${round.shoe.seed!.slice(1)}${round.shoe.seed![0]}`;
    expect(verifyRound({ ...round, shoe: { ...round.shoe, seed } }).length).toBeGreaterThan(0);
  }
  const open = await dealUntil(service, partner.key, gameId, 'unproven', isPlaying);
  expect(verifyRound(open)).toHaveLength(1);
});

test('after a wipe of Redis, every open blackjack round continues with the same cards', async () => {
  const states: { round: RoundAnswer; last: Answer<RoundAnswer> | undefined }[] = [];
  for (let i = 0; states.length < 30; i++) {
    const dealt = await deal(service, partner.key, gameId, `wipe-${i}`, `wipe-${i}`);
    let round = dealt.body;
    let last: Answer<RoundAnswer> | undefined;
    for (let n = 0; n < i % 3 && round.status === 'OPEN'; n++) {
      const legal = round.legalActions.map(({ action }) => action);
      const action = ['noInsurance', 'split', 'hit'].find((each) => legal.includes(each)) ?? 'stand';
      last = await act(service, partner.key, round.roundId, action, n + 1);
      round = last.body;
    }
    states.push({ round, last });
  }
  await redis.flushdb();
  for (const front of [service, other]) {
    const isBack = async (): Promise<boolean> =>
      (await deal(front, partner.key, gameId, 'wipe-0', 'wipe-0')).status === 201;
    await until(isBack, 'the cell is rebuilt');
  }
  for (const [i, { round, last }] of states.entries()) {
    const read = await play(other, partner.key, 'GET', `/rounds/${round.roundId}`);
    expect(read.body).toMatchObject(round);
    if (last !== undefined) {
      const action = (read.body.actions ?? [])[round.lastActionSeq - 1]!;
      const again = await act(other, partner.key, round.roundId, action, round.lastActionSeq);
      expect(again.text).toBe(last.text);
    }
    if (round.status === 'OPEN') {
      expect(await deal(service, partner.key, gameId, round.playerId, `second-${i}`)).toMatchObject(
        failed(409, 'KS-4222'),
      );
      const ended = await playOut(service, partner.key, read.body);
      // Cards dealt before the wipe and cards dealt after it come from the same shoe.
      const cards = shuffleShoe(DEFAULT_RULES.decks, Buffer.from(ended.shoe.seed!, 'hex'));
      expect([cards[0]!, cards[2]!].map(cardText)).toEqual([round.hands[0]!.cards[0], expect.any(String)]);
      expect(ended.dealer.cards.slice(0, 2)).toEqual([cards[1]!, cards[3]!].map(cardText));
    }
  }
  await expectClean(stores, sql);
});
