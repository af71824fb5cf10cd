/** The process of the load generator, which generates the loads that its parent requests. */
import { loadByAutocannon } from './autocannonLoad.js';
import type { LoadOrder } from './load.js';

process.on('disconnect', () => process.exit());
process.on('message', (order: LoadOrder) => {
  loadByAutocannon(order).then(
    (result) => process.send!(result),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
