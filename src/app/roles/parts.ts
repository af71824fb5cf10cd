/** What main.ts has made before the roles start, and hands to each. */
import type { Logger } from 'pino';
import type { Store } from '../../api/api.store.js';
import type { SecretBox } from '../../domain/secretBox.js';
import type { Catalog } from '../../engine/catalog/catalog.js';
import type { Staleness } from '../../engine/catalog/staleness.js';
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
import type { ProgramChecker } from '../oversight/programChecker.js';

/** What the service asks of the world beside its stores. */
export interface World {
  readonly resolve: Resolve;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

export interface RoleParts {
  readonly config: Config;
  readonly log: Logger;
  readonly world: World;
  /** Everything that runs; a role adds its own. */
  readonly services: ServiceGroup;
  readonly events: EventEmitter;
  readonly metrics: Metrics;
  /** For what the process does by itself. */
  readonly sql: Sql;
  readonly postgresDurability: PostgresDurability;
  /** For flushes. */
  readonly flushSql: Sql;
  /** For what partners and operators ask: its connections are others. */
  readonly store: Store;
  /** The same over {@link RoleParts.sql}. */
  readonly ownStore: Store;
  readonly nodes: RedisNodes;
  readonly scripts: Scripts;
  readonly catalog: Catalog;
  readonly staleness: Staleness;
  readonly clocks: Clocks;
  readonly installed: Installation;
  readonly registry: ProcessRegistry;
  /** What happens by nobody's order and belongs into the audit log. */
  readonly notes: EventNotes;
  /** The program's own files, as the newest checks found them. */
  readonly program: Pick<ProgramChecker, 'identity' | 'problem'>;
  readonly operatorKey: string;
  /** Of the secrets of webhooks in Postgres. */
  readonly secretBox: SecretBox;
}
