/**
 * Tests that each cause produces exactly one event, and that no event lacks a cause (docs/contract.md §13.1).
 */
import { Ajv2020, type AnySchemaObject } from 'ajv/dist/2020.js';
import autocannon from 'autocannon';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { reserveFell, reserveIsBack } from '../../src/engine/blocks/reserve.store.js';
import { cellLeases } from '../../src/engine/cells/cells.store.js';
import { recordEvents } from '../../src/postgres/partnerEvents.js';
import { noticeExpiringKeys } from '../../src/webhooks/notices.store.js';
import { world } from '../setup/world.js';
import type { Client, TestPartner } from '../support/client.js';
import {
  type Received,
  type Receiver,
  type Registered,
  register,
  startReceiver,
} from '../support/receiver.js';
import { startService } from '../support/service.js';
import { ENTRIES_AHEAD, longAgo } from '../support/settlement.js';
import { parSheet } from '../support/sheets.js';
import { until } from '../support/wait.js';

const DAY_MS = 86_400_000;
const EVENTS = [
  'spin.large_win',
  'settlement.report_ready',
  'block.low_reserve',
  'api_key.expiring',
  'player.adjusted',
];
/** All types of events that a webhook can subscribe to. */
const ALL_EVENTS = [...EVENTS, 'game.status_changed'];
const WAGER = 0.25;

const { stores, ownSql: sql } = world();
let client: Client & { stop(): Promise<void> };
let books: postgres.Sql;

beforeAll(async () => {
  // The schedule is never due, so the service makes a report only when a test requests it.
  client = await startService(stores, {
    SETTLEMENT_CRON: longAgo(new Date().toISOString().slice(0, 10)),
  });
  books = postgres(stores.databaseUrl, { max: 2, onnotice: () => {} });
});
afterAll(async () => {
  await books.end();
  await client.stop();
});

/** All deliveries that listeners received. */
const got: Received[] = [];

interface Listener extends TestPartner, Receiver {
  readonly hook: Registered;
  /** Returns the data of the received events of a type. */
  data(event: string): Record<string, unknown>[];
}

/** Creates a partner with a receiver for all its events. */
async function listener(settings: Record<string, unknown> = {}, events = EVENTS): Promise<Listener> {
  const partner = await client.newPartner(settings);
  const to = await startReceiver();
  onTestFinished(() => {
    got.push(...to.received);
    return to.close();
  });
  const hook = await register(client, partner.key, to.url(), events);
  const data = (type: string) =>
    to.received.filter(({ event }) => event.event === type).map((r) => r.event.data);
  return { ...partner, ...to, hook, data };
}

/** Counts the recorded events of a partner, without changes of a game's status. */
async function recorded(partnerId: number): Promise<number> {
  const [row] = await books<{ count: string }[]>`
    SELECT count(*) FROM events WHERE partner_id = ${partnerId} AND event <> 'game.status_changed'`;
  return Number(row!.count);
}

/**
 * Waits until the ledger has a number of spins of a partner. The events of these spins are recorded by then.
 */
async function booked(partnerId: number, spins: number): Promise<void> {
  await until(async () => {
    const [row] = await books<{ count: string }[]>`
      SELECT count(*) FROM ledger WHERE partner_id = ${partnerId} AND kind = 1`;
    return Number(row!.count) === spins;
  }, `${spins} spins are booked`);
}

interface Spin {
  spinId: string;
  outcome: { payoutUsd: number; prizeTier: number };
  requestId?: string;
}

let asked = 0;
async function spins(
  partner: TestPartner,
  gameId: number,
  count: number,
): Promise<(Spin & { playerId: string })[]> {
  return Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const playerId = `Ünï "${i % 7}" 🎰`;
      const request = i % 2 === 0 ? {} : { requestId: `r\\${asked++}` };
      const { status, body } = await client.spin<Spin>(partner.key, {
        gameId,
        playerId,
        wagerUsd: WAGER,
        ...request,
      });
      expect(status).toBe(200);
      return { ...body, playerId };
    }),
  );
}

