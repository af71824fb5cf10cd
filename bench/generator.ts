/**
 * The process of the load generator. It generates the loads that its parent process requests, reports the
 * result of each load, and ends when the parent ends.
 */
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
