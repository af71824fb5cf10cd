/**
 * Tests dropping days of an installation with a communal progressive: the pots, shares and recent players
 * must continue exactly after the dropped days.
 */
import { readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { archiveDay } from '../../../src/books/archive/archiveDay.js';
import { dropDay } from '../../../src/books/archive/dropDay.js';
import { idsOfDay } from '../../../src/books/archive/ledgerDays.store.js';
import { archiveTotals } from '../../../src/books/archive/readArchive.js';
import { verifySettlements } from '../../../src/books/settlement/verify.js';
import { recover } from '../../../src/cli/recover.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import type { Sql } from '../../../src/postgres/connection.js';
import { freshStores } from '../../setup/freshStores.js';
import type { Client } from '../../support/client.js';
import { auditFindings, RULES, type SpinBody, setUp, spin } from '../../support/communal.js';
import { openToOthers } from '../../support/openToOthers.js';
import { openNodes } from '../../support/redis.js';
import { startService } from '../../support/service.js';
import {
  bookedInto,
  dayAt,
  ENTRIES_AHEAD,
  longAgo,
  oldPartner,
  runIntoMoment,
  type SettledPartner,
  settlementWorker,
  shift,
  startOf,
} from '../../support/settlement.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

const DAYS = 5;
const KEEP_DAYS = 3;
const PLAYERS = ['ann', 'bob', 'cy'];
const TIERS = [
  { tierLevel: 1, tierName: 'Mini', triggerAtSpins: 10, amountUsd: '1.000003' },
  { tierLevel: 2, tierName: 'Maxi', triggerAtSpins: 30, amountUsd: '4.00' },
];
const rules = (more: object = {}) => ({ ...RULES, tiers: TIERS, windowMinutes: 10_080, ...more });

let stores: TestStores;
let directory: string;
let sql: Sql;
let raw: postgres.Sql;
let redis: Redis;
let partner: SettledPartner;
let days: string[];
/** The day after the last complete day. The tests use it as the current day. */
let today: string;

async function service<T>(run: (client: Awaited<ReturnType<typeof startService>>) => Promise<T>): Promise<T> {
  const settings = { ...ENTRIES_AHEAD, CELLS: '1', SETTLEMENT_CRON: longAgo(days[0]!) };
  const client = await startService(stores, settings);
  try {
    return await run(client);
  } finally {
    await client.stop();
  }
}

/** Sends one spin at a time, so that the test can predict which spin triggers the bonus. */
async function spins(
  client: Client,
  count: number,
  players: readonly string[] = PLAYERS,
): Promise<SpinBody[]> {
  const bodies: SpinBody[] = [];
  for (let i = 0; i < count; i++) {
    const { status, body, text } = await spin(client, partner, partner.gameId, players[i % players.length]!);
    expect(status, text).toBe(200);
    bodies.push(body);
  }
  return bodies;
}

const change = (client: Client, more: object) =>
  client.operator('PUT', `/games/${partner.gameId}/communal`, rules(more));

/**
 * Ends a day: the next entries fall into the last millisecond of the day, and later entries into the next
 * day.
 */
const endDay = (i: number, entriesLeft = 0) =>
  runIntoMoment(redis, partner.cell, startOf(days[i]!) + 86_400_000, entriesLeft);

beforeAll(async () => {
  stores = await freshStores();
  directory = await mkdtemp(join(tmpdir(), 'spindle-archive-'));
  sql = connectPostgres(stores.databaseUrl, { max: 3, name: 'test', onError: () => {} });
  raw = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  redis = new Redis(stores.redisUrl, { protocol: 2 });
  const first = dayAt(Date.now());
  days = Array.from({ length: DAYS }, (_, i) => shift(first, i));
  today = shift(first, DAYS);
  await service(async (client) => {
    partner = await oldPartner(client, raw, first, 0);
    // These spins are not counted, because no rules of the communal progressive are in force yet.
    await spins(client, 3);
    await setUp(client, partner.gameId, rules(), '50.00');
    // Two spins trigger the bonus. Then ann stops playing while a share waits for her, and the last event of
    // the day pays its shares on the next day.
    await spins(client, 27);
    await spins(client, 2, ['bob', 'cy']);
    await bookedInto(raw, partner.cell, days[0]!);
    await endDay(0, 1);
    expect((await spins(client, 1, ['bob']))[0]!.communityBonus).toMatchObject({ tierLevel: 2 });
    await bookedInto(raw, partner.cell, days[1]!);
    // Rules and budget change within the day. Meanwhile spins are not counted, and afterwards the count
    // restarts from zero.
    await spins(client, 4, ['bob']);
    expect((await change(client, { enabled: false })).status).toBe(200);
    await spins(client, 7, ['cy', 'bob']);
    await setUp(client, partner.gameId, rules({ tiers: TIERS.slice(0, 1) }), '-10.00');
    await spins(client, 13, ['cy', 'bob']);
    await endDay(1);
    await spins(client, 9, ['bob', 'dee']);
    await bookedInto(raw, partner.cell, days[2]!);
    await endDay(2);
    await spins(client, 15, ['eve', 'bob']);
    await bookedInto(raw, partner.cell, days[3]!);
    await endDay(3);
    await spins(client, 3, ['bob']);
    await bookedInto(raw, partner.cell, days[4]!);
    await endDay(4);
    await spins(client, 12, ['bob', 'cy']);
    await bookedInto(raw, partner.cell, today);
  });
  const worker = await settlementWorker(stores, today);
  await worker.job.turn();
  await worker.end();
  await raw`UPDATE cells SET binding_ms = ${startOf(today)},
    bound_from_id = ${String(idsOfDay(shift(today, -KEEP_DAYS)).from)}::bigint`;
  for (const day of days) await archiveDay(sql, { day, directory, actor: 'test', today });
}, 180_000);

afterAll(async () => {
  redis?.disconnect();
  await sql?.end();
  await raw?.end();
  await rm(directory, { recursive: true, force: true });
  await stores?.drop();
});

const drop = (day: string, onFailpoint: (step: string) => void = () => {}) =>
  dropDay(sql, { day, directory, keepDays: KEEP_DAYS, actor: 'test', today, onFailpoint });
const violations = () => service(() => auditFindings(stores));
const shownTo = (client: Client, playerId: string) =>
  client.partner('GET', `/players/${playerId}`, partner.key);

/** Reads all responses of the API about the bonus and the players, which dropping days must not change. */
const shown = (client: Client) =>
  Promise.all([
    client.operator('GET', `/games/${partner.gameId}/communal`).then(({ body }) => body),
    ...PLAYERS.map((playerId) => shownTo(client, playerId).then(({ body }) => body)),
    ...PLAYERS.map((playerId) =>
      client.partner('GET', `/players/${playerId}/community-bonuses`, partner.key).then(({ body }) => body),
    ),
  ]);

describe.sequential('two dropped days with a communal progressive', () => {
  let before: unknown[];

  test('makes archive files readable by their owner only', () => {
    expect(readdirSync(directory)).toEqual(days);
    expect(openToOthers(directory)).toEqual([]);
  });

  test('repeats a drop that was killed at any step, and the audit finds every new boundary consistent', async () => {
    expect(await violations()).toEqual([]);
    before = await service(shown);
    for (const day of days.slice(0, 2)) {
      for (const step of ['drop.boundary', 'drop.detached']) {
        const ended = drop(day, (at) => {
          if (at === step) throw new Error(`ended at ${at}`);
        });
        await expect(ended).rejects.toThrow(`ended at ${step}`);
      }
      expect(await drop(day)).toEqual({ faults: [] });
      expect(await violations()).toEqual([]);
    }
    expect(await service(shown)).toEqual(before);
  });

  test.each([
    ['boundary_pots', 'progress = progress + 1', 'progress = progress - 1'],
    ['boundary_pots', 'budget_micros = budget_micros + 1', 'budget_micros = budget_micros - 1'],
    ['communal_shares', 'amount_micros = amount_micros + 1', 'amount_micros = amount_micros - 1'],
    ['communal_events', 'winners = winners + 1', 'winners = winners - 1'],
    ['communal_events', 'progress = progress + 1', 'progress = progress - 1'],
    ['communal_days', 'shares = shares + 1', 'shares = shares - 1'],
  ])('the audit detects a change in the boundary table %s: %s', async (table, changed, back) => {
    const oldest = table === 'communal_shares' ? 'entry_id' : table === 'communal_events' ? 'event_id' : '';
    const where =
      table === 'communal_days' ? `day = '${days[0]}'` : `${oldest} = (SELECT min(${oldest}) FROM ${table})`;
    const one = oldest === '' && table !== 'communal_days' ? '' : ` WHERE ${where}`;
    await raw.unsafe(`UPDATE ${table} SET ${changed}${one}`);
    expect(await violations()).not.toEqual([]);
    await raw.unsafe(`UPDATE ${table} SET ${back}${one}`);
    expect(await violations()).toEqual([]);
  });

  test("the audit detects a changed name among the recent players, by the next event's payments", async () => {
    await raw`UPDATE boundary_recency SET player_id = 'zed' WHERE player_id = 'cy'`;
    expect(await violations()).not.toEqual([]);
    await raw`UPDATE boundary_recency SET player_id = 'cy' WHERE player_id = 'zed'`;
  });

  test('history, statement and recall start at the boundary of dropped days, and count only kept bonus shares', async () => {
    await service(async (client) => {
      for (const playerId of ['ann', 'bob', 'cy']) {
        const [kept] =
          await raw`SELECT count(*)::int AS entries, (count(*) FILTER (WHERE kind = 1))::int AS spins FROM ledger
          WHERE player_id = ${playerId}`;
        const path = `/players/${playerId}`;
        const all: unknown[] = [];
        for (let page = 1; ; page++) {
          const { body } = await client.partner<{ spins: unknown[]; total: number }>(
            'GET',
            `${path}/spins?limit=5&page=${page}`,
            partner.key,
          );
          expect(body.total).toBe(kept!.spins);
          if (body.spins.length === 0) break;
          all.push(...body.spins);
        }
        expect(all.length).toBe(kept!.spins);
        const lines: unknown[] = [];
        let cursor: string | null = '';
        while (cursor !== null) {
          const page: { body: { entries: unknown[]; nextCursor: string | null } } = await client.operator(
            'GET',
            `/partners/${partner.partnerId}${path}/statement?limit=1${cursor && `&cursor=${cursor}`}`,
          );
          expect(page.body.entries.length).toBe(kept!.entries === 0 ? 0 : 1);
          lines.push(...page.body.entries);
          cursor = page.body.nextCursor ?? null;
        }
        expect(lines.length).toBe(kept!.entries);
        const recall = await client.partner<{ games: { createdAt: string }[] }>(
          'GET',
          `${path}/recall?limit=50`,
          partner.key,
        );
        expect(recall.status).toBe(200);
        for (const { createdAt } of recall.body.games) expect(createdAt >= days[2]!).toBe(true);
      }
    });
  });

  test('reports on dropped days have the same figures as the settlement reports', async () => {
    type Figures = Record<'spins' | 'wageredUsd' | 'paidOutUsd' | 'communityBonusUsd', number>;
    const micros = (usd: number): number => Math.round(usd * 1e6);
    await service(async (client) => {
      const over = async (from: string, to: string): Promise<Figures> => {
        const query = `interval=RANGE&from=${from}&to=${to}&gameId=${partner.gameId}`;
        return (await client.operator<{ rows: Figures[] }>('GET', `/reports/games?${query}`)).body.rows[0]!;
      };
      const all = await over(days[0]!, days[3]!);
      const sum = { spins: 0, wageredUsd: 0, paidOutUsd: 0, communityBonusUsd: 0 };
      for (const day of days.slice(0, 4)) {
        const path = `/partners/${partner.partnerId}/settlements/${day}`;
        const settled = await client.operator<{ gameBreakdown: Partial<Figures>[] }>('GET', path);
        const { spins: played, wageredUsd, paidOutUsd, communityBonusUsd } = await over(day, day);
        const figures = { spins: played, wageredUsd, paidOutUsd, communityBonusUsd };
        expect(settled.body.gameBreakdown.map((game) => ({ communityBonusUsd: 0, ...game }))).toMatchObject([
          figures,
        ]);
        for (const [name, value] of Object.entries(figures))
          sum[name as keyof Figures] += name === 'spins' ? value : micros(value);
      }
      expect(sum.communityBonusUsd).toBeGreaterThan(0);
      expect(sum).toEqual({
        spins: all.spins,
        wageredUsd: micros(all.wageredUsd),
        paidOutUsd: micros(all.paidOutUsd),
        communityBonusUsd: micros(all.communityBonusUsd),
      });
    });
  });

  test('rebuilds pots, players and pending notifications in Redis after a wipe, and the bonus continues', async () => {
    await redis.flushdb();
    const { nodes, close } = await openNodes(stores.redisUrl);
    const states = await recover(sql, nodes, {
      isCheck: false,
      isToReplace: true,
      isVolatileAllowed: true,
      resume: [],
      progress: () => {},
      clocks: { now: Date.now, skewMaxMs: 31_536_000_000 },
    });
    close();
    expect(states.map(({ state }) => state)).not.toContain('failed');
    await service(async (client) => {
      expect(await shown(client)).toEqual(before);
      await until(
        async () => (await spin(client, partner, partner.gameId, 'bob')).status === 200,
        'the game is dealt from again',
      );
      const bodies = await spins(client, 25, ['ann', 'bob', 'cy']);
      // The service now notifies the player of a share from a dropped day that was still waiting.
      expect(bodies[0]!.communityBonus).toMatchObject({ tierLevel: 2, isTriggerPlayer: false });
      expect(bodies.filter(({ communityBonus }) => communityBonus?.isTriggerPlayer).length).toBeGreaterThan(
        1,
      );
      expect(await auditFindings(stores)).toEqual([]);
    });
    expect(await violations()).toEqual([]);
  });

  test('verifies the settlement reports of dropped days including their communal bonuses', async () => {
    expect((await verifySettlements(sql, undefined)).differences).toEqual([]);
    const archived = { archive: archiveTotals(directory) };
    expect((await verifySettlements(sql, undefined, archived)).differences).toEqual([]);
  });
});
