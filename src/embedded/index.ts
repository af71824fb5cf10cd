/** Embedded stores: a real Redis and a real Postgres as child processes, for a machine that has only Node. */
export { freePort, readOrCreateSecret } from './dataDir.js';
export { type DataDirLock, lockDataDir } from './dataDirLock.js';
export { logKeyFile, newLogKeyFile } from './logKeyFile.js';
export { startEmbeddedPostgres } from './postgres.js';
export { closeTree } from './privateFolder.js';
export { startEmbeddedRedis } from './redis.js';
export { clusterMembers, clusterUrl, formCluster, startEmbeddedCluster } from './redisCluster.js';
export { SetupError } from './setupError.js';
export type { EmbeddedOptions, EmbeddedStore } from './store.js';