describe('the event spin.large_win', () => {
  test('sends spin.large_win once for each payout above the threshold, and for no other payout', async () => {
    // The two lowest prizes pay 0.50 and 0.75 USD.
    const partner = await listener({ largeWinThresholdUsd: 0.75 });
    const second = await startReceiver();
    onTestFinished(() => second.close());
    await register(client, partner.key, second.url(), ['spin.large_win']);
    const unasked = await startReceiver();
    onTestFinished(() => unasked.close());
    await register(client, partner.key, unasked.url(), ['api_key.expiring']);
    const gameId = await client.newGame(partner.key, parSheet('classic-3-reel'));
    const made = await spins(partner, gameId, 400);
    const expected = made
      .filter(({ outcome }) => outcome.payoutUsd > 0.75)
      .map(({ spinId, playerId, outcome, requestId }) => ({
        spinId,
        gameId,
        playerId,
        payoutUsd: outcome.payoutUsd,
        prizeTier: outcome.prizeTier,
        ...(requestId === undefined ? {} : { requestId }),
      }));
    expect(expected.length).toBeGreaterThan(0);
    expect(made.some(({ outcome }) => outcome.payoutUsd === 0.75)).toBe(true);
    await booked(partner.partnerId, made.length);
    expect(await recorded(partner.partnerId)).toBe(expected.length);
    await until(
      () => partner.received.length >= expected.length && second.received.length >= expected.length,
      'both receivers are told',
    );
    const bySpin = (a: Record<string, unknown>, b: Record<string, unknown>) =>
      String(a.spinId) < String(b.spinId) ? -1 : 1;
    expect(partner.data('spin.large_win').sort(bySpin)).toEqual(expected.sort(bySpin));
    expect(Object.keys(partner.received[0]!.event.data)).toEqual(
      Object.keys(expected[0]!)
        .slice(0, 5)
        .concat('requestId' in partner.received[0]!.event.data ? ['requestId'] : []),
    );
    const idsOf = (to: Receiver) => to.received.map(({ event }) => event.id).sort();
    expect(idsOf(second)).toEqual(idsOf(partner));
    expect(new Set(idsOf(partner)).size).toBe(expected.length);
    expect(unasked.received).toEqual([]);
    // The event refers to the spin and has the same time.
    const { event } = partner.received[0]!;
    const spin = await client.partner('GET', `/spins/${event.data.spinId}`, partner.key);
    expect(spin.body).toMatchObject({ createdAt: event.createdAt, gameId });
  });

  test('uses a changed threshold for later events spin.large_win', async () => {
    const partner = await listener({ largeWinThresholdUsd: 1e6 });
    const gameId = await client.newGame(partner.key, parSheet('classic-3-reel'));
    await spins(partner, gameId, 50);
    await booked(partner.partnerId, 50);
    expect(await recorded(partner.partnerId)).toBe(0);
    await client.operator('PATCH', `/partners/${partner.partnerId}`, { largeWinThresholdUsd: 0 });
    const made = await spins(partner, gameId, 50);
    await booked(partner.partnerId, 100);
    const wins = made.filter(({ outcome }) => outcome.payoutUsd > 0).length;
    expect(await recorded(partner.partnerId)).toBe(wins);
  });

  test('records spin.large_win in small transactions however many spins wait, because each webhook adds a row', async () => {
    const partner = await listener({ largeWinThresholdUsd: 0, spinRateLimit: 100_000 });
    const { partnerId } = partner;
    const gameId = await client.newGame(partner.key, parSheet('classic-3-reel'));
    const count = 1200;
    const made = await books.begin(async (tx) => {
      // The lock stops the flush of the ledger meanwhile.
      await tx`LOCK TABLE game_days IN SHARE MODE`;
      return spins(partner, gameId, count);
    });
    await booked(partnerId, count);
    const wins = made.filter(({ outcome }) => outcome.payoutUsd > 0).length;
    expect(await recorded(partnerId)).toBe(wins);
    const together = await books<{ count: string }[]>`
      SELECT count(*) FROM events WHERE partner_id = ${partnerId} GROUP BY xmin::text`;
    // A batch of at most 128 spins is always committed as a whole.
    const most = Math.max(...together.map((each) => Number(each.count)));
    expect(wins).toBeGreaterThan(64 + 128);
    expect(most).toBeLessThan(64 + 128);
  });

  test('sends spin.large_win for raffle tickets too, and no block.low_reserve for a raffle', async () => {
    const partner = await listener({ largeWinThresholdUsd: 50 });
    const made = await client.operator<{ gameConfigId: number }>(
      'POST',
      `/partners/${partner.partnerId}/raffles`,
      {
        displayName: 'R',
        configName: 'R',
        ticketPriceUsd: WAGER,
        poolSize: 12,
        prizes: [
          { prizeName: 'Car', prizeTier: 6, valueUsd: 500, count: 2 },
          { prizeName: 'Bicycle', prizeTier: 3, valueUsd: 50, count: 3 },
        ],
      },
    );
    const gameId = made.body.gameConfigId;
    await until(async () => {
      const { body } = await client.partner<{ games: { status: string }[] }>('GET', '/games', partner.key);
      return body.games[0]!.status === 'ACTIVE';
    }, 'the pool is sealed');
    const tickets = await spins(partner, gameId, 12);
    await booked(partner.partnerId, 12);
    await until(() => partner.received.length === 2, 'the partner is told');
    const wins = tickets.filter(({ outcome }) => outcome.payoutUsd === 500).map(({ spinId }) => spinId);
    const told = partner.data('spin.large_win');
    expect(told).toMatchObject([1, 2].map(() => ({ gameId, payoutUsd: 500, prizeTier: 6 })));
    expect(told.map(({ spinId }) => spinId).sort()).toEqual(wins.sort());
    expect(await recorded(partner.partnerId)).toBe(2);
  });

  test('keeps spin.large_win for the feed, without a delivery, if no webhook subscribes to it', async () => {
    const { key, partnerId: id } = await client.newPartner({ largeWinThresholdUsd: 0 });
    const gameId = await client.newGame(key, parSheet('classic-3-reel'));
    await register(client, key, 'http://localhost:1/', ['api_key.expiring']);
    const made = await spins({ key, partnerId: id }, gameId, 50);
    await booked(id, 50);
    expect(await books`SELECT FROM deliveries NATURAL JOIN events WHERE partner_id = ${id}`).toHaveLength(0);
    const length = made.filter(({ outcome }) => outcome.payoutUsd > 0).length;
    const feed = () => client.partner('GET', '/events?limit=100', key);
    await expect.poll(feed, { timeout: 90_000 }).toMatchObject({ body: { events: { length } } });
  });
});

