/** Tests the number of plays, the wagers and the payouts by day and by hour. */
import postgres from 'postgres';
import { beforeAll, expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { constants } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const { stores, service } = world(constants({ trafficTurnMs: 100 }));

beforeAll(async () => {
  const partner = await service.newPartner();
  const gameId = await service.api.newGame(partner.key, 'golden-reels', parSheet('classic-3-reel'));
  await service.spin(partner.key, { gameId, playerId: 'alice', wagerUsd: 0.25 });
});

test("shows the traffic of each day of the range, including today's plays", async () => {
  const ofDays = async (query: string) =>
    (await service.operator<{ days: { day: string; spins: number }[] }>('GET', `/traffic?${query}`)).body
      .days;
  await until(async () => (await ofDays('days=1'))[0]!.spins > 0, 'the spin is booked');
  const days = await ofDays('days=3');
  expect(days).toHaveLength(3);
  expect(days.map(({ day }) => day)).toEqual(days.map(({ day }) => day).toSorted());
  expect(days.at(-1)!.spins).toBeGreaterThan(0);
  expect((await ofDays('days=2&partnerId=999999')).map(({ spins }) => spins)).toEqual([0, 0]);
});

test('shows the traffic of each hour since the first recorded hour, as the growth of the daily totals in that hour', async () => {
  const ofHours = async (query = '') =>
    (
      await service.operator<{ hours: { hour: string; spins: number; wageredUsd: number }[] }>(
        'GET',
        `/traffic/hours?hours=48${query}`,
      )
    ).body.hours;
  const other = await service.newPartner();
  const game = await service.api.newGame(other.key, 'silver-reels', parSheet('classic-3-reel'));
  const spin = () => service.spin(other.key, { gameId: game, playerId: 'ivan', wagerUsd: 0.25 });
  const counted = async (): Promise<number> =>
    (await ofHours(`&partnerId=${other.partnerId}`)).reduce((sum, { spins }) => sum + spins, 0);
  await spin();
  await until(async () => (await counted()) === 1, 'the spin is counted');
  await spin();
  await until(async () => (await counted()) === 2, 'the next one is, too');
  const hours = await ofHours(`&partnerId=${other.partnerId}`);
  expect(hours.reduce((sum, { wageredUsd }) => sum + wageredUsd, 0)).toBe(0.5);
  const all = await ofHours();
  expect(all.map(({ hour }) => hour)).toEqual(hours.map(({ hour }) => hour));
  for (const { hour } of all) expect(hour).toMatch(/:00:00\.000Z$/);
});

test('hourly traffic adds up to the daily totals, and hours older than 35 days are deleted', async () => {
  const sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  const oldest = async (): Promise<number> =>
    Number(
      (await sql`SELECT count(*) AS n FROM traffic_hours WHERE hour < now() - interval '35 days'`)[0]!.n,
    );
  try {
    // The service may run its clean-up at once, in which case the old hours are already gone.
    const made = await sql`
      INSERT INTO traffic_hours SELECT date_trunc('hour', now() - interval '36 days'), partner_id, 5, 5, 5 FROM partners RETURNING hour`;
    expect(made.length).toBeGreaterThan(0);
    await until(async () => (await oldest()) === 0, 'old hours leave');
    const differing = () => sql`
      SELECT * FROM (SELECT partner_id, day, sum(spins) AS spins, sum(wagered_micros) AS wagered FROM game_days GROUP BY 1, 2) d
        FULL JOIN (SELECT partner_id, (hour AT TIME ZONE 'UTC')::date AS day, sum(spins) AS spins, sum(wagered_micros) AS wagered
                   FROM traffic_hours GROUP BY 1, 2) h USING (partner_id, day)
      WHERE (d.spins, d.wagered) IS DISTINCT FROM (h.spins, h.wagered)`;
    await until(async () => (await differing()).length === 0, 'hours are the days');
  } finally {
    await sql.end();
  }
});
