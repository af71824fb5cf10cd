import { afterAll, beforeAll, expect, test } from 'vitest';
import { ownCluster, replaceByReplica, type TestCluster } from '../support/cluster.js';
import { until } from '../support/wait.js';

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await ownCluster();
});
afterAll(() => cluster?.drop());

test('a replica serves what a killed primary served, and the killed one comes back as its replica', async () => {
  const old = await replaceByReplica(cluster, 0);
  expect(old).toBe(cluster.servers[0]);
  expect(await cluster.primaryOf(0)).toBe(cluster.servers[3]);
  await old.start();
  const isReplica = async (): Promise<boolean> =>
    (await cluster.ask(old, 'INFO', 'replication')).includes('master_link_status:up');
  await until(isReplica, 'the killed server is a replica');
});
