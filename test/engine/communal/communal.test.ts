/**
 * Tests the communal progressive over HTTP: events, shares, notifications, and its state after a wipe of
 * Redis.
 */
import { expect, test } from 'vitest';
import { communalKey, playersKey, recentKey, waitingSharesKey } from '../../../src/engine/redis/keys.js';
import { world } from '../../setup/world.js';
import { booksHold } from '../../support/books.js';
import {
  auditFindings,
  type Bonus,
  micros,
  RULES,
  type SpinBody,
  setUp,
  spin,
} from '../../support/communal.js';
import { IS_WHOLE } from '../../support/root.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

/** Number of spins. `npm run test:scale` sends 100,000. */
const SPINS = IS_WHOLE ? 100_000 : 1000;
const CONNECTIONS = 64;
const PLAYERS = ['a', 'b', 'c', 'd'];

const { stores, service, sql, redis, partner } = world({}, { partner: { openingBalanceUsd: 1000 } });

const newGame = (): Promise<number> => service.newGame(partner.key, parSheet('classic-3-reel'));

const allBooked = () =>
  until(
    async () => (await redis.keys('*:outbox')).length === 0 || (await outboxLength()) === 0,
    'all is booked',
  );
const outboxLength = async (): Promise<number> => {
  const keys = await redis.keys('*:outbox');
  return (await Promise.all(keys.map((key) => redis.xlen(key)))).reduce((sum, length) => sum + length, 0);
};

async function loseRedis(cell: number): Promise<void> {
  const rebuilds = async (): Promise<number> =>
    (await sql`SELECT 1 FROM recoveries WHERE cell = ${cell} AND finished_at IS NOT NULL`).length;
  const before = await rebuilds();
  await redis.flushdb();
  await until(async () => (await rebuilds()) > before, 'the cell is rebuilt');
}

/**
 * Reads the players of a RECENT record, the most recent first. A player who spun several times appears
 * several times.
 */
function readRecent(record: string): { name: string; spunMs: number }[] {
  const players: { name: string; spunMs: number }[] = [];
  let spunMs = 0;
  for (const line of record.split('\n')) {
    if (line.startsWith('=')) spunMs = Number(line.slice(1));
    else players.push({ name: line, spunMs });
  }
  return players.reverse();
}

/** Returns the players in a game's recency set with the time of their last spin, the most recent first. */
async function remembered(cell: number, gameId: number): Promise<Map<string, number>> {
  const calls = await redis.lrange(recentKey(cell, gameId), 0, -1);
  const newest = new Map<string, number>();
  for (const { name, spunMs } of calls.reverse().flatMap(readRecent))
    if (!newest.has(name)) newest.set(name, spunMs);
  return newest;
}

/**
 * Sends all spins, each of them three times.
 * @returns the notifications of each event, and for each player the payouts minus the wagers
 */
async function playAll(gameId: number) {
  const told = new Map<string, { bonus: Bonus; playerId: string }[]>();
  const payouts = new Map<string, bigint>(PLAYERS.map((player) => [player, 0n]));
  let next = 0;
  const one = async (): Promise<void> => {
    for (let i = next++; i < SPINS; i = next++) {
      const playerId = PLAYERS[i % PLAYERS.length]!;
      const send = () => spin(service, partner, gameId, playerId, `r${i}`);
      const answers = [...(await Promise.all([send(), send()])), await send()];
      expect(answers.map(({ status, text }) => (status === 200 ? 200 : text))).toEqual([200, 200, 200]);
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
      const { communityBonus, outcome }: SpinBody = answers[0]!.body;
      payouts.set(playerId, payouts.get(playerId)! + micros(outcome.payoutUsd) - 250_000n);
      if (communityBonus === null) continue;
      const list = told.get(communityBonus.eventId) ?? [];
      list.push({ bonus: communityBonus, playerId });
      told.set(communityBonus.eventId, list);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, one));
  return { told, payouts };
}

