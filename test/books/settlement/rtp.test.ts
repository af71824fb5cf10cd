/**
 * Tests how the returns of games are judged daily: once a day from exact sums, even with several workers.
 * Also tests the reviews that a judgement opens.
 */
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openReviews } from '../../../src/books/returns/rtp.store.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { freshStores } from '../../setup/freshStores.js';
import { startService } from '../../support/service.js';
import {
  dayAt,
  longAgo,
  oldPartner,
  type SettledPartner,
  settlementWorker,
  shift,
} from '../../support/settlement.js';
import type { TestStores } from '../../support/stores.js';

type Json = Record<string, unknown>;
interface Rtp extends Json {
  judgedAt: string | null;
  windows: Json[];
  history?: Json[];
}
interface Review extends Json {
  reviewId: number;
  records: Json[];
}
interface Reviews {
  reviews: Review[];
  total: number;
}

const DAYS = 40;

let stores: TestStores;
let sql: postgres.Sql;
let client: Awaited<ReturnType<typeof startService>>;
let today: string;
let honest: SettledPartner;
let generous: SettledPartner;

/** Inserts the totals of a game's day: 20,000 spins of 0.25 USD that return this share of the wagers. */
const play = (game: SettledPartner, day: string, rtp: number, spins = 20_000) => sql`
  INSERT INTO game_days (game_id, day, partner_id, spins, wagered_micros, paid_micros)
  VALUES (${game.gameId}, ${day}, ${game.partnerId}, ${spins}, ${spins * 250_000}, ${Math.round(spins * 250_000 * rtp)})`;

beforeAll(async () => {
  stores = await freshStores();
  sql = postgres(stores.databaseUrl, { max: 2, onnotice: () => {} });
  today = dayAt(Date.now());
  client = await startService(stores, { SETTLEMENT_CRON: longAgo(today) });
  honest = await oldPartner(client, sql, today, DAYS);
  generous = await oldPartner(client, sql, today, DAYS);
  for (let ago = 1; ago <= DAYS; ago++) {
    // The spins of one day are inserted by a later test, and another day has none.
    if (ago === 7 || ago === 8) continue;
    await play(honest, shift(today, -ago), ago % 2 === 0 ? 0.92 : 0.93);
    await play(generous, shift(today, -ago), ago > 5 ? 0.925 : 1.2);
  }
});

afterAll(async () => {
  await client.stop();
  await sql.end();
  await stores.drop();
});

const turn = async (): Promise<void> => {
  const workers = await Promise.all([settlementWorker(stores, today), settlementWorker(stores, today)]);
  await Promise.all(workers.map(({ job }) => job.turn()));
  await Promise.all(workers.map((each) => each.end()));
};
const read = (game: SettledPartner, query = '') =>
  client.partner<Rtp>('GET', `/games/${game.gameId}/rtp${query}`, game.key);
const count = async (): Promise<number> => Number((await sql`SELECT count(*) FROM rtp_records`)[0]!.count);

