/**
 * `npm run test:fuzz [-- --share 0.1]`: sends hostile values for every parameter and body member of every
 * operation to its own service. Exits with 1 if an answer was an internal error.
 */
import { parseArgs } from 'node:util';
import postgres from 'postgres';
import { runToEnd } from '../support/cleanup.js';
import { everyOperation } from '../support/everyOperation.js';
import { environment, spawnService } from '../support/service.js';
import { ownStores } from '../support/stores.js';
import { fuzzParameters } from './parameters.js';

const { values } = parseArgs({ options: { share: { type: 'string', default: '1' } } });

await runToEnd(async (cleanup) => {
  const stores = await ownStores();
  cleanup.add(() => stores.drop());
  const service = await spawnService(environment(stores, { LOG_LEVEL: 'fatal', CELLS: '2' }));
  cleanup.add(() => service.stop());
  const sql = postgres(stores.databaseUrl, { max: 1 });
  cleanup.add(() => sql.end());
  const { requests, statuses, faults } = await fuzzParameters(
    service.client,
    await everyOperation(service.client, sql, await service.client.newPartner()),
    Number(values.share),
  );
  console.log(`${requests} requests, by status: ${JSON.stringify(statuses)}, ${faults.length} faults`);
  for (const fault of faults.slice(0, 100)) console.log(fault);
  return faults.length === 0;
});