describe('the event player.adjusted', () => {
  const adjust = (partnerId: number, amountUsd: number, requestId: string) =>
    client.operator<{ adjustmentId: string; balanceUsd: number }>(
      'POST',
      `/partners/${partnerId}/players/alice/adjustments`,
      { amountUsd, reason: 'a complaint', requestId },
    );

  test('sends player.adjusted once for each adjustment, and none for a repeated or refused one', async () => {
    const partner = await listener({ openingBalanceUsd: 10, balanceMode: 'enforce' });
    const { partnerId } = partner;
    const made = [await adjust(partnerId, 2.5, 'one'), await adjust(partnerId, -1, 'two')];
    expect(await adjust(partnerId, -1, 'two')).toMatchObject({ status: 200, body: made[1]!.body });
    expect(await adjust(partnerId, -100, 'three')).toMatchObject({ body: { errorCode: 'KS-4225' } });
    await until(() => partner.received.length >= 2, 'the partner is notified');
    const wanted = [2.5, -1].map((amountUsd, i) => ({
      entryId: made[i]!.body.adjustmentId,
      kind: 'adjustment',
      playerId: 'alice',
      amountUsd,
      balanceAfterUsd: made[i]!.body.balanceUsd,
      reason: 'a complaint',
    }));
    const events = await client.partner<{ events: { event: string; data: unknown }[] }>(
      'GET',
      '/events',
      partner.key,
    );
    expect(events.body.events.map(({ event, data }) => [event, data])).toEqual(
      wanted.map((data) => ['player.adjusted', data]),
    );
    expect(await recorded(partnerId)).toBe(2);
    const byAmount = (one: Record<string, unknown>, two: Record<string, unknown>) =>
      Number(two.amountUsd) - Number(one.amountUsd);
    expect(partner.data('player.adjusted').sort(byAmount)).toEqual(wanted);
    const listed = await client.partner('GET', '/adjustments', partner.key);
    expect(listed.body.adjustments).toMatchObject(wanted);
  });

  test('records player.adjusted in the transaction that commits the entry, or not at all', async () => {
    const { partnerId, key } = await client.newPartner();
    const entries = () => books`
      SELECT l.xmin::text = e.xmin::text AS is_together FROM ledger l
        LEFT JOIN events e ON e.partner_id = l.partner_id AND e.event = 'player.adjusted'
      WHERE l.partner_id = ${partnerId} AND l.kind = 3`;
    const adjusted = await books.begin(async (tx) => {
      // The lock stops every flush with an adjustment before its end.
      await tx`LOCK TABLE events IN SHARE MODE`;
      const asked = adjust(partnerId, 1, 'locked');
      await until(async () => {
        const waiting = await tx`
          SELECT 1 FROM pg_locks WHERE relation = 'events'::regclass AND NOT granted`;
        return waiting.length > 0;
      }, 'the flush waits for the lock');
      expect(await entries()).toHaveLength(0);
      return { asked };
    });
    expect((await adjusted.asked).status).toBe(200);
    await until(async () => (await entries()).length > 0, 'the adjustment is committed');
    expect(await entries()).toEqual([{ is_together: true }]);
    const { body } = await client.partner<{ events: unknown[] }>('GET', '/events', key);
    expect(body.events).toHaveLength(1);
  });

  test('sends player.adjusted for each refunded ticket of a voided raffle', async () => {
    const partner = await listener();
    const raffle = await client.api.newRaffle(partner.partnerId, 'voided', {
      ticketPriceUsd: WAGER,
      poolSize: 10,
      prizes: [{ prizeName: 'Mug', prizeTier: 1, valueUsd: 1, count: 10 }],
    });
    const tickets = await spins(partner, raffle, 3);
    const path = `/raffles/${raffle}/void`;
    await until(
      async () => (await client.operator('POST', path, { reason: 'a fault' })).body.isDone === true,
      'each ticket is refunded',
    );
    await until(() => partner.received.length >= 3, 'the partner is notified');
    const told = partner.data('player.adjusted');
    expect(told.map(({ spinId }) => spinId).sort()).toEqual(tickets.map(({ spinId }) => spinId).sort());
    expect(told).toMatchObject(
      tickets.map(() => ({ kind: 'refund', gameId: raffle, amountUsd: WAGER, reason: 'a fault' })),
    );
    expect(await recorded(partner.partnerId)).toBe(3);
  });
});

