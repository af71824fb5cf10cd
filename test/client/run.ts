/**
 * Implements `npm run chaos -- client`: 10,000 spins by the client while the service is killed twice.
 * Arguments: `SPINS KILLS`.
 */
import { ownStores } from '../support/stores.js';
import { spinWhileKilled } from './killedRun.js';

const [spins = 10_000, kills = 2] = process.argv.slice(2).map(Number);
const stores = await ownStores();
try {
  const result = await spinWhileKilled(stores, { spins, kills });
  process.stdout.write(`${JSON.stringify(result, undefined, 2)}\n`);
  if (result.differences.length > 0 || result.spins !== spins) process.exitCode = 1;
} finally {
  await stores.drop();
}
