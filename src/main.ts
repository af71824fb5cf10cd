/** The only place that constructs and wires: stores, roles, server, and their orderly end. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import closeWithGrace from 'close-with-grace';
import type { Logger } from 'pino';
import type { BlockKeeper } from './blocks/keeper.js';
import { Catalog, type KnownGame } from './catalog/catalog.js';
import { type Config, readConfig } from './config.js';
import { type Demo, seedDemo } from './demo.js';
import { SpinIds } from './domain/spinId.js';
import { readOrCreateSecret, SetupError } from './embedded/index.js';
import { armFailpoint } from './failpoints.js';
import { newApiKey } from './http/operator/partners.js';
import { lineOf, spellings, withoutSecrets } from './log.js';
import { openLogger } from './logger.js';
import { Metrics, serveMetrics } from './metrics.js';
import { migrate } from './postgres/client.js';
import { type Installation, install, installation } from './postgres/installation.js';
import { openStore } from './postgres/store.js';
import { RedisNodes } from './redis/nodes.js';
import { Scripts } from './redis/scripts.js';
import { openPostgres, openRedis, storeAddresses } from './stores.js';
import { Undo } from './undo.js';
import { nameServers, type Resolve } from './webhooks/destination.js';

const PLAYABLE_WITHIN_MS = 5000;
const SERVED_WITHIN_MS = 6000;

export interface Running {
  /** Undefined without the http role. */
  readonly port: number | undefined;
  readonly metricsPort: number;
  readonly operatorKey: string;
  /** It was made just now. */
  readonly isNewOperatorKey: boolean;
  readonly redisUrl: string;
  readonly databaseUrl: string;
  readonly demo: (Demo & { readonly apiKey: string }) | undefined;
  stop(): Promise<void>;
}

