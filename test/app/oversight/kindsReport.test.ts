/**
 * Tests reports over intervals in which all kinds of games were played. Their figures must equal the sums of
 * the responses to players, the CSV, and the settlement report.
 */
import postgres from 'postgres';
import { beforeAll, expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { RULES, setUp } from '../../support/communal.js';
import { dealUntil, newTable, playOut, type RoundAnswer } from '../../support/rounds.js';
import { microsOf } from '../../support/settlement.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

interface Figures {
  spins: number;
  wageredUsd: number;
  paidOutUsd: number;
}
interface Row extends Figures {
  gameConfigId: number;
  communityBonusUsd: number;
  openRounds: number;
  openWageredUsd: number;
}
interface Owed {
  partnerId: number;
  players: number;
  balancesUsd: number;
  openRounds: number;
  openWageredUsd: number;
}
interface Report {
  rows: Row[];
  totals: Row;
}
interface Sums {
  spins: number;
  wagered: bigint;
  paid: bigint;
}
interface Answered {
  outcome: { payoutUsd: number };
  sandbox?: unknown;
}

const WAGER = 0.25;
/** Every tenth spin fires the bonus. */
const BONUS = {
  ...RULES,
  tiers: [{ tierLevel: 1, tierName: 'Mini', triggerAtSpins: 10, amountUsd: '5.00' }],
};

const { stores, service, partner } = world({}, { partner: { openingBalanceUsd: 1000 } });
let communal: number;
let table: number;
/** Sums of the responses to players, by game. */
const answered = new Map<number, Sums>();
let openStake = 0;

function count(gameId: number, wagerUsd: number, paidUsd: number): void {
  const { spins, wagered, paid } = answered.get(gameId) ?? { spins: 0, wagered: 0n, paid: 0n };
  answered.set(gameId, {
    spins: spins + 1,
    wagered: wagered + microsOf(wagerUsd),
    paid: paid + microsOf(paidUsd),
  });
}

async function spin(gameId: number, playerId: string, wagerUsd = WAGER): Promise<void> {
  const { status, body, text } = await service.spin<Answered>(partner.key, { gameId, playerId, wagerUsd });
  expect(status, text).toBe(200);
  if (body.sandbox === undefined) count(gameId, wagerUsd, body.outcome.payoutUsd);
}

beforeAll(async () => {
  const slot = await service.newGame(partner.key, parSheet('classic-3-reel'));
  communal = await service.newGame(partner.key, parSheet('classic-3-reel'));
  await setUp(service, communal, BONUS);
  table = await newTable(service, partner.partnerId);
  const raffle = await service.api.newRaffle(partner.partnerId, 'reported', {
    ticketPriceUsd: 1,
    poolSize: 40,
    prizes: [{ prizeName: 'Mug', prizeTier: 1, valueUsd: 5, count: 10 }],
  });
  for (let i = 0; i < 25; i++) {
    await spin(slot, `p${i % 4}`);
    await spin(communal, `p${i % 4}`);
    await spin(raffle, `p${i % 4}`, 1);
  }
  // A forced outcome counts in no total.
  const choice = { gameId: slot, playerId: 'p0', combinationIndex: 0 };
  expect((await service.partner('POST', '/sandbox/next-outcome', partner.key, choice)).status).toBe(200);
  await spin(slot, 'p0');
  // A round that ends with its deal counts as well.
  const isOpen = ({ status, wageredUsd, payoutUsd }: RoundAnswer): boolean => {
    if (status !== 'OPEN') count(table, wageredUsd, payoutUsd!);
    return status === 'OPEN';
  };
  for (let i = 0; i < 5; i++) {
    const dealt = await dealUntil(service, partner.key, table, `settled${i}`, isOpen);
    const { wageredUsd, payoutUsd } = await playOut(service, partner.key, dealt);
    count(table, wageredUsd, payoutUsd!);
  }
  const voided = await dealUntil(service, partner.key, table, 'voided', isOpen);
  await service.operator('POST', `/rounds/${voided.roundId}/void`, { reason: 'a test' });
  openStake = (await dealUntil(service, partner.key, table, 'open', isOpen)).wageredUsd;
});

test('reports the sums of the responses to players for each kind of game and interval, equal to the settlement report', async () => {
  const day = new Date().toISOString().slice(0, 10);
  const rowOf = (report: Report, gameId: number): Row =>
    report.rows.find(({ gameConfigId }) => gameConfigId === gameId)!;
  await until(async () => {
    const { body } = await service.operator<Report>('GET', '/reports/games?interval=LTD');
    return [...answered].every(([gameId, { spins }]) => rowOf(body, gameId).spins >= spins);
  }, 'all is booked');
  const settled = await service.operator<{
    gameBreakdown: Row[];
    openRounds: number;
    openWageredUsd: number;
  }>('POST', `/partners/${partner.partnerId}/settlements/${day}`);
  const intervals = ['DTD', 'MTD', 'YTD', 'LTD', `RANGE&from=${day}&to=${day}`];
  for (const interval of intervals) {
    const { body } = await service.operator<Report>('GET', `/reports/games?interval=${interval}`);
    for (const game of settled.body.gameBreakdown) {
      const { spins, wageredUsd, paidOutUsd } = rowOf(body, game.gameConfigId);
      expect({ interval, spins, wageredUsd, paidOutUsd }).toEqual({
        interval,
        spins: game.spins,
        wageredUsd: game.wageredUsd,
        paidOutUsd: game.paidOutUsd,
      });
    }
    for (const [gameId, sums] of answered) {
      if (gameId === table) continue;
      const { spins, wageredUsd, paidOutUsd } = rowOf(body, gameId);
      expect({ spins, wagered: microsOf(wageredUsd), paid: microsOf(paidOutUsd) }).toEqual(sums);
    }
    const { openRounds, openWageredUsd, paidOutUsd } = rowOf(body, table);
    expect([openRounds, openWageredUsd]).toEqual([1, openStake]);
    // An open round has no payout yet, and the refund of a voided round is in no total.
    expect(microsOf(paidOutUsd)).toBe(answered.get(table)!.paid);
  }
});

test('reports bonus shares separately, and a liability that is the sum of all statements', async () => {
  const { body } = await service.operator<Report>('GET', '/reports/games?interval=LTD');
  const { progressives } = (
    await service.operator<{ progressives: { gameConfigId: number; paidUsd: number | string }[] }>(
      'GET',
      '/progressives',
    )
  ).body;
  const paid = progressives.find(({ gameConfigId }) => gameConfigId === communal)!.paidUsd;
  const row = body.rows.find(({ gameConfigId }) => gameConfigId === communal)!;
  expect(microsOf(row.communityBonusUsd)).toBe(microsOf(Number(paid)));
  expect(microsOf(row.communityBonusUsd)).toBeGreaterThan(0n);
  const sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  const players = await sql<{ player_id: string }[]>`SELECT DISTINCT player_id FROM ledger`;
  await sql.end();
  let balances = 0n;
  for (const { player_id } of players) {
    const path = `/partners/${partner.partnerId}/players/${player_id}/statement`;
    balances += microsOf((await service.operator<{ balanceUsd: number }>('GET', path)).body.balanceUsd);
  }
  const liability = await service.operator<{ rows: Owed[] }>('GET', '/reports/liability');
  const owed = liability.body.rows.find(({ partnerId }) => partnerId === partner.partnerId)!;
  expect(owed).toMatchObject({ players: players.length, openRounds: 1, openWageredUsd: openStake });
  expect(microsOf(owed.balancesUsd)).toBe(balances);
});
