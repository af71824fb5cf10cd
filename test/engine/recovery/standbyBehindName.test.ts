/** Tests a database URL that leads to a standby for a time, and one that lists several hosts. */
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { isPostgresAway } from '../../../src/postgres/postgresErrors.js';
import { Cleanup } from '../../support/cleanup.js';
import { proxy } from '../../support/proxy.js';
import { startLogged } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { type OwnStores, ownStores, startStandby } from '../../support/stores.js';
import { until } from '../../support/wait.js';

const cleanup = new Cleanup();
let stores: OwnStores;
let standbyUrl: string;

beforeAll(async () => {
  stores = await ownStores();
  cleanup.add(() => stores.drop());
  const standby = await startStandby(stores);
  cleanup.add(() => standby.end());
  standbyUrl = standby.url;
});
afterAll(() => cleanup.run());

const connect = (url: string) => {
  const sql = connectPostgres(url, { max: 1, name: 'standby test', onError: () => {} });
  cleanup.add(() => sql.end());
  return sql;
};
const inspect = (url: string) => {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  cleanup.add(() => sql.end());
  return sql;
};

test('after its address led to a standby, the service books again without a restart and keeps no connection to the standby', async () => {
  const cable = await proxy(stores.databaseUrl);
  cleanup.add(() => cable.close());
  const service = await startLogged({ ...stores, databaseUrl: cable.url }, { CELLS: '1' });
  cleanup.add(() => service.running.stop());
  const partner = await service.newPartner();
  const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  const spin = () => service.spin(partner.key, { gameId, playerId: 'p', wagerUsd: 0.25 });
  const isWell = async () => (await service.request('GET', '/statusz')).status === 200;
  await until(isWell, 'the service is well');

  cable.target = standbyUrl;
  cable.cut();
  await until(async () => !(await isWell()), '/statusz says that Postgres is away');
  expect((await spin()).status).toBe(200);
  expect(await service.partner('GET', '/games', partner.key)).toMatchObject({
    status: 503,
    body: { errorCode: 'KS-5002' },
  });

  cable.target = stores.databaseUrl;
  await until(isWell, 'the service is well again');
  const primary = inspect(stores.databaseUrl);
  await until(
    async () => (await primary`SELECT 1 FROM ledger WHERE kind = 1`).length === 1,
    'the spin of the outage is booked',
  );
  const left = await inspect(standbyUrl)`
    SELECT application_name FROM pg_stat_activity WHERE application_name = 'spindle'`;
  expect([...left]).toEqual([]);
});

test('a URL with several hosts and target_session_attrs leads to the primary, whichever is listed first', async () => {
  const { host } = new URL(standbyUrl);
  for (const list of [
    `${host},${new URL(stores.databaseUrl).host}`,
    `${new URL(stores.databaseUrl).host},${host}`,
  ]) {
    const url = `${stores.databaseUrl.replace(new URL(stores.databaseUrl).host, list)}?target_session_attrs=read-write`;
    expect(await connect(url)`SELECT pg_is_in_recovery() AS standby`).toEqual([{ standby: false }]);
  }
});

test('a standby counts as an unavailable Postgres', async () => {
  const error = await connect(standbyUrl)`SELECT 1`.catch((thrown: unknown) => thrown);
  expect(isPostgresAway(error), String(error)).toBe(true);
});

test.each([
  ['target_session_attrs=standby', 'target_session_attrs of DATABASE_URL must be one of read-write'],
  ['host=a,b', 'DATABASE_URL must list several hosts before the database'],
])('a URL with %s is refused by name', (query, message) => {
  expect(() => connect(`${stores.databaseUrl}?${query}`)).toThrow(message);
});