describe('the event block.low_reserve', () => {
  /** More outcomes than two blocks have, and fewer than three. */
  const BURST = 4200;

  test('sends block.low_reserve when a game has fewer blocks than its reserve', async () => {
    const partner = await listener();
    const gameId = await client.newGame(partner.key, parSheet('classic-3-reel'), BURST);
    await until(async () => {
      const [row] = await books<{ is_low: boolean }[]>`
        SELECT is_low FROM block_reserves WHERE game_id = ${gameId}`;
      return row?.is_low === false;
    }, 'the game has its reserve');
    // The lock stops commits, and so no new block is made while two of the three blocks are dealt.
    const lock = await books.reserve();
    await lock`BEGIN`;
    await lock`LOCK TABLE game_days IN SHARE MODE`;
    const run = await autocannon({
      url: `${client.base}/api/partner/v1/spin`,
      method: 'POST',
      headers: { 'X-API-Key': partner.key },
      body: JSON.stringify({ gameId, playerId: 'p', wagerUsd: WAGER }),
      amount: BURST,
      connections: 32,
    });
    await lock`COMMIT`;
    lock.release();
    expect(run['2xx']).toBe(BURST);
    await until(() => partner.data('block.low_reserve').length > 0, 'the partner is told');
    expect(partner.data('block.low_reserve')).toEqual([{ gameId, readyBlocks: 1, minReadyBlocks: 2 }]);
    await until(async () => {
      const [row] = await books<{ is_low: boolean }[]>`
        SELECT is_low FROM block_reserves WHERE game_id = ${gameId}`;
      return row?.is_low === false;
    }, 'the game has its reserve again');
    await booked(partner.partnerId, 4200);
    expect(await recorded(partner.partnerId)).toBe(1);
  });

  test('sends block.low_reserve once for each fall of the reserve, whichever worker owns the cell', async () => {
    const partner = await listener();
    const gameId = await client.newGame(partner.key, parSheet('classic-3-reel'));
    const [{ cell } = { cell: 0 }] = await books<{ cell: number }[]>`
      SELECT cell FROM partners WHERE partner_id = ${partner.partnerId}`;
    // The test owns the cell. On a slow machine a worker's lease could expire, and the next owner would
    // record the fall of the reserve.
    await books`UPDATE cells SET owner = 'test', fence = fence + 1, lease_until = 'infinity' WHERE cell = ${cell}`;
    await books`DELETE FROM block_reserves WHERE game_id = ${gameId}`;
    const lease = (await cellLeases(sql)).find((candidate) => candidate.cell === cell)!;
    const fall = { gameId, partnerId: partner.partnerId, readyBlocks: 1, minReadyBlocks: 2 };
    // The game never had its full reserve, so no fall is reported.
    expect(await reserveFell(sql, lease, fall)).toBe(0);
    await reserveIsBack(sql, lease, gameId);
    const told = await Promise.all([1, 2, 3].map(() => reserveFell(sql, lease, fall)));
    expect(told.sort()).toEqual([0, 0, 1]);
    await reserveIsBack(sql, lease, gameId);
    await reserveIsBack(sql, lease, gameId);
    expect(await reserveFell(sql, lease, { ...fall, readyBlocks: 0 })).toBe(1);
    expect(await recorded(partner.partnerId)).toBe(2);
    const stale = { ...lease, fence: lease.fence - 1n };
    await expect(reserveIsBack(sql, stale, gameId)).rejects.toThrow('is no longer valid');
    await expect(reserveFell(sql, stale, fall)).rejects.toThrow('is no longer valid');
    await books`UPDATE cells SET lease_until = '-infinity' WHERE cell = ${cell}`;
  });
});