test(
  'pays each communal event once, to the exact micro-USD, and notifies each winner once despite retries',
  async () => {
    const gameId = await newGame();
    await setUp(service, gameId);
    const { told, payouts } = await playAll(gameId);
    await allBooked();
    // Further spins notify the players who have not been notified yet.
    for (let i = 0; i < 40; i++) {
      for (const playerId of PLAYERS) {
        const other = await spin(service, partner, gameId, playerId, `rest${i}${playerId}`);
        payouts.set(playerId, payouts.get(playerId)! + micros(other.body.outcome.payoutUsd) - 250_000n);
        const bonus = other.body.communityBonus;
        if (bonus !== null)
          told.set(bonus.eventId, [...(told.get(bonus.eventId) ?? []), { bonus, playerId }]);
      }
    }
    await allBooked();
    const counted = SPINS + 160;
    const pot = await service.operator<{ progress: number; budgetUsd: string; paidUsd: string }>(
      'GET',
      `/games/${gameId}/communal`,
    );
    expect(pot.body.progress).toBe(counted);
    const count = (spins: number): number => Math.floor(counted / spins);
    const expected = [count(50) - count(250), count(250) - count(1000), count(1000)];
    const events = await sql`
      SELECT tier_level, count(*)::int AS count, sum(paid_micros)::bigint AS paid FROM communal_events
      WHERE game_id = ${gameId} GROUP BY 1 ORDER BY 1`;
    expect(events.map((row) => row.count)).toEqual(expected);
    const paid =
      BigInt(expected[0]!) * 5_000_000n +
      BigInt(expected[1]!) * 20_000_001n +
      BigInt(expected[2]!) * 100_000_000n;
    expect(micros(pot.body.paidUsd)).toBe(paid);
    expect(micros(pot.body.budgetUsd)).toBe(100_000_000_000n - paid);
    expect(told.size).toBe(count(50));
    const shares = new Map<string, bigint>(PLAYERS.map((player) => [player, 0n]));
    for (const list of told.values()) {
      expect(new Set(list.map(({ playerId }) => playerId)).size).toBe(list.length);
      expect(list.filter(({ bonus }) => bonus.isTriggerPlayer)).toHaveLength(1);
      const sum = list.reduce((total, { bonus }) => total + micros(bonus.yourShareUsd), 0n);
      expect(sum).toBe(micros(list[0]!.bonus.totalAmountUsd));
      for (const { bonus, playerId } of list)
        shares.set(playerId, shares.get(playerId)! + micros(bonus.yourShareUsd));
    }
    for (const playerId of PLAYERS) {
      const player = await service.partner<{ balanceUsd: number }>(
        'GET',
        `/players/${playerId}`,
        partner.key,
      );
      expect(micros(player.body.balanceUsd)).toBe(
        1_000_000_000n + payouts.get(playerId)! + shares.get(playerId)!,
      );
    }
    const untold = await sql`SELECT count(*)::int AS count FROM communal_shares WHERE told_by IS NULL`;
    expect(untold[0]!.count).toBe(0);
    await booksHold(sql);
    expect(await auditFindings(stores)).toEqual([]);
  },
  IS_WHOLE ? 900_000 : 240_000,
);

test('after a wipe of Redis, a communal progressive keeps progress, budget, recent players and pending notifications', async () => {
  const gameId = await newGame();
  await setUp(service, gameId);
  const spun: { playerId: string; requestId: string; text: string }[] = [];
  for (let i = 1; i <= 50; i++) {
    const playerId = `w${i % 7}`;
    const requestId = `wiped${i}`;
    spun.push({
      playerId,
      requestId,
      text: (await spin(service, partner, gameId, playerId, requestId)).text,
    });
  }
  await allBooked();
  const [{ cell }] =
    (await sql`SELECT cell FROM partners WHERE partner_id = ${partner.partnerId}`) as never as [
      { cell: number },
    ];
  const look = async () => ({
    pot: await redis.hgetBuffer(communalKey(cell), String(gameId)),
    recent: await remembered(cell, gameId),
    players: await redis.hgetallBuffer(playersKey(cell)),
  });
  const before = await look();
  await loseRedis(cell);
  const rebuilt = await look();
  expect(rebuilt).toEqual(before);
  expect([...rebuilt.recent.keys()]).toEqual([...before.recent.keys()]);
  const dealt = async () => {
    const answer = await spin(service, partner, gameId, 'w3', 'after');
    return answer.status === 200 ? answer.body : undefined;
  };
  let answer: SpinBody | undefined;
  await until(async () => {
    answer = await dealt();
    return answer !== undefined;
  }, 'spins are dealt again');
  expect(answer!.communityBonus).toMatchObject({
    isTriggerPlayer: false,
    tierName: 'Mini',
    totalAmountUsd: '5.00',
  });
  for (const { playerId, requestId, text } of spun) {
    expect((await spin(service, partner, gameId, playerId, requestId)).text).toBe(text);
  }
  await allBooked();
  expect(await auditFindings(stores)).toEqual([]);
});