describe('daily judgement of returns', () => {
  test('before the first judgement of a game, shows only the return that its PAR sheet promises', async () => {
    const { body } = await read(honest, '?days=5');
    expect(body).toMatchObject({ gameConfigId: honest.gameId, judgedAt: null, windows: [], history: [] });
    expect(body.expected).toMatchObject({ rtp: 0.925 });
  });

  test('judges each day of a game once, even a day without spins, however many workers run', async () => {
    await turn();
    // Each day from the first spins to yesterday has a judgement for both windows and both games.
    expect(await count()).toBe(2 * 2 * DAYS);
    await turn();
    expect(await count()).toBe(2 * 2 * DAYS);
    const { body } = await read(honest, '?days=400');
    expect(body.history).toHaveLength(2 * DAYS);
  });

  test('judges a window of days by the exact sums of these days', async () => {
    const { body } = await read(honest, '?days=3');
    const to = shift(today, -1);
    const [rolling, life] = body.windows;
    // The window has 28 days with spins: 14 days with each of the two returns.
    const inBoth = 14 * 5000;
    expect(rolling).toMatchObject({
      window: 'ROLLING_30',
      from: shift(today, -30),
      to,
      spins: 560_000,
      wageredUsd: 2 * inBoth,
      paidOutUsd: inBoth * 0.92 + inBoth * 0.93,
      actualRtp: 0.925,
      z: 0,
      nats: 0,
      state: 'WITHIN',
    });
    expect(life).toMatchObject({ window: 'LIFE', from: shift(today, -DAYS), to, spins: 38 * 20_000 });
    expect(body.history!.map(({ day }) => day)).toEqual([3, 3, 2, 2, 1, 1].map((ago) => shift(today, -ago)));
  });

  test('forbids changing or removing a judgement of a return', async () => {
    await expect(sql`UPDATE rtp_records SET state = 'WITHIN'`).rejects.toThrow('are kept');
    await expect(sql`DELETE FROM rtp_records`).rejects.toThrow('are kept');
    await expect(sql`TRUNCATE rtp_records`).rejects.toThrow('are kept');
  });

  test('judges a day only once its settlement report is complete, and judges no later day before that day', async () => {
    const late = await oldPartner(client, sql, today, 5);
    await play(late, shift(today, -5), 0.9);
    const judged = async () =>
      (await sql`SELECT count(*) FROM rtp_records WHERE game_id = ${late.gameId}`)[0]!.count;
    // The worker's clock is three days back. The worker finds that the report of that day exists but is not
    // complete.
    const early = await settlementWorker(stores, shift(today, -3));
    await early.job.turn();
    await early.end();
    expect(await judged()).toBe('4');
    await turn();
    expect(await judged()).toBe('10');
  });

  test('lets operators read the same judgements of a game as its partner', async () => {
    const shown = await client.operator<Rtp>('GET', `/games/${honest.gameId}/rtp`);
    expect(shown.body).toEqual((await read(honest)).body);
  });
});

describe('reviews of returns', () => {
  const reviews = async (query = '') =>
    (await client.operator<Reviews>('GET', `/rtp-reviews?gameId=${generous.gameId}${query}`)).body;

  test('opens one review for a game that pays too much, and none for an honest game', async () => {
    const { reviews: found, total } = await reviews('&status=OPEN');
    expect(total).toBe(1);
    expect(found[0]).toMatchObject({
      status: 'OPEN',
      gameConfigId: generous.gameId,
      finding: null,
      notes: [],
    });
    for (const { state } of found[0]!.records) expect(['REVIEW', 'ALERT']).toContain(state);
    expect((await client.operator<Reviews>('GET', '/rtp-reviews')).body.total).toBe(1);
    const newest = found[0]!.records.findLast(({ window }) => window === 'ROLLING_30')!;
    const own = connectPostgres(stores.databaseUrl, { max: 1, name: 'test', onError: () => {} });
    const told = await openReviews(own);
    await own.end();
    expect(told).toEqual({
      open: 1,
      oldestSeconds: expect.any(Number),
      alertsOf30Days: newest.state === 'ALERT' ? 1 : 0,
    });
  });

  test('adds notes to a review of returns, and closes the review only once', async () => {
    const { reviewId } = (await reviews()).reviews[0]!;
    const path = `/rtp-reviews/${reviewId}`;
    const noted = await client.operator<Review>('POST', `${path}/notes`, { text: 'We look into it' });
    expect(noted).toMatchObject({ status: 201, body: { notes: [{ text: 'We look into it' }] } });
    const closing = { finding: 'GAME_ERROR', text: 'A wrong table' };
    const closed = await client.operator<Review>('POST', `${path}/close`, closing);
    expect(closed).toMatchObject({
      status: 200,
      body: { status: 'CLOSED', finding: 'GAME_ERROR', notes: [{}, { text: 'A wrong table' }] },
    });
    const again = await client.operator('POST', `${path}/close`, closing);
    expect(again).toMatchObject({ status: 400, body: { errorCode: 'KS-4101' } });
    expect((await reviews('&status=OPEN')).total).toBe(0);
    const actions =
      await sql`SELECT action FROM audit_log WHERE subject = ${`rtp-review:${reviewId}`} ORDER BY audit_id`;
    expect(actions.map(({ action }) => action)).toEqual([
      'rtp.review-open',
      'rtp.review-note',
      'rtp.review-close',
    ]);
    await expect(sql`UPDATE rtp_reviews SET finding = 'CHANCE'`).rejects.toThrow('closed once');
  });
});
