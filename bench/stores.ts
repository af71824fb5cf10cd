/** Starts fresh stores, a durable Redis or a cluster and a Postgres, and reads the ledger of a run. */
import { chmod, mkdtemp, realpath, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import type { CellName } from '../src/engine/redis/keys.js';
import { pinnedName, slotOfCell } from '../src/engine/redis/slots.js';
import { connectPostgres } from '../src/postgres/connect.js';
import { raw } from '../src/postgres/statements.js';
import type { Cleanup } from '../test/support/cleanup.js';
import { ownCluster } from '../test/support/cluster.js';
import { rawRedis } from '../test/support/redis.js';
import { ROOT } from '../test/support/root.js';
import { ownStores } from '../test/support/stores.js';
import { pause } from '../test/support/wait.js';

export interface Stores {
  readonly folder: string;
  readonly redisUrl: string;
  readonly databaseUrl: string;
  readonly processes: { readonly redis: readonly number[]; readonly postgres: readonly number[] };
  /** Connection to the only Redis server, or to the first server of the cluster. */
  readonly redis: Redis;
  /** Returns the connection of a cell's server, and the cell's name in keys. */
  readonly cell: (cell: number) => { readonly redis: Redis; readonly name: CellName };
  /** Runs a query on a connection of its own, so that the bench has none during a measurement. */
  ask<Row extends object>(query: string): Promise<Row[]>;
}

/** The Redis servers that hold the cells. */
type Hot = Pick<Stores, 'redisUrl' | 'redis' | 'cell'> & { readonly pids: readonly number[] };

/** `f_type` of statfs(2) for tmpfs and ramfs, on which a sync takes no time. */
const IN_MEMORY = [0x01021994, 0x858458f6];

/**
 * Creates an empty folder on a disk, because syncs are part of a spin's latency. The caller removes it.
 * @throws Error if no disk is available
 */
export async function newDiskFolder(): Promise<string> {
  for (const parent of [tmpdir(), '/var/tmp', ROOT]) {
    if (await isInMemory(parent)) continue;
    const folder = await realpath(await mkdtemp(join(parent, 'spindle-bench-')));
    // If the bench runs as root, Postgres runs as another user, and this user needs access to the folder.
    await chmod(folder, 0o755);
    return folder;
  }
  throw new Error(
    'The benchmark needs a disk for its stores, but TMPDIR, /var/tmp and the project folder are in memory',
  );
}

async function isInMemory(folder: string): Promise<boolean> {
  try {
    return IN_MEMORY.includes((await statfs(folder)).type);
  } catch {
    return true;
  }
}

async function diskFolder(cleanup: Cleanup): Promise<string> {
  const folder = await newDiskFolder();
  cleanup.add(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

async function startCluster(cells: number, primaries: number, cleanup: Cleanup): Promise<Hot> {
  const folder = await diskFolder(cleanup);
  const cluster = await ownCluster(undefined, { hasReplicas: false, primaries, folder });
  cleanup.add(() => cluster.drop());
  const clients = new Map(cluster.servers.map((server) => [server, rawRedis(server.url)]));
  for (const client of clients.values()) cleanup.add(() => client.disconnect());
  const places: { redis: Redis; name: CellName }[] = [];
  for (let cell = 0; cell < cells; cell++) {
    const server = (await cluster.primaryOf(slotOfCell(cell)))!;
    places.push({ redis: clients.get(server)!, name: pinnedName(cell) });
  }
  const pids = cluster.servers.map((server) => server.pid()!);
  return { redisUrl: cluster.url, redis: places[0]!.redis, cell: (cell) => places[cell]!, pids };
}

/** @param nodes number of primaries of a cluster; undefined: a single server */
export async function startStores(cleanup: Cleanup, cells = 1, nodes?: number): Promise<Stores> {
  const folder = await diskFolder(cleanup);
  const own = await ownStores({ folder, onEvent: (line) => console.error(line) });
  cleanup.add(() => own.drop());
  const { postgres } = own;
  const single = (): Hot => {
    const redis = rawRedis(own.redis.url);
    cleanup.add(() => redis.disconnect());
    const pids = [own.redis.pid()!];
    return { redisUrl: own.redis.url, redis, cell: (cell) => ({ redis, name: cell }), pids };
  };
  const hot = nodes === undefined ? single() : await startCluster(cells, nodes, cleanup);
  const ask = async <Row extends object>(query: string): Promise<Row[]> => {
    const sql = connectPostgres(postgres.url, { max: 1, name: 'bench', onError: () => {} });
    try {
      return await sql<Row[]>`${raw(query)}`;
    } finally {
      await sql.end();
    }
  };
  return {
    folder: own.dataDir,
    redisUrl: hot.redisUrl,
    databaseUrl: postgres.url,
    processes: { redis: hot.pids, postgres: [postgres.pid()!] },
    redis: hot.redis,
    cell: hot.cell,
    ask,
  };
}

/** A ledger to compare with the answered spins. */
export interface Books {
  /** Returns the number of outbox entries that are not in Postgres yet. */
  outboxEntries(): Promise<number>;
  /** Returns the number of spins in Postgres. */
  ledgerRows(): Promise<number>;
}

/** @param countRows query that returns `rows` */
export const booksOf = (
  { ask }: Stores,
  outboxes: readonly { readonly redis: Redis; readonly key: string }[],
  countRows: string,
): Books => ({
  outboxEntries: async () =>
    (await Promise.all(outboxes.map(({ redis, key }) => redis.xlen(key)))).reduce(
      (sum, length) => sum + length,
      0,
    ),
  ledgerRows: async () => Number((await ask<{ rows: bigint }>(countRows))[0]!.rows),
});

const DRAIN_DEADLINE_MS = 30_000;
const DRAIN_POLL_MS = 20;

/** Waits until the outbox is empty, or the deadline has passed. Returns the duration in seconds. */
export async function drained(books: Books | undefined): Promise<number> {
  const startedMs = performance.now();
  while (books !== undefined && (await books.outboxEntries()) > 0) {
    if (performance.now() - startedMs > DRAIN_DEADLINE_MS) break;
    await pause(DRAIN_POLL_MS);
  }
  return (performance.now() - startedMs) / 1000;
}
