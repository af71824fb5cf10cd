/** The only place that constructs and wires: stores, roles, server, and their orderly end. */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import closeWithGrace from 'close-with-grace';
import { type Logger, pino } from 'pino';
import { Piscina } from 'piscina';
import { BlockKeeper } from './blocks/keeper.js';
import { type Config, readConfig } from './config.js';
import { seedDemo } from './demo.js';
import { Directory, type KnownGame } from './directory/directory.js';
import { ERRORS } from './domain/errors.js';
import { SpinIds } from './domain/spinId.js';
import {
  type EmbeddedStore,
  lockDataDir,
  readOrCreateSecret,
  SetupError,
  startEmbeddedPostgres,
  startEmbeddedRedis,
} from './embedded/index.js';
import { Access } from './http/access.js';
import type { Exchange } from './http/exchange.js';
import { newApiKey } from './http/partners.js';
import { Replies } from './http/reply.js';
import { type Services, serverRoutes } from './http/routes.js';
import { HttpServer } from './http/server.js';
import { Flusher } from './ledger/flusher.js';
import { handshake, LostError } from './ledger/handshake.js';
import { Housekeeping } from './ledger/housekeeping.js';
import { Ownership } from './ledger/ownership.js';
import { Metrics, serveMetrics } from './metrics.js';
import type { CellLease } from './postgres/cells.js';
import { connectPostgres, migrate, POSTGRES_MAJOR_MIN, postgresMajor, type Sql } from './postgres/client.js';
import { type Installation, installation } from './postgres/installation.js';
import { openStore } from './postgres/store.js';
import { missing } from './readiness.js';
import {
  connectRedis,
  isReady,
  REDIS_MAJOR_MIN,
  type RedisClient,
  redisFacts,
  whenReady,
} from './redis/client.js';
import { type Lookups, openLookups } from './redis/lookups.js';
import { Scripts } from './redis/scripts.js';
import { SpinBatcher } from './spins/batcher.js';
import { STORES_FILE } from './storesFile.js';
import { Undo } from './undo.js';

/** Requests that may wait for one cell: half a second at full speed. */
const WAITING_MAX = 10_000;
const KEY_TOUCH_MS = 10_000;
const DRAIN_MS = 5000;
const FLUSH_AT_STOP_MS = 3000;
const PLAYABLE_WITHIN_MS = 5000;

export interface Running {
  /** Undefined without the http role. */
  readonly port: number | undefined;
  readonly metricsPort: number;
  readonly operatorKey: string;
  /** It was made just now. */
  readonly isNewOperatorKey: boolean;
  readonly redisUrl: string;
  readonly databaseUrl: string;
  readonly demo: { apiKey: string; gameId: number; wagerUsd: number } | undefined;
  stop(): Promise<void>;
}

/**
 * Starts the service.
 * @param progress told what the set-up is doing, a line at a time.
 * @throws SetupError with one line where something outside must be put right first.
 */
export async function start(config: Config, log: Logger, progress: (line: string) => void): Promise<Running> {
  const undo = new Undo(log);
  try {
    return await assemble(config, log, progress, undo);
  } catch (error) {
    await undo.run();
    throw error;
  }
}