describe('the event api_key.expiring', () => {
  async function keyFor(partner: TestPartner, days: number): Promise<{ keyId: number; expiresMs: number }> {
    const expiresAt = new Date(Date.now() + days * DAY_MS).toISOString();
    const issued = await client.operator<{ keyId: number }>('POST', `/partners/${partner.partnerId}/keys`, {
      name: `${days} days`,
      expiresAt,
    });
    return { keyId: issued.body.keyId, expiresMs: Date.parse(expiresAt) };
  }
  /**
   * Runs the expiry check of a worker with a clock that shows this number of days before the key expires.
   * Returns the number of new events.
   */
  async function look(
    partner: TestPartner,
    expiresMs: number,
    daysLeft: number,
    workers = 1,
  ): Promise<number> {
    const before = await recorded(partner.partnerId);
    const now = new Date(expiresMs - daysLeft * DAY_MS);
    await Promise.all(Array.from({ length: workers }, () => noticeExpiringKeys(sql, now)));
    return (await recorded(partner.partnerId)) - before;
  }

  test('sends api_key.expiring once 30, 7 and 1 days before expiry, however many workers check', async () => {
    const partner = await listener();
    const { keyId, expiresMs } = await keyFor(partner, 60);
    await keyFor(partner, 10_000);
    expect(await look(partner, expiresMs, 30.01)).toBe(0);
    for (const days of [30, 7, 1]) {
      expect(await look(partner, expiresMs, days, 4), `${days} days`).toBe(1);
      expect(await look(partner, expiresMs, days - 0.5)).toBe(0);
    }
    expect(await look(partner, expiresMs, -1)).toBe(0);
    await until(() => partner.received.length === 3, 'the partner is told');
    const expected = [1, 30, 7].map((daysLeft) => ({
      keyId,
      name: '60 days',
      expiresAt: new Date(expiresMs).toISOString(),
      daysLeft,
    }));
    const got = partner
      .data('api_key.expiring')
      .sort((a, b) => (String(a.daysLeft) < String(b.daysLeft) ? -1 : 1));
    expect(got).toEqual(expected);
  });

  test('sends no api_key.expiring for a notice day before the key was issued', async () => {
    const partner = await listener();
    const { expiresMs } = await keyFor(partner, 5);
    for (const days of [4.9, 3, 1.01]) expect(await look(partner, expiresMs, days)).toBe(0);
    expect(await look(partner, expiresMs, 0.99)).toBe(1);
    expect(await look(partner, expiresMs, 0.1)).toBe(0);
  });

  test('sends a late api_key.expiring with the current number of days if no worker checked in time', async () => {
    const partner = await listener();
    const { expiresMs } = await keyFor(partner, 60);
    // The notice for 30 days was also missed, but its text would no longer be true.
    expect(await look(partner, expiresMs, 6)).toBe(1);
    await until(() => partner.received.length === 1, 'the partner is told');
    expect(partner.data('api_key.expiring')).toMatchObject([{ daysLeft: 7 }]);
  });

  test('sends no api_key.expiring for revoked keys or to deactivated partners', async () => {
    const partner = await listener();
    const revoked = await keyFor(partner, 60);
    await client.operator('DELETE', `/partners/${partner.partnerId}/keys/${revoked.keyId}`);
    const gone = await listener();
    const { expiresMs } = await keyFor(gone, 60);
    await client.operator('PATCH', `/partners/${gone.partnerId}`, { isActive: false });
    for (const days of [30, 7, 1]) {
      expect(await look(partner, revoked.expiresMs, days)).toBe(0);
      expect(await look(gone, expiresMs, days)).toBe(0);
    }
  });

  test('sends api_key.expiring as soon as a worker starts', async () => {
    const partner = await listener();
    await keyFor(partner, 60);
    const now = (): number => Date.now() + 31 * DAY_MS;
    const worker = await startService(stores, { ROLES: 'worker', ...ENTRIES_AHEAD }, { now });
    await until(() => partner.received.length === 1, 'the partner is told');
    await worker.stop();
    expect(partner.data('api_key.expiring')).toMatchObject([{ daysLeft: 30 }]);
  });
});

