/**
 * Tests the replacement of keys that seal data in Postgres while some processes still run with the former
 * list of keys.
 */
import { createHash } from 'node:crypto';
import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { type Signer, signerKeyOf, signerOf, vkeyOf } from '../../../src/domain/publicLog/notes.js';
import { newBoxKey } from '../../../src/domain/secretBox.js';
import { freshStores } from '../../setup/freshStores.js';
import type { Client } from '../../support/client.js';
import { register, startReceiver } from '../../support/receiver.js';
import { ServerProcess } from '../../support/serverProcess.js';
import { constants, environment, startLogged, startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const [a, b] = [newBoxKey(), newBoxKey()];
const idOf = (key: string): string =>
  createHash('sha256').update(Buffer.from(key, 'base64')).digest('hex').slice(0, 8);
const settingsOf = (...keys: string[]): NodeJS.ProcessEnv => ({
  CELLS: '1',
  SEEDS_KEY: keys.join(),
  WEBHOOK_SECRETS_KEY: keys.join(),
});

test('seals rows again that a process sealed with the former key, once that process has ended', async () => {
  const stores = await freshStores();
  const books = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  const receiver = await startReceiver();
  // The former version runs as a separate process, because the keys of blocks are set once for a process.
  const running = ServerProcess.launch({ env: environment(stores, settingsOf(a, b)) });
  const stops: (() => Promise<unknown>)[] = [() => running.end('SIGKILL')];
  onTestFinished(async () => {
    for (const stop of stops.reverse()) await stop();
    await receiver.close();
    await books.end();
    await stores.drop();
  });
  /** Returns the number of rows that are sealed with a key, by table. */
  const sealedWith = async (key: string) => {
    const like = `v1.${idOf(key)}.%`;
    const [row] = await books`
      SELECT (SELECT count(*)::int FROM blocks WHERE sealed LIKE ${like}) AS blocks,
        (SELECT count(*)::int FROM webhooks WHERE secret LIKE ${like}) AS webhooks,
        (SELECT count(*)::int FROM logs WHERE signer LIKE ${like}) AS logs`;
    return { ...row };
  };
  const former = (await running.ready()).client;
  const { key } = await former.newPartner();
  const gameId = await former.newGame(key, parSheet('classic-3-reel'));
  const spin = (service: Client) => service.spin(key, { gameId, playerId: 'p', wagerUsd: 0.25 });
  await until(async () => (await spin(former)).status === 200, 'the game deals');

  await expect(startService(stores, settingsOf(b))).rejects.toThrow(
    new RegExp(`^SEEDS_KEY does not contain the key ${idOf(a)}, which a running process uses to encrypt`),
  );
  // The new process is only a front end, so blocks are still made by the worker whose first key is the former
  // one.
  const next = await startLogged(stores, { ...settingsOf(b, a), ROLES: 'http' });
  stops.push(() => next.running.stop());
  expect(await sealedWith(a)).toEqual({ blocks: 0, webhooks: 0, logs: 0 });
  await register(former, key, receiver.url());
  await former.newGame(key, parSheet('classic-3-reel'));
  await until(async () => (await sealedWith(a)).blocks > 0, 'the worker has made blocks');
  expect((await sealedWith(a)).webhooks).toBe(1);
  expect(next.lines).toContainEqual(
    expect.objectContaining({ level: 40, msg: 'other processes encrypt with a different key' }),
  );

  await running.stop();
  await until(
    () => next.lines.some(({ msg }) => msg === 'key replacement completed, all processes use the new key'),
    'it is logged that the keys are replaced',
  );
  expect(await sealedWith(a)).toEqual({ blocks: 0, webhooks: 0, logs: 0 });
  expect(await sealedWith(b)).toMatchObject({ webhooks: 1, logs: 1 });
  await next.running.stop();
  const last = await startService(stores, settingsOf(b));
  stops.push(() => last.stop());
  await until(async () => (await spin(last)).status === 200, 'the game deals');
});

test('publishes the public log after a worker with the former signer key put that key back into force and ended', async () => {
  const stores = await freshStores();
  const books = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  const origin = 'spindle.example/keys';
  const [former, next] = [1, 2].map((byte) => signerOf(origin, 'log', Buffer.alloc(32, byte))) as [
    Signer,
    Signer,
  ];
  const settings = (...signers: Signer[]): NodeJS.ProcessEnv => ({
    CELLS: '1',
    LOG_ORIGIN: origin,
    ...constants({ logBatchMs: 1 }),
    LOG_KEY: signers.map(signerKeyOf).join(),
  });
  const stops: (() => Promise<unknown>)[] = [];
  onTestFinished(async () => {
    for (const stop of stops.reverse()) await stop();
    await books.end();
    await stores.drop();
  });
  const run = async (...signers: Signer[]) => {
    const service = await startService(stores, settings(...signers));
    stops.push(() => service.stop());
    return service;
  };
  const inForce = async (...signers: Signer[]): Promise<boolean> => {
    const [row] = await books<{ vkeys: string[] }[]>`SELECT vkeys FROM logs`;
    return row!.vkeys.join() === signers.map(vkeyOf).join();
  };
  await (await run(next, former)).stop();
  const service = await run(next);
  await until(() => inForce(next), 'the former key is taken out');
  // The running worker may put its own key into force again before the test reads the log's key, so a trigger
  // records each change.
  await books`CREATE TABLE seen (vkeys text[])`;
  await books`CREATE FUNCTION note_keys() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO seen VALUES (NEW.vkeys); RETURN NULL; END $$`;
  await books`CREATE TRIGGER keys_are_noted AFTER UPDATE ON logs FOR EACH ROW EXECUTE FUNCTION note_keys()`;
  const late = await run(next, former);
  await until(
    async () => (await books`SELECT 1 FROM seen WHERE ${vkeyOf(former)} = ANY (vkeys)`).length > 0,
    'the former key is back',
  );
  await late.stop();
  const { key } = await service.newPartner();
  const gameId = await service.newGame(key, parSheet('classic-3-reel'));
  const spin = () => service.spin(key, { gameId, playerId: 'p', wagerUsd: 0.25 });
  await until(async () => (await spin()).status === 200, 'what is published is dealt');
  expect(await inForce(next)).toBe(true);
});
