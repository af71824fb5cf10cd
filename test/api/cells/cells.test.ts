/** Tests the list of the cells that operators see. */
import { expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { parSheet } from '../../support/sheets.js';

type Body = Record<string, unknown>;

const { stores, service } = world();

test('shows operators each cell with the worker that owns it, and each Redis node with its memory', async () => {
  const partner = await service.newPartner();
  await service.newPartner();
  await service.newGame(partner.key, parSheet('classic-3-reel'));
  const { body } = await service.operator<{ cells: Body[]; redis: Body[]; recoveries: Body[] }>(
    'GET',
    '/cells',
  );
  expect(body.cells).toHaveLength(4);
  const address = new URL(stores.redisUrl).host;
  for (const cell of body.cells) {
    expect(cell).toMatchObject({ owner: expect.any(String), halted: null, isDraining: false });
    expect(cell).toMatchObject({ node: address, slot: null, outboxEntries: expect.any(Number) });
  }
  expect(body.cells.reduce((sum, cell) => sum + Number(cell.games), 0)).toBe(1);
  expect(body.cells.reduce((sum, cell) => sum + Number(cell.partners), 0)).toBe(2);
  expect(body.redis).toMatchObject([{ isReady: true, memoryBytes: expect.any(Number) }]);
  expect(body.recoveries).toBeInstanceOf(Array);
});
