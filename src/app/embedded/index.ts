/** Embedded stores: Redis and Postgres servers as child processes, for a machine that has only Node. */

export { type DataDirLock, lockDataDir } from '../../platform/dataDirLock.js';
export { logKeyFile, newLogKeyFile } from '../../platform/logKeyFile.js';
export { closeTree } from '../../platform/privateFolder.js';
export { SetupError } from '../../platform/setupError.js';
export { freePort, readOrCreateSecret } from './dataDir.js';
export { startEmbeddedPostgres } from './postgres.js';
export { startEmbeddedRedis } from './redis.js';
export { clusterMembers, clusterUrl, formCluster, startEmbeddedCluster } from './redisCluster.js';
export type { EmbeddedOptions, EmbeddedStore } from './store.js';
export { type Supervisor, supervise } from './supervisor.js';
