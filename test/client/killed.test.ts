/**
 * Kills the service while the partners' client spins, and compares the client's record with the ledger. `npm
 * run chaos -- client` runs the long version.
 */
import { expect, onTestFinished, test } from 'vitest';
import { freshStores } from '../setup/freshStores.js';
import { spinWhileKilled } from './killedRun.js';

test('the ledger has exactly the spins that the client recorded, after the service was killed', async () => {
  const stores = await freshStores();
  onTestFinished(() => stores.drop());
  const { differences, spins, repeats } = await spinWhileKilled(stores, { spins: 1000, kills: 1 });
  expect(differences).toEqual([]);
  expect(spins).toBe(1000);
  expect(repeats).toBeGreaterThan(0);
});