test('notifies an absent player of every share of a communal progressive, oldest first, also after a wipe of Redis', async () => {
  const gameId = await newGame();
  // Spins of a game without a communal progressive also notify their player of shares.
  const other = await newGame();
  const tiers = [{ tierLevel: 1, tierName: 'Mini', triggerAtSpins: 10, amountUsd: '0.01' }];
  await setUp(service, gameId, { ...RULES, tiers });
  const away = `away${gameId}`;
  await spin(service, partner, gameId, away);
  await Promise.all(Array.from({ length: 1009 }, (_, i) => spin(service, partner, gameId, `busy${i % 2}`)));
  await allBooked();
  const shares = await sql`
    SELECT event_id FROM communal_shares WHERE player_id = ${away} AND told_by IS NULL ORDER BY entry_id`;
  expect(shares.length).toBe(101);
  const [{ cell }] =
    (await sql`SELECT cell FROM partners WHERE partner_id = ${partner.partnerId}`) as never as [
      { cell: number },
    ];
  const listed = () => redis.llen(waitingSharesKey(cell, `${partner.partnerId}:${away}`));
  const before = await listed();
  expect(before).toBeGreaterThan(30);
  await loseRedis(cell);
  expect(await listed()).toBe(before);
  const told: string[] = [];
  await until(async () => {
    const { status, body } = await spin(service, partner, other, away);
    if (status !== 200) return false;
    const bonus = body.communityBonus;
    if (bonus !== null && !bonus.isTriggerPlayer) told.push(bonus.eventId);
    return told.length === shares.length;
  }, 'all is told');
  const path = `/players/${away}/spins?limit=100`;
  type History = { spins: { communityBonus: Bonus | null }[]; total: number };
  const [first, second] = await Promise.all(
    ['', '&page=2'].map((page) => service.partner<History>('GET', `${path}${page}`, partner.key)),
  );
  await allBooked();
  expect(new Set(told).size).toBe(told.length);
  const tellers =
    await sql`SELECT told_by FROM communal_shares WHERE player_id = ${away} AND NOT is_trigger ORDER BY entry_id`;
  const inOrder = tellers.map((row) => row.told_by as bigint | null);
  expect(inOrder).toEqual([...inOrder].sort((a, b) => (a! < b! ? -1 : 1)));
  expect(inOrder).not.toContain(null);
  // Pages of a player's spins leave out the many shares between the spins.
  const spins = [...first!.body.spins, ...second!.body.spins];
  const [{ count }] = (await sql`
    SELECT count(*)::int AS count FROM ledger WHERE player_id = ${away} AND kind = 1`) as never as [
    { count: number },
  ];
  expect(first!.body.total).toBe(count);
  expect(spins).toHaveLength(Math.min(count, 200));
  const shown = spins.flatMap(({ communityBonus }) => communityBonus ?? []).map(({ eventId }) => eventId);
  expect(told).toEqual(expect.arrayContaining(shown));
  expect(await auditFindings(stores)).toEqual([]);
});

test('deals all spins even when the budget of a communal progressive runs out', async () => {
  for (const onShortBudget of ['SKIP', 'PAY_REMAINING']) {
    const gameId = await newGame();
    const tiers = [{ tierLevel: 1, tierName: 'Mini', triggerAtSpins: 10, amountUsd: '3.00' }];
    await setUp(service, gameId, { ...RULES, tiers, onShortBudget }, '10.00');
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, i) => spin(service, partner, gameId, `short${i % 3}`)),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    await allBooked();
    const events = await service.operator<{
      events: { status: string; totalAmountUsd: string; winners: number }[];
    }>('GET', `/games/${gameId}/communal/events`);
    const last =
      onShortBudget === 'SKIP'
        ? ['SKIPPED_BUDGET 0.00', 'SKIPPED_BUDGET 0.00']
        : ['PAID 1.00', 'SKIPPED_BUDGET 0.00'];
    expect(
      events.body.events.map(({ status, totalAmountUsd }) => `${status} ${totalAmountUsd}`).reverse(),
    ).toEqual(['PAID 3.00', 'PAID 3.00', 'PAID 3.00', ...last, 'SKIPPED_BUDGET 0.00']);
    const pot = await service.operator('GET', `/games/${gameId}/communal`);
    expect(pot.body).toMatchObject({
      status: 'EXHAUSTED',
      progress: 60,
      budgetUsd: onShortBudget === 'SKIP' ? '1.00' : '0.00',
    });
  }
  expect(await auditFindings(stores)).toEqual([]);
});
