/**
 * Puts faults into copies of the build of a service on a Redis Cluster, one at a time. Each fault must break
 * a promise that the service keeps without it.
 */
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

test.each(Object.keys(CLUSTER_SCENARIOS) as ClusterScenario[])(
  'on a Redis Cluster without a fault, this promise holds: %s',
  async (name) => {
    await CLUSTER_SCENARIOS[name]({ cluster, root: ROOT, cleanup });
  },
);

test.each(CLUSTER_MUTATIONS)(
  'on a Redis Cluster with the fault "$name", this promise is broken: $breaks',
  async ({ faults, breaks }) => {
    const { root, remove } = await brokenBuild(faults);
    cleanup.add(remove);
    // Only a failed expectation counts as a detection of the fault; any other error does not.
    await expect(CLUSTER_SCENARIOS[breaks]({ cluster, root, cleanup })).rejects.toThrow(
      /^expected |not within \d+ s: the cell is repaired$/,
    );
  },
);
