/** Components that main.ts creates before the roles start and passes to each role. */
import type { Logger } from 'pino';
import type { Store } from '../../api/api.store.js';
import type { SecretBox } from '../../domain/secretBox.js';
import type { Catalog } from '../../engine/catalog/catalog.js';
import type { Staleness } from '../../engine/catalog/staleness.js';
import type { Problems } from '../../engine/problems.js';
import type { EventEmitter } from '../../engine/processEvents.js';
import type { Installation } from '../../engine/recovery/installation.store.js';
import type { Clocks } from '../../engine/redis/clockSkew.js';
import type { RedisNodes } from '../../engine/redis/nodes.js';
import type { Scripts } from '../../engine/redis/scripts.js';
import type { ProcessRegistry } from '../../engine/upgrade/processRegistry.js';
import type { ServiceGroup } from '../../platform/runtime/serviceGroup.js';
import type { Sql } from '../../postgres/connection.js';
import type { PostgresDurability } from '../../postgres/postgresDurability.js';
import type { Resolve } from '../../webhooks/allowedAddresses.js';
import type { Config } from '../config.js';
import type { Metrics } from '../metrics/metrics.js';
import type { EventNotes } from '../oversight/eventNotes.js';
import type { CheckFiles, ProgramChecker } from '../oversight/programChecker.js';

/** External dependencies of the service besides its stores. */
export interface World {
  readonly resolve: Resolve;
  /** Returns the current time in ms since the epoch. */
  readonly now: () => number;
  /** Compares the program's own files with their manifest. Default: in a thread of this process. */
  readonly checkFiles?: CheckFiles;
}

export interface RoleParts {
  readonly config: Config;
  readonly log: Logger;
  readonly world: World;
  /** All running services. A role adds its own services. */
  readonly services: ServiceGroup;
  readonly events: EventEmitter;
  readonly metrics: Metrics;
  /** Postgres pool for background work of the process. */
  readonly sql: Sql;
  readonly postgresDurability: PostgresDurability;
  readonly flushSql: Sql;
  /** Store for requests of partners, on a separate pool. */
  readonly store: Store;
  /** Store for requests of operators, on a pool that partners can't occupy. */
  readonly operatorStore: Store;
  /** Store for background work, over the pool {@link RoleParts.sql}. */
  readonly ownStore: Store;
  readonly nodes: RedisNodes;
  readonly scripts: Scripts;
  readonly catalog: Catalog;
  readonly staleness: Staleness;
  readonly clocks: Clocks;
  readonly installed: Installation;
  readonly registry: ProcessRegistry;
  readonly notes: EventNotes;
  /** State of the program's own files, from the newest checks. */
  readonly program: Pick<ProgramChecker, 'identity' | 'problem' | 'verified'>;
  /** What is wrong in this process. Each part adds what it finds. */
  readonly problems: Problems;
  readonly operatorKey: string;
  /** Keys for the webhook secrets in Postgres. */
  readonly secretBox: SecretBox;
}
