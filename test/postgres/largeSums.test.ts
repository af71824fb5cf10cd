/** Tests that no reader of totals fails on sums of money beyond 64 bits. */
import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { freshStores } from '../setup/freshStores.js';
import { RULES } from '../support/communal.js';
import { everyRead } from '../support/everyRead.js';
import { startService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';

const BEYOND = 2n ** 66n;

test('answers every read while the totals of a day are beyond 64 bits', async () => {
  const stores = await freshStores();
  const sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  const service = await startService(stores);
  onTestFinished(async () => {
    await sql.end();
    await service.stop();
    await stores.drop();
  });
  const partner = await service.newPartner();
  const { partnerId } = partner;
  const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  expect((await service.operator('PUT', `/games/${gameId}/communal`, RULES)).status).toBe(200);
  const sum = String(BEYOND);
  const today = sql`(now() AT TIME ZONE 'UTC')::date`;
  for (const table of ['game_days', 'sandbox_days'])
    await sql`INSERT INTO ${sql(table)} (game_id, day, partner_id, spins, wagered_micros, paid_micros)
      VALUES (${gameId}, ${today}, ${partnerId}, 1, ${sum}, ${sum})`;
  await sql`INSERT INTO communal_days VALUES (${gameId}, ${today}, ${partnerId}, 1, ${sum})`;
  await sql`INSERT INTO traffic_hours (hour, partner_id, spins, wagered_micros, paid_micros)
    VALUES (date_trunc('hour', now()), ${partnerId}, 1, ${sum}, ${sum})`;
  await sql`INSERT INTO opening_days VALUES (${partnerId}, ${today}, 1, ${sum})`;
  const date = new Date().toISOString().slice(0, 10);
  const answers = await everyRead(service, { partner, gameId, playerId: 'p', date });
  expect(answers.filter(({ status }) => status >= 500).map(({ path, text }) => `${path} ${text}`)).toEqual(
    [],
  );
  const traffic = answers.find(({ path }) => path === '/traffic')!;
  expect(traffic.text).toContain(String(BEYOND / 1_000_000n));
});
