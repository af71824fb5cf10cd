/**
 * Tests the encryption of webhook secrets in Postgres: plain secrets of earlier versions are encrypted, and
 * keys can be replaced.
 */
import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { newBoxKey } from '../../src/domain/secretBox.js';
import { freshStores } from '../setup/freshStores.js';
import { isSigned, register, startReceiver } from '../support/receiver.js';
import { startService } from '../support/service.js';
import { until } from '../support/wait.js';

const [a, b] = [newBoxKey(), newBoxKey()];

test('encrypts plain webhook secrets at the next start without changing signatures, and re-encrypts for a new key', async () => {
  const stores = await freshStores();
  const books = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  const receiver = await startReceiver();
  let service = await startService(stores);
  onTestFinished(async () => {
    await service.stop();
    await receiver.close();
    await books.end();
    await stores.drop();
  });
  const { key } = await service.newPartner();
  const { id, ...registered } = await register(service, key, receiver.url());
  let { secret } = registered;
  const kept = async (): Promise<string> => JSON.stringify(await books`SELECT * FROM webhooks`);
  /** Checks that a test event arrives signed with the secret that was shown. */
  const expectSigned = async (): Promise<void> => {
    const before = receiver.received.length;
    expect(
      (await service.partner('POST', `/webhooks/${id}/test`, key, { event: 'spin.large_win' })).status,
    ).toBe(202);
    await until(() => receiver.received.length > before, 'the event arrives');
    expect(isSigned(receiver.received.at(-1)!, secret)).toBe(true);
  };
  const restart = async (keys: string): Promise<void> => {
    await service.stop();
    service = await startService(stores, { WEBHOOK_SECRETS_KEY: keys });
  };
  expect(await kept()).toContain(secret);

  await restart(a);
  expect(await kept()).not.toContain('whsec_');
  await expectSigned();
  const rotated = await service.partner<{ secret: string }>('POST', `/webhooks/${id}/rotate-secret`, key);
  expect(rotated.status).toBe(200);
  secret = rotated.body.secret;
  expect(await kept()).not.toContain('whsec_');
  await expectSigned();

  const ofA = await kept();
  await restart(`${b},${a}`);
  expect(await kept()).not.toBe(ofA);
  await expectSigned();
  await restart(b);
  await expectSigned();

  await service.stop();
  for (const settings of [{ WEBHOOK_SECRETS_KEY: a }, {}]) {
    await expect(startService(stores, settings)).rejects.toThrow(
      /^WEBHOOK_SECRETS_KEY does not contain the key [0-9a-f]{8}, which encrypts webhook secrets in this database\. Start a worker with both keys/,
    );
  }
});
