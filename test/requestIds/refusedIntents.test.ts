/** What Redis knows of intents that were refused is let go of after a while, also where nothing is booked. */
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freshStores } from '../setup/freshStores.js';
import { auditFindings } from '../support/communal.js';
import { rawRedis } from '../support/redis.js';
import { startService } from '../support/service.js';
import type { TestStores } from '../support/stores.js';
import { until } from '../support/wait.js';

let stores: TestStores;
let service: Awaited<ReturnType<typeof startService>>;
let redis: Redis;

beforeAll(async () => {
  stores = await freshStores();
  redis = rawRedis(stores.redisUrl);
  service = await startService(stores, { CELLS: '1', REQUEST_ID_WINDOW_S: '1' });
});

afterAll(async () => {
  redis?.disconnect();
  await service?.stop();
  await stores?.drop();
});

test('an adjustment that was refused is known for a while, in a cell without an entry and behind the newest one', async () => {
  const { partnerId } = await service.newPartner({ balanceMode: 'enforce', openingBalanceUsd: 0 });
  const adjust = async (amountUsd: number, requestId: string): Promise<unknown> => {
    const path = `/partners/${partnerId}/players/p/adjustments`;
    const { status, body } = await service.operator('POST', path, { amountUsd, reason: 'test', requestId });
    return body.errorCode ?? status;
  };
  const held = () => redis.keys('{c0}:idem:*');
  const letGo = () => until(async () => (await held()).length === 0, 'Redis knows nothing of it any more');

  expect(await adjust(-1, 'first')).toBe('KS-4225');
  expect(await held()).toHaveLength(1);
  await letGo();

  expect(await adjust(1, 'second')).toBe(200);
  await letGo();
  expect(await adjust(-2, 'third')).toBe('KS-4225');
  expect(await held()).toHaveLength(1);
  await letGo();

  // It is free, and the cell goes on.
  expect(await adjust(-1, 'third')).toBe(200);
  expect(await adjust(-1, 'third')).toBe(200);
  await letGo();
  expect(await auditFindings(stores)).toEqual([]);
});
