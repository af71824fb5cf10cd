/** Tests that Redis stores a single number for all refused intents: the highest. */
import { expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { auditFindings } from '../../support/communal.js';
import { until } from '../../support/wait.js';

const { stores, service, redis } = world({ CELLS: '1', REQUEST_ID_WINDOW_S: '1' });

test('for any number of refused adjustments, Redis stores only one number and binds no request id', async () => {
  const { partnerId } = await service.newPartner({ balanceMode: 'enforce', openingBalanceUsd: 0 });
  const adjust = async (amountUsd: number, requestId: string): Promise<unknown> => {
    const path = `/partners/${partnerId}/players/p/adjustments`;
    const { status, body } = await service.operator('POST', path, { amountUsd, reason: 'test', requestId });
    return body.errorCode ?? status;
  };
  const ids = () => redis.keys('{c0}:idem:*');
  const refusedTo = async () => Number(await redis.hget('{c0}:cell', 'refusedAdjustment'));

  for (let i = 0; i < 20; i++) expect(await adjust(-1, `refused-${i}`)).toBe('KS-4225');
  expect(await ids()).toEqual([]);
  const fields = await redis.hlen('{c0}:cell');
  const before = await refusedTo();
  expect(await adjust(-1, 'refused-0')).toBe('KS-4225');
  expect(await refusedTo()).toBeGreaterThan(before);
  expect(await redis.hlen('{c0}:cell')).toBe(fields);

  // The request id of a refused adjustment can be used again, and the cell keeps working.
  expect(await adjust(1, 'credit')).toBe(200);
  expect(await adjust(-1, 'refused-0')).toBe(200);
  expect(await adjust(-1, 'refused-0')).toBe(200);
  await until(async () => (await ids()).length === 0, 'the request ids are released');
  expect(await auditFindings(stores)).toEqual([]);
});
