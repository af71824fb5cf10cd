/** Tests that the handlers match the contract. */
import { expect, test } from 'vitest';
import { ENDPOINTS } from '../../../src/api/index.js';
import { allRoutes } from '../../../src/api/routes.js';
import type { Services } from '../../../src/api/server/services.js';
import { spin } from '../../../src/api/spins/contract.js';

test('has one handler for every endpoint of the contract except the spin, which has its own path', () => {
  const handled = allRoutes({} as Services, 'Spindle').map(({ operationId }) => operationId);
  const declared = ENDPOINTS.map(({ operationId }) => operationId);
  expect([...handled, spin.operationId].sort()).toEqual(declared.sort());
});