describe('the event settlement.report_ready', () => {
  test('sends settlement.report_ready for each report of a past day and for each later revision', async () => {
    const partner = await listener();
    await client.newGame(partner.key, parSheet('classic-3-reel'));
    await books`
      UPDATE partners SET created_at = created_at - interval '2 days' WHERE partner_id = ${partner.partnerId}`;
    await books`
      UPDATE games SET created_at = created_at - interval '2 days' WHERE partner_id = ${partner.partnerId}`;
    const make = async (date: string) => {
      const path = `/partners/${partner.partnerId}/settlements/${date}`;
      const { status, body } = await client.operator<{ reportStatus: string; integrityHash: string }>(
        'POST',
        path,
      );
      expect(status).toBe(201);
      return body;
    };
    const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
    const today = day(Date.now());
    const reportDate = day(Date.parse(today) - DAY_MS);
    // A day that is not over has only a PENDING report, which sends no event.
    expect((await make(today)).reportStatus).toBe('PENDING');
    const first = await make(reportDate);
    const second = await make(reportDate);
    await until(() => partner.received.length === 2, 'the partner is told');
    const told = partner.data('settlement.report_ready');
    expect(told.sort((a, b) => Number(a.revision) - Number(b.revision))).toEqual(
      [first, second].map(({ integrityHash }, i) => ({
        reportDate,
        revision: i + 1,
        integrityHash,
        totalSpins: 0,
        ggrUsd: 0,
      })),
    );
    expect(await recorded(partner.partnerId)).toBe(2);
  });
});

