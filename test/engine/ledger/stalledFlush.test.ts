/**
 * Tests a worker that is paused during a COPY and so keeps the row lock of its cell. Postgres does not cancel
 * a COPY that waits for its client, so another worker must terminate the session.
 */
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Cleanup } from '../../support/cleanup.js';
import { auditFindings } from '../../support/communal.js';
import { startLogged } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { type OwnStores, ownStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

const cleanup = new Cleanup();
let stores: OwnStores;

beforeAll(async () => {
  stores = await ownStores();
  cleanup.add(() => stores.drop());
});
afterAll(() => cleanup.run());

test('a cell whose owner was paused during a flush gets a new owner, which commits its spins', async () => {
  const service = await startLogged(stores, { CELLS: '1', ACK: 'ledger' });
  cleanup.add(() => service.running.stop());
  const { key } = await service.newPartner({ openingBalanceUsd: 10 });
  const gameId = await service.newGame(key, parSheet('classic-3-reel'));
  const spin = async () => (await service.spin(key, { gameId, playerId: 'p', wagerUsd: 0.25 })).status;
  await until(async () => (await spin()) === 200, 'a spin is booked');

  const stopped = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  cleanup.add(() => stopped.end({ timeout: 0 }));
  await stopped`SET statement_timeout = '2s'`;
  await stopped.unsafe('BEGIN; SELECT cell FROM cells WHERE cell = 0 FOR NO KEY UPDATE');
  const copy = await stopped`COPY ledger (entry_id) FROM STDIN`.writable();
  let hasEnded = false;
  const ended = (): void => {
    hasEnded = true;
  };
  copy.on('error', ended).on('close', ended);
  await until(() => hasEnded, 'the session that waits for its client is ended');
  await until(async () => (await spin()) === 200, 'spins are booked again');
  await until(async () => (await auditFindings(stores)).length === 0, 'the audit is clean');
  expect(service.lines.map(({ msg }) => msg)).toContain('ended a stalled transaction that blocked a cell');
});