/** What the service asks of the world beside its stores. */
export interface World {
  readonly resolve: Resolve;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/**
 * Starts the service.
 * @param progress told what the set-up is doing, a line at a time.
 * @throws SetupError with one line where something outside must be put right first.
 */
export async function start(
  config: Config,
  log: Logger,
  progress: (line: string) => void,
  world: World = { resolve: nameServers(), now: Date.now },
): Promise<Running> {
  const undo = new Undo(log);
  try {
    return await assemble(config, log, progress, undo, world);
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
  world: World,
): Promise<Running> {
  const metrics = new Metrics();
  const { redisUrl, databaseUrl } = await storeAddresses(config, log, progress, undo);

  progress('Checking Redis and Postgres …');
  const nodes = new RedisNodes([await openRedis(redisUrl, config, log, undo)]);
  const sql = await openPostgres(databaseUrl, config, log, undo);
  progress('Bringing the schema up to date …');
  await migrate(databaseUrl, config.migrationsDir, (line) => log.debug(line));
  await install(sql, { cells: config.CELLS, idempotencyTtlSeconds: config.IDEMPOTENCY_TTL_S });
  const installed = await installation(sql);
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
  const scripts = new Scripts(nodes, {
    idempotencyPeriodSeconds: installed.idempotencyTtlSeconds,
    outboxMax: { entries: config.OUTBOX_MAX_ENTRIES, bytes: config.OUTBOX_MAX_MB * 1e6 },
  });
  let keeper: BlockKeeper | undefined;
  const catalog = new Catalog(sql, {
    pollMs: config.DIRECTORY_POLL_MS,
    onGames: (games: readonly KnownGame[]) => keeper?.learn(games),
    onError: (error) => {
      metrics.storeErrors.inc({ store: 'postgres' });
      log.warn({ err: error }, 'the catalog cannot be read: what is known is kept');
    },
    onBack: () => log.warn('the catalog is read again'),
  });
  await catalog.start();
  undo.add(() => catalog.stop());

  if (config.roles.worker) {
    progress('Taking over ledger and blocks …');
    const { idempotencyTtlSeconds } = installed;
    // Loaded where it is played: either role takes half a second of a start.
    const { startWorker } = await import('./roles/worker.js');
    keeper = await startWorker({
      config,
      log,
      undo,
      sql,
      nodes,
      idempotencyTtlSeconds,
      catalog,
      spinIds: new SpinIds(installed.spinIdKey),
      resolve: world.resolve,
      now: world.now,
      metrics,
      onFailpoint: armFailpoint(config.FAILPOINT),
    });
    await isServed(nodes, catalog);
  }
  const connections = (): [string, number][] => [
    ['busy', sql.pool.total - sql.pool.idle],
    ['idle', sql.pool.idle],
    ['waiting', sql.pool.waiting],
  ];
  metrics.gaugeBy(
    'spindle_postgres_connections',
    'Connections of the pool, and requests that wait for one (state waiting)',
    'state',
    async () => connections(),
  );
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
    await catalog.refresh();
    for (const gameId of [demo.gameId, demo.raffleId]) await playable(nodes, gameId, catalog);
  }
  const port = config.roles.http
    ? await (await import('./roles/frontEnd.js')).startFrontEnd({
        config,
        log,
        undo,
        nodes,
        scripts,
        catalog,
        metrics,
        installed,
        operatorKey,
        store,
        resolve: world.resolve,
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

/**
 * Waits until every cell can be dealt from: those of a worker that was killed are leased for some seconds more. What
 * must be rebuilt may take longer; then the start goes on, and /readyz tells.
 */
async function isServed(nodes: RedisNodes, catalog: Catalog): Promise<void> {
  const deadline = performance.now() + SERVED_WITHIN_MS;
  while (performance.now() < deadline) {
    await catalog.refresh();
    if ((await nodes.closed(catalog.epochs)).length === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Waits for the first block of a game, so that what is printed for it works; a slow machine may print sooner. */
async function playable(nodes: RedisNodes, gameId: number, catalog: Catalog): Promise<void> {
  const game = catalog.game(gameId);
  const cell = game === undefined ? undefined : catalog.partner(game.partnerId)?.cell;
  const deadline = performance.now() + PLAYABLE_WITHIN_MS;
  while (cell !== undefined && performance.now() < deadline) {
    if (((await nodes.cell(cell).findGame(gameId))?.queueEnd ?? 0) > 0) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
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

/** The program: `node dist/src/main.js [--demo]`. */
async function main(): Promise<void> {
  let config: Config;
  try {
    config = readConfig();
  } catch (error) {
    process.stderr.write(`spindle: ${lineOf(error)}\n`);
    process.exit(1);
  }
  const secrets = secretsOf(config);
  const log = openLogger({ level: config.LOG_LEVEL, secrets });
  const progress = (line: string): void => void process.stderr.write(`${withoutSecrets(line, secrets)}\n`);
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
    progress(`spindle: ${lineOf(error)}`);
    process.exit(1);
  }
  announce(config, running);
}

/** What is given to this process and must be in no line: of those that the service issues the log knows the form. */
function secretsOf({ REDIS_URL, DATABASE_URL, OPERATOR_API_KEY }: Config): string[] {
  const passwords = [REDIS_URL, DATABASE_URL].map((url) =>
    url !== undefined && URL.canParse(url) ? new URL(url).password : undefined,
  );
  return spellings([...passwords, OPERATOR_API_KEY]);
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
    const spin = (gameId: number, wagerUsd: number): string => {
      const body = `{"gameId":${gameId},"playerId":"alice","wagerUsd":${wagerUsd}}`;
      return `  curl -s http://${config.HOST}:${port}/api/partner/v1/spin -H 'X-API-Key: ${demo.apiKey}' -H 'Content-Type: application/json' -d '${body}'`;
    };
    lines.push(
      `  demo key ${demo.apiKey}`,
      '',
      'Spin:',
      spin(demo.gameId, demo.wagerUsd),
      'A ticket of the raffle:',
      spin(demo.raffleId, demo.ticketPriceUsd),
    );
  }
  process.stdout.write(`${lines.join('\n')}\n\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