describe('the event game.status_changed', () => {
  test('sends game.status_changed to a webhook that subscribes to it, and lists its delivery by the id of the event', async () => {
    const partner = await listener({}, ['game.status_changed']);
    const unsubscribed = await listener();
    const change = async (of: TestPartner, status: string): Promise<number> => {
      const { body } = await client.partner<{ games: { gameConfigId: number }[] }>('GET', '/games', of.key);
      const gameId = body.games[0]!.gameConfigId;
      expect((await client.operator('PATCH', `/games/${gameId}`, { status })).status).toBe(200);
      return gameId;
    };
    for (const { key } of [partner, unsubscribed]) await client.newGame(key, parSheet('classic-3-reel'));
    await change(unsubscribed, 'SUSPENDED');
    const gameId = await change(partner, 'SUSPENDED');
    await until(() => partner.received.length === 1, 'the first change is delivered');
    await change(partner, 'ACTIVE');
    await until(() => partner.received.length === 2, 'the second change is delivered');
    expect(partner.data('game.status_changed')).toEqual([
      { gameId, status: 'SUSPENDED', reason: 'OPERATOR' },
      { gameId, status: 'ACTIVE', reason: 'OPERATOR' },
    ]);
    expect(unsubscribed.received).toEqual([]);
    type Listed = { deliveries: { eventId: string }[] };
    const { body } = await client.partner<Listed>(
      'GET',
      `/webhooks/${partner.hook.id}/deliveries`,
      partner.key,
    );
    const feed = await client.partner<{ events: { id: string }[] }>('GET', '/events', partner.key);
    const ids = partner.received.map(({ event }) => event.id);
    expect(body.deliveries.map(({ eventId }) => eventId).reverse()).toEqual(ids);
    expect(feed.body.events.map(({ id }) => id)).toEqual(ids);
  });
});

describe('webhook events of any kind', () => {
  const report = (partnerId: number) =>
    ({
      event: 'settlement.report_ready',
      partnerId,
      createdAt: new Date('2026-05-02T02:00:00Z'),
      data: {
        reportDate: '2026-05-01',
        revision: 1,
        integrityHash: '0f'.repeat(32),
        totalSpins: 7,
        ggrUsd: -1.25,
      },
    }) as const;

  test('records a webhook event in the transaction of its cause, or not at all if that transaction fails', async () => {
    const partner = await listener();
    const undone = sql.begin(async (tx) => {
      expect(await recordEvents(tx, [report(partner.partnerId)])).toBe(1);
      throw new Error('undone');
    });
    await expect(undone).rejects.toThrow('undone');
    expect(await recorded(partner.partnerId)).toBe(0);
    await sql.begin((tx) => recordEvents(tx, [report(partner.partnerId)]));
    await until(() => partner.received.length === 1, 'the partner is told');
    const [{ event } = { event: undefined }] = partner.received;
    const { id, ...rest } = event!;
    expect(rest).toEqual({
      event: 'settlement.report_ready',
      createdAt: '2026-05-02T02:00:00.000Z',
      partnerId: partner.partnerId,
      data: report(0).data,
    });
    expect(JSON.stringify(event)).toBe(partner.received[0]!.bytes.toString('utf8'));
    expect(id).toMatch(/^evt_/);
  });

  test('sends a webhook event only to the webhooks of its own partner', async () => {
    const [one, other] = [await listener(), await listener()];
    await sql.begin((tx) => recordEvents(tx, [report(one.partnerId), report(one.partnerId)]));
    await until(() => one.received.length === 2, 'the partner is told');
    expect(new Set(one.received.map(({ event }) => event.id)).size).toBe(2);
    expect(other.received).toEqual([]);
    expect(await recorded(other.partnerId)).toBe(0);
  });

  interface Documented {
    readonly parameters: readonly { readonly name: string }[];
    readonly requestBody: { readonly content: Record<string, { readonly schema: AnySchemaObject }> };
  }

  test('sends webhook events that match the OpenAPI document', async () => {
    const { body } = await client.request<{
      webhooks: Record<string, { post: Documented }>;
      components: object;
    }>('GET', '/api/partner/v1/openapi.json');
    expect(Object.keys(body.webhooks).sort()).toEqual(['api.version.deprecated', ...ALL_EVENTS].sort());
    expect([...new Set(got.map(({ event }) => event.event))].sort()).toEqual([...ALL_EVENTS].sort());
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    ajv.addFormat('date-time', { validate: (text: string) => new Date(text).toISOString() === text });
    for (const { event, headers } of got) {
      const { parameters, requestBody } = body.webhooks[event.event]!.post;
      const { schema } = requestBody.content['application/json']!;
      const validate = ajv.compile({ ...schema, components: body.components });
      expect(validate(event), JSON.stringify([event, validate.errors])).toBe(true);
      for (const { name } of parameters) expect(headers[name.toLowerCase()], name).toBeDefined();
    }
  });
});