async function assemble(
  config: Config,
  log: Logger,
  progress: (line: string) => void,
  undo: Undo,
): Promise<Running> {
  const metrics = new Metrics();
  const { redisUrl, databaseUrl } = await stores(config, log, progress, undo);

  progress('Checking Redis and Postgres …');
  const redis = await openRedis(redisUrl, config, log, undo);
  const sql = await openPostgres(databaseUrl, config, log, undo);
  progress('Bringing the schema up to date …');
  await migrate(databaseUrl, config.migrationsDir, (line) => log.debug(line));
  const installed = await installation(sql, {
    cells: config.CELLS,
    idempotencyTtlSeconds: config.IDEMPOTENCY_TTL_S,
  });
  checkFixed(config, installed);
  let isNewOperatorKey = false;
  const makeOperatorKey = (): string => {
    isNewOperatorKey = true;
    return newApiKey();
  };
  const operatorKey =
    config.OPERATOR_API_KEY ??
    (await readOrCreateSecret(join(config.dataDir, 'operator-api-key'), makeOperatorKey));

  const store = openStore(sql);
  const scripts = new Scripts(redis, config.luaDir, installed.idempotencyTtlSeconds);
  let keeper: BlockKeeper | undefined;
  const directory = new Directory(sql, {
    pollMs: config.DIRECTORY_POLL_MS,
    onGames: (games: readonly KnownGame[]) => keeper?.learn(games),
    onError: (error) => {
      metrics.storeErrors.inc({ store: 'postgres' });
      log.warn({ err: error }, 'the directory cannot be read: what is known is kept');
    },
    onBack: () => log.warn('the directory is read again'),
  });
  await directory.start();
  undo.add(() => directory.stop());

  if (config.roles.worker) {
    progress('Taking over ledger and blocks …');
    const { idempotencyTtlSeconds } = installed;
    keeper = await startWorker({
      config,
      log,
      undo,
      sql,
      redis,
      redisUrl,
      idempotencyTtlSeconds,
      scripts,
      directory,
      metrics,
    });
  }
  const metricsServer = await serveMetrics(metrics, config.HOST, config.METRICS_PORT).catch(
    (error: Error) => {
      throw new SetupError(error.message);
    },
  );
  undo.add(() => new Promise((resolve) => metricsServer.close(resolve)));

  let demo: Running['demo'];
  const isEmbedded = config.REDIS_URL === undefined || config.DATABASE_URL === undefined;
  if (config.roles.worker && (isEmbedded || process.argv.includes('--demo'))) {
    const apiKey = await readOrCreateSecret(join(config.dataDir, 'demo-api-key'), newApiKey);
    demo = { apiKey, ...(await seedDemo(store, apiKey)) };
    await directory.refresh();
    await playable(openLookups(redis), demo.gameId, directory);
  }
  const port = config.roles.http
    ? await startHttp({
        config,
        log,
        undo,
        redis,
        scripts,
        directory,
        metrics,
        installed,
        operatorKey,
        store,
      })
    : undefined;
  const address = metricsServer.address();
  return {
    port,
    metricsPort: typeof address === 'object' && address !== null ? address.port : config.METRICS_PORT,
    operatorKey,
    isNewOperatorKey,
    redisUrl,
    databaseUrl,
    demo,
    stop: () => undo.run(),
  };
}

