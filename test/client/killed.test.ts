/** The service is killed while the partners' client spins: the client's record and the ledger agree. Whole: `npm run chaos -- client`. */
import { expect, onTestFinished, test } from 'vitest';
import { freshStores } from '../setup/freshStores.js';
import { spinWhileKilled } from './killedRun.js';

test('each spin that the client was told of is in the ledger once, and no other', async () => {
  const stores = await freshStores();
  onTestFinished(() => stores.drop());
  const { differences, spins, repeats } = await spinWhileKilled(stores, { spins: 1000, kills: 1 });
  expect(differences).toEqual([]);
  expect(spins).toBe(1000);
  expect(repeats).toBeGreaterThan(0);
});
