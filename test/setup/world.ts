/**
 * The stores, the service and the connections of a test file.
 *
 *   const { service, sql, partner } = world({ CELLS: '1' });
 *
 * Only what the file names is opened, before its first test, and all of it is closed after its last one.
 */
import type { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterAll, beforeAll } from 'vitest';
import type { World as Outside } from '../../src/main.js';
import { connectPostgres } from '../../src/postgres/connect.js';
import type { Sql } from '../../src/postgres/connection.js';
import { Cleanup } from '../support/cleanup.js';
import type { TestPartner } from '../support/client.js';
import { type OpenNodes, openNodes, rawRedis } from '../support/redis.js';
import { startService } from '../support/service.js';
import type { TestStores } from '../support/stores.js';
import { freshStores } from './freshStores.js';

export type Service = Awaited<ReturnType<typeof startService>>;
export type BooksSql = postgres.Sql<{ bigint: bigint }>;

export interface World {
  /** Empty stores with the schema. */
  readonly stores: TestStores;
  readonly service: Service;
  /** The books through an independent driver. Numbers of 64 bits are bigint. */
  readonly sql: BooksSql;
  /** The books through the driver of the service. */
  readonly ownSql: Sql;
  readonly redis: Redis;
  /** The nodes of Redis as the service sees them. */
  readonly nodes: OpenNodes;
  /** A partner without rate limits, unless the options say otherwise. */
  readonly partner: TestPartner;
}

const POOL = { max: 4, onnotice: () => {}, types: { bigint: postgres.BigInt } };
const OWN_POOL = { max: 4, name: 'test', onError: () => {} };

/**
 * Must be called at the top of a file or of a `describe`, and destructured there.
 *
 * @param settings settings of the service, beyond those of every test
 * @param options.partner settings of the partner
 * @param options.outside the service's clock and resolver
 */
export function world(
  settings: NodeJS.ProcessEnv = {},
  {
    partner,
    outside = {},
  }: { partner?: Parameters<Service['newPartner']>[0]; outside?: Partial<Outside> } = {},
): World {
  const open: Partial<{ -readonly [Name in keyof World]: World[Name] }> = {};
  const wanted = new Set<keyof World>();
  const cleanup = new Cleanup();
  /** How each part is opened; a part is opened after those that it needs. */
  const parts: { readonly [Name in keyof World]: () => Promise<World[Name]> } = {
    async stores() {
      const stores = await freshStores();
      cleanup.add(() => stores.drop());
      return stores;
    },
    async sql() {
      const sql = postgres((await need('stores')).databaseUrl, POOL);
      cleanup.add(() => sql.end());
      return sql as BooksSql;
    },
    async ownSql() {
      const sql = connectPostgres((await need('stores')).databaseUrl, OWN_POOL);
      cleanup.add(() => sql.end());
      return sql;
    },
    async redis() {
      const redis = rawRedis((await need('stores')).redisUrl);
      cleanup.add(() => redis.disconnect());
      return redis;
    },
    async nodes() {
      const nodes = await openNodes((await need('stores')).redisUrl);
      cleanup.add(() => nodes.close());
      return nodes;
    },
    async service() {
      const service = await startService(await need('stores'), settings, outside);
      cleanup.add(() => service.stop());
      return service;
    },
    async partner() {
      return (await need('service')).newPartner(partner);
    },
  };
  async function need<Name extends keyof World>(name: Name): Promise<World[Name]> {
    open[name] ??= await parts[name]();
    return open[name] as World[Name];
  }
  beforeAll(async () => {
    for (const name of Object.keys(parts) as (keyof World)[]) if (wanted.has(name)) await need(name);
  });
  afterAll(() => cleanup.run());
  return new Proxy({} as World, {
    get: (_, name: keyof World) => {
      wanted.add(name);
      return later(name, () => open[name]);
    },
  });
}

/** Stands for an object that is opened before the first test. */
function later(name: string, opened: () => object | undefined): object {
  const target = (): Record<PropertyKey, unknown> => {
    const found = opened();
    if (found === undefined)
      throw new Error(`${name} is opened before the first test, not while the file is read`);
    return found as Record<PropertyKey, unknown>;
  };
  return new Proxy(() => {}, {
    apply: (_, __, args) => (target() as unknown as (...args: unknown[]) => unknown)(...args),
    get: (_, member) => {
      const value = target()[member];
      return typeof value === 'function' ? value.bind(target()) : value;
    },
    set: (_, member, value) => Reflect.set(target(), member, value),
    has: (_, member) => member in target(),
    ownKeys: () => Reflect.ownKeys(target()),
    getOwnPropertyDescriptor: (_, member) => {
      const found = Reflect.getOwnPropertyDescriptor(target(), member);
      return found && { ...found, configurable: true };
    },
    getPrototypeOf: () => Object.getPrototypeOf(target()) as object,
  });
}