/** Waits for the first block of a game, so that what is printed for it works; a slow machine may print sooner. */
async function playable(lookups: Lookups, gameId: number, directory: Directory): Promise<void> {
  const game = directory.game(gameId);
  const cell = game === undefined ? undefined : directory.partner(game.partnerId)?.cell;
  const deadline = performance.now() + PLAYABLE_WITHIN_MS;
  while (cell !== undefined && performance.now() < deadline) {
    if (((await lookups.findGame(cell, gameId))?.queueEnd ?? 0) > 0) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** The addresses of the stores; those that are not given are started. */
async function stores(
  config: Config,
  log: Logger,
  progress: (line: string) => void,
  undo: Undo,
): Promise<{ redisUrl: string; databaseUrl: string }> {
  const { REDIS_URL, DATABASE_URL } = config;
  if (REDIS_URL !== undefined && DATABASE_URL !== undefined)
    return { redisUrl: REDIS_URL, databaseUrl: DATABASE_URL };
  const lock = await lockDataDir(config.dataDir);
  undo.add(() => lock.release());
  const options = {
    dataDir: lock.dataDir,
    cacheDir: config.cacheDir,
    progress,
    onEvent: (line: string) => log.warn(line),
  };
  const embed = async (start: (o: typeof options) => Promise<EmbeddedStore>): Promise<string> => {
    const embedded = await start(options);
    undo.add(() => embedded.stop());
    return embedded.url;
  };
  const [redis, postgres] = await Promise.allSettled([
    REDIS_URL ?? embed(startEmbeddedRedis),
    DATABASE_URL ?? embed(startEmbeddedPostgres),
  ]);
  if (redis.status === 'rejected') throw redis.reason;
  if (postgres.status === 'rejected') throw postgres.reason;
  const urls = { redisUrl: redis.value, databaseUrl: postgres.value };
  const file = join(lock.dataDir, STORES_FILE);
  await writeFile(file, JSON.stringify(urls), { mode: 0o600 });
  undo.add(() => rm(file, { force: true }));
  return urls;
}

async function openRedis(url: string, config: Config, log: Logger, undo: Undo): Promise<RedisClient> {
  const redis = connectRedis(url, (error) => log.warn({ err: error.message }, 'redis'));
  undo.add(() => redis.disconnect());
  try {
    await redis.connect();
  } catch (error) {
    throw new SetupError(`Redis at ${withoutSecrets(url)} can't be reached: ${lastLine(error)}`);
  }
  const facts = await redisFacts(redis);
  if (facts.major < REDIS_MAJOR_MIN) {
    throw new SetupError(
      `Redis at ${withoutSecrets(url)} is ${facts.version}; ${REDIS_MAJOR_MIN}.0 or later is needed`,
    );
  }
  const volatile: string[] = [];
  if (!facts.appendOnly || facts.appendFsync !== 'always') {
    volatile.push(`appendonly ${facts.appendOnly ? 'yes' : 'no'}, appendfsync ${facts.appendFsync}`);
  }
  if (!facts.syncsDuringRewrite) volatile.push('no-appendfsync-on-rewrite yes');
  if (facts.evictionPolicy !== 'noeviction') volatile.push(`maxmemory-policy ${facts.evictionPolicy}`);
  if (volatile.length > 0) {
    const what = `Redis may lose or evict what it acknowledged (${volatile.join('; ')})`;
    if (!config.allowVolatileRedis) {
      throw new SetupError(
        `${what}; set appendonly yes, appendfsync always, no-appendfsync-on-rewrite no, maxmemory-policy noeviction`,
      );
    }
    log.error(`${what}; served all the same: ALLOW_VOLATILE_REDIS=1`);
  }
  return redis;
}

async function openPostgres(url: string, config: Config, log: Logger, undo: Undo): Promise<Sql> {
  const sql = connectPostgres(url, {
    max: config.roles.worker ? 10 : 6,
    name: 'spindle',
    onError: (error) => log.warn({ err: error.message }, 'postgres'),
  });
  undo.add(() => sql.end());
  let major: number;
  try {
    major = await postgresMajor(sql);
  } catch (error) {
    throw new SetupError(`Postgres at ${withoutSecrets(url)} can't be reached: ${lastLine(error)}`);
  }
  if (major < POSTGRES_MAJOR_MIN) {
    throw new SetupError(
      `Postgres at ${withoutSecrets(url)} is ${major}; ${POSTGRES_MAJOR_MIN} or later is needed`,
    );
  }
  return sql;
}

function checkFixed(config: Config, installed: Installation): void {
  if (config.IDEMPOTENCY_TTL_S !== installed.idempotencyTtlSeconds) {
    throw new SetupError(
      `IDEMPOTENCY_TTL_S is ${config.IDEMPOTENCY_TTL_S}, but this database was made with ${installed.idempotencyTtlSeconds}; it can't be changed`,
    );
  }
  if (config.CELLS !== installed.cells) {
    throw new SetupError(
      `CELLS is ${config.CELLS}, but this database was made with ${installed.cells}; it can't be changed`,
    );
  }
}

interface WorkerParts {
  config: Config;
  log: Logger;
  undo: Undo;
  sql: Sql;
  redis: RedisClient;
  redisUrl: string;
  idempotencyTtlSeconds: number;
  scripts: Scripts;
  directory: Directory;
  metrics: Metrics;
}

/** Flushes the ledger and keeps the queues filled, for the cells that this process comes to own. */
async function startWorker(parts: WorkerParts): Promise<BlockKeeper> {
  const { config, log, undo, sql, redis, scripts, directory, metrics } = parts;
  const reader = connectRedis(parts.redisUrl, () => metrics.storeErrors.inc({ store: 'redis' }));
  undo.add(() => reader.disconnect());
  await reader.connect();
  const pool = new Piscina({
    filename: join(config.workersDir, 'makeBlock.js'),
    minThreads: 1,
    maxThreads: config.BLOCK_WORKERS,
    maxQueue: 1024,
  });
  undo.add(() => pool.destroy());
  // Every game tries again by itself: while a store is away one line a second is enough.
  const logBlockError = onceASecond((fields, unsaid) =>
    log.warn({ ...fields, unsaid }, 'a block could not be made or loaded; trying again'),
  );
  const keeper = new BlockKeeper(sql, redis, scripts, pool, {
    gamesOfCell: (cell) => directory.gamesOfCell(cell),
    minReadyBlocks: (partnerId) => directory.minReadyBlocks(partnerId),
    onMade: ({ outcomes, totalSeconds }) => {
      metrics.blockOutcomes.inc(outcomes);
      metrics.blockMakeSeconds.observe(totalSeconds);
    },
    onError: (error, gameId) => {
      metrics.storeErrors.inc({ store: 'blocks' });
      logBlockError({ err: error, gameId });
    },
  });
  const flusher = new Flusher(sql, redis, reader, {
    intervalMs: config.FLUSH_INTERVAL_MS,
    onFlushed: ({ entries, seconds, lagSeconds }) => {
      metrics.flushEntries.inc(entries);
      metrics.flushSeconds.observe(seconds);
      metrics.flushLagSeconds.set(lagSeconds);
    },
    onConsumed: (cell, games) => keeper.consumed(cell, games),
    onUncertain: (cell) => keeper.readAgain(cell),
    onGivenUp: (cell) => ownership.giveUp(cell),
    onHalted: (cell, reason) => {
      metrics.cellHalted.set({ cell: String(cell) }, 1);
      log.fatal({ cell, reason }, 'the ledger of a cell is halted');
    },
    onError: (error, cell) => {
      metrics.storeErrors.inc({ store: 'ledger' });
      log.warn({ err: error, cell }, 'a flush failed; trying again');
    },
  });
  const housekeeping = new Housekeeping(
    redis,
    parts.idempotencyTtlSeconds,
    () => ownership.cells,
    (error) => {
      metrics.storeErrors.inc({ store: 'redis' });
      log.warn({ err: error }, 'housekeeping failed; it comes again');
    },
  );
  const refused = new Set<number>();
  const ownership = new Ownership(sql, {
    onAcquired: async (lease: CellLease) => {
      const { cell, halted } = lease;
      if (halted !== null) throw new LostError(`The ledger of cell ${cell} is halted: ${halted}`);
      if ((await handshake(sql, redis, lease)) === 'lost') {
        throw new LostError(`Redis does not hold what the ledger has booked: cell ${cell} is not served`);
      }
      await housekeeping.tidy(cell);
      if (refused.delete(cell)) log.warn({ cell }, 'a cell that was refused is served again');
      metrics.cellHalted.set({ cell: String(cell) }, 0);
      flusher.own(lease);
      keeper.own(lease);
    },
    onLost: (cell) => {
      flusher.disown(cell);
      keeper.disown(cell);
      log.info({ cell }, 'a cell is written by this worker no more');
    },
    onRefused: (cell, error) => {
      // It is tried again at every turn, and said once.
      if (!refused.has(cell)) log.fatal({ cell, reason: error.message }, 'a cell is not served');
      refused.add(cell);
      metrics.cellHalted.set({ cell: String(cell) }, 1);
    },
    onError: (error) => {
      metrics.storeErrors.inc({ store: 'ledger' });
      log.warn({ err: error }, 'the leases of the cells could not be renewed');
    },
  });
  metrics.gaugeBy('spindle_queue_outcomes', 'Outcomes ready to be dealt, by game', 'game', async () =>
    keeper.depths().map(({ gameId, outcomes }) => [String(gameId), outcomes]),
  );
  metrics.gaugeBy('spindle_queue_blocks', 'Blocks with outcomes left, by game', 'game', async () =>
    keeper.depths().map(({ gameId, blocks }) => [String(gameId), blocks]),
  );
  const lookups = openLookups(redis);
  metrics.gaugeBy(
    'spindle_outbox_lag_seconds',
    'Age of the oldest entry not in the ledger, by cell',
    'cell',
    () =>
      Promise.all(
        ownership.cells.map(
          async (cell): Promise<[string, number]> => [
            String(cell),
            await lookups.outboxAgeSeconds(cell).catch(() => Number.NaN),
          ],
        ),
      ),
  );
  metrics.gauge('spindle_cells_owned', 'Cells that this process writes', () => ownership.cells.length);
  metrics.gauge('spindle_block_pool_queue', 'Blocks that wait for a thread', () => pool.queueSize);
  await ownership.start();
  const again = (): void => ownership.prepareAgain();
  redis.on('ready', again);
  undo.add(() => redis.off('ready', again));
  flusher.start();
  keeper.start();
  housekeeping.start();
  undo.add(async () => {
    housekeeping.stop();
    await keeper.stop();
    await flusher.stop(FLUSH_AT_STOP_MS);
    await ownership.stop();
  });
  return keeper;
}

interface HttpParts {
  config: Config;
  log: Logger;
  undo: Undo;
  redis: RedisClient;
  scripts: Scripts;
  directory: Directory;
  metrics: Metrics;
  installed: Installation;
  operatorKey: string;
  store: ReturnType<typeof openStore>;
}

/** Serves both APIs. @returns the port. */
async function startHttp(parts: HttpParts): Promise<number> {
  const { config, log, undo, redis, scripts, directory, metrics, installed, store } = parts;
  const spinIds = new SpinIds(installed.spinIdKey);
  const batcher = new SpinBatcher({
    call: (call) => scripts.spin(call),
    isReady: () => isReady(redis),
    whenReady: (timeoutMs) => whenReady(redis, timeoutMs),
    epochOf: (cell) => directory.epochOf(cell),
    spinIds,
    deadlineMs: config.SPIN_DEADLINE_MS,
    batchMax: config.BATCH_MAX,
    waitingMax: WAITING_MAX,
    onBatch: (size, seconds) => metrics.batch(size, seconds),
    onError: (error, cell, size) => {
      metrics.storeErrors.inc({ store: 'redis' });
      log.warn({ err: error, cell, size }, 'a batch of spins had no answer');
    },
  });
  const replies = new Replies((exchange, status, errorCode) => {
    metrics.request(exchange.operation, (performance.now() - exchange.startedMs) / 1000, errorCode);
    if (status >= 500 && errorCode !== undefined) {
      log.warn(
        { requestId: exchange.id, operation: exchange.operation, errorCode },
        'answered with an error',
      );
    }
  });
  const onFault = (exchange: Exchange, operation: string, error: unknown): void => {
    metrics.faults.inc({ operation });
    log.error({ err: error, requestId: exchange.id, operation }, 'a request failed');
  };
  const used = new Map<number, Date>();
  const access = new Access(
    {
      keyByHash: (hash) => directory.keyByHash(hash),
      partner: (partnerId) => directory.partner(partnerId),
      refresh: () => directory.refresh(),
      countFailure: (address, limit) => scripts.countFailure(address, limit),
      onKeyUsed: (keyId) => used.set(keyId, NOW.date),
      onError: (exchange, error) => onFault(exchange, 'authenticate', error),
    },
    replies,
    { failureLimit: config.AUTH_FAILURE_LIMIT, operatorKey: parts.operatorKey },
  );
  const clock = setInterval(() => {
    NOW.date = new Date();
  }, 1000);
  const touch = async (): Promise<void> => {
    const batch = new Map(used);
    used.clear();
    await store.touchKeys(batch);
  };
  const toucher = setInterval(() => touch().catch(() => {}), KEY_TOUCH_MS);
  undo.add(async () => {
    clearInterval(clock);
    clearInterval(toucher);
    await touch();
  });
  const lookups = openLookups(redis);
  const services: Services = {
    store,
    lookups,
    spinIds,
    playerIdKey: installed.playerIdKey,
    partner: (partnerId) => directory.partner(partnerId),
    game: (gameId) => directory.game(gameId),
    refresh: () => directory.refresh(),
    submit: (job) => batcher.submit(job),
    onDealt: (game, payoutMicros) => metrics.dealt(game.wagerMicros, payoutMicros),
    onFault,
    missing: () => missing(lookups, store, directory, installed.cells),
  };
  metrics.gauge('spindle_http_open_requests', 'Requests that are not answered yet', () => server.open);
  metrics.gauge('spindle_batch_pending', 'Spins that wait or are under way', () => batcher.pending);
  const routes = serverRoutes(services, access, replies, { brand: config.BRAND });
  const server = new HttpServer(routes, (exchange, error) => {
    onFault(exchange, exchange.operation, error);
    replies.error(exchange, ERRORS.internal);
  });
  let port: number;
  try {
    port = await server.listen(config.HOST, config.PORT);
  } catch (error) {
    throw new SetupError(`${lastLine(error)} (HOST, PORT)`);
  }
  undo.add(async () => {
    server.stopListening();
    replies.closeConnections();
    const deadline = performance.now() + DRAIN_MS;
    // What has arrived is answered, and each answer closes its connection.
    do await new Promise((resolve) => setTimeout(resolve, 20));
    while ((server.open > 0 || batcher.pending > 0) && performance.now() < deadline);
    server.close();
  });
  return port;
}

/** Hands on what it is called with at most once a second, with the number of calls that were left out in between. */
function onceASecond(say: (fields: object, unsaid: number) => void): (fields: object) => void {
  let saidAt = Number.NEGATIVE_INFINITY;
  let unsaid = 0;
  return (fields) => {
    if (performance.now() - saidAt < 1000) {
      unsaid++;
      return;
    }
    say(fields, unsaid);
    saidAt = performance.now();
    unsaid = 0;
  };
}

/** The time to the second, for what needs no better. */
const NOW = { date: new Date() };

const withoutSecrets = (url: string): string => {
  try {
    const { protocol, host, pathname } = new URL(url);
    return `${protocol}//${host}${pathname}`;
  } catch {
    return 'the given URL';
  }
};

const lastLine = (error: unknown): string => {
  if (error instanceof AggregateError && error.errors.length > 0) return lastLine(error.errors[0]);
  return (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? 'unknown';
};

/** The program: `node dist/src/main.js [--demo]`. */
async function main(): Promise<void> {
  let config: Config;
  try {
    config = readConfig();
  } catch (error) {
    process.stderr.write(`spindle: ${lastLine(error)}\n`);
    process.exit(1);
  }
  const log = pino({ level: config.LOG_LEVEL, base: { service: 'spindle', pid: process.pid } });
  const progress = (line: string): void => void process.stderr.write(`${line}\n`);
  let running: Running | undefined;
  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopping ??= running?.stop() ?? Promise.resolve();
    return stopping;
  };
  closeWithGrace(
    { delay: 10_000, logger: { error: (error: unknown) => log.fatal({ err: error }) } },
    async ({ err }) => {
      if (err) log.fatal({ err }, 'an error that nobody caught');
      await stop();
    },
  );
  try {
    running = await start(config, log, progress);
  } catch (error) {
    if (!(error instanceof SetupError)) log.fatal({ err: error }, 'the start failed');
    process.stderr.write(`spindle: ${lastLine(error)}\n`);
    process.exit(1);
  }
  announce(config, running);
}

function announce(config: Config, running: Running): void {
  const lines = ['', `${config.BRAND} is ready.`];
  const { port, demo, metricsPort } = running;
  if (port !== undefined) lines.push(`  API      http://${config.HOST}:${port}/api/partner/v1`);
  lines.push(`  metrics  http://${config.HOST}:${metricsPort}/metrics`);
  if (running.isNewOperatorKey) lines.push(`  operator key (shown this once) ${running.operatorKey}`);
  if (config.OPERATOR_API_KEY === undefined) {
    lines.push(`  operator key is kept in ${join(config.DATA_DIR, 'operator-api-key')}`);
  }
  if (demo !== undefined && port !== undefined) {
    const body = `{"gameId":${demo.gameId},"playerId":"alice","wagerUsd":${demo.wagerUsd}}`;
    lines.push(
      `  demo key ${demo.apiKey}`,
      '',
      'Spin:',
      `  curl -s http://${config.HOST}:${port}/api/partner/v1/spin -H 'X-API-Key: ${demo.apiKey}' -H 'Content-Type: application/json' -d '${body}'`,
    );
  }
  process.stdout.write(`${lines.join('\n')}\n\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
