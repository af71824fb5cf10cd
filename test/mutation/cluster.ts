/** Faults of a cluster's service, put into copies of the build one at a time: a promise must break that holds without them. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { Cleanup } from '../support/cleanup.js';
import { ownCluster, type TestCluster } from '../support/cluster.js';
import { ROOT } from '../support/root.js';
import { CLUSTER_MUTATIONS } from './clusterMutations.js';
import { CLUSTER_SCENARIOS, type ClusterScenario } from './clusterScenarios.js';
import { brokenBuild } from './mutant.js';

let cluster: TestCluster;
let cleanup = new Cleanup();

beforeAll(async () => {
  cluster = await ownCluster();
});
afterEach(async () => {
  await cleanup.run();
  cleanup = new Cleanup();
});
afterAll(() => cluster.drop());

test.each(Object.keys(CLUSTER_SCENARIOS) as ClusterScenario[])('%s', async (name) => {
  await CLUSTER_SCENARIOS[name]({ cluster, root: ROOT, cleanup });
});

test.each(CLUSTER_MUTATIONS)('$name: $breaks, no longer', async ({ faults, breaks }) => {
  const { root, remove } = await brokenBuild(faults);
  cleanup.add(remove);
  // An expectation that fails is what finds it; whatever else goes wrong finds nothing.
  await expect(CLUSTER_SCENARIOS[breaks]({ cluster, root, cleanup })).rejects.toThrow(
    /^expected |not within \d+ s: the cell is repaired$/,
  );
});
