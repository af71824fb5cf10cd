/**
 * Constructs and connects all components of the service in order, and stops them in reverse order. No other
 * file does so.
 */
import { hostname } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { openStore } from './api/api.store.js';
import { installationTag } from './api/server/portHolder.js';
import { clockOffsets } from './app/clockOffsets.js';
import type { Config } from './app/config.js';
import { freePort, SetupError } from './app/embedded/index.js';
import { problemsIn } from './app/metrics/gaugeProblems.js';
import { Metrics } from './app/metrics/metrics.js';
import { MetricsServer } from './app/metrics/metricsServer.js';
import {
  registerClockMetrics,
  registerPoolMetrics,
  registerProblemMetrics,
  registerProgramMetrics,
} from './app/metrics/storeMetrics.js';
import { openRedis, storeAddresses } from './app/openStores.js';
import { EventNotes } from './app/oversight/eventNotes.js';
import { openPostgresPools } from './app/postgresPools.store.js';
import { noteAddress } from './app/program/address.js';
import { FrontEndProcesses } from './app/program/frontEndProcesses.js';
import { installFixed, openSecretBox, openSeedBox, operatorKeyOf, sealAll } from './app/program/installed.js';
import { KeyReplacement } from './app/program/keyReplacement.js';
import { openDemo } from './app/program/openDemo.js';
import { answerParent } from './app/program/parentProcess.js';
import { untilServed } from './app/program/playable.js';
import { beginProgramCheck } from './app/program/programFiles.js';
import type { Running } from './app/program/running.js';
import { runProgram } from './app/program/runProgram.js';
import type { RoleParts, World } from './app/roles/parts.js';
import type { SecretBox } from './domain/secretBox.js';
import { sealsBlocks } from './engine/blocks/blockSeals.store.js';
import { Catalog } from './engine/catalog/catalog.js';
import { CatalogAnnouncements } from './engine/catalog/catalogAnnouncements.js';
import { Staleness } from './engine/catalog/staleness.js';
import { type Finding, Problems } from './engine/problems.js';
import { EventEmitter, subscribeTable } from './engine/processEvents.js';
import {
  DryGames,
  knownFindings,
  storeFindings,
  UnownedCells,
  unservedVolatile,
} from './engine/readiness.js';
import { Scripts } from './engine/redis/scripts.js';
import { ProcessRegistry } from './engine/upgrade/processRegistry.js';
import { Job } from './platform/runtime/periodicService.js';
import { ServiceGroup } from './platform/runtime/serviceGroup.js';
import { migrate } from './postgres/migrate.js';
import { PostgresDurability } from './postgres/postgresDurability.js';
import { Shortage } from './postgres/postgresErrors.js';
import { nameServers } from './webhooks/allowedAddresses.js';

export type { Running } from './app/program/running.js';
export type { World } from './app/roles/parts.js';

/** The interval of Prometheus, because the gauges read the stores. */
const METRICS_CHECKED_EVERY_MS = 15_000;

/**
 * Starts the service.
 * @param progress called with a line about each step of the start
 * @throws SetupError with one line if the environment must be corrected first
 */
export async function start(
  config: Config,
  log: Logger,
  progress: (line: string) => void,
  world: World = { resolve: nameServers(), now: Date.now },
): Promise<Running> {
  if (config.withoutEffect.length > 0)
    log.warn({ settings: config.withoutEffect }, 'ignoring settings that this version does not have');
  const services = new ServiceGroup('spindle', log);
  return startAll(await withSharedPort(config), log, progress, world, services).catch(
    async (error: unknown) => {
      await services.stop();
      throw error;
    },
  );
}

/** Chooses the port if it is 0 and several processes share it, because each of them would choose another. */
async function withSharedPort(config: Config): Promise<Config> {
  const isChosen = config.PORT === 0 && config.processes.children.length > 0;
  return isChosen ? Object.freeze({ ...config, PORT: await freePort() }) : config;
}

async function startAll(
  config: Config,
  log: Logger,
  progress: (line: string) => void,
  world: World,
  services: ServiceGroup,
): Promise<Running> {
  const metrics = new Metrics(config.processes.name);
  const events = new EventEmitter((error, event) => log.error({ err: error, event }, 'event handler failed'));
  subscribeTable(events, log, metrics, config);
  const checkProgram = beginProgramCheck(config, world.checkFiles);

  const { redisUrl, databaseUrl } = await storeAddresses(config, log, progress, services);
  progress('Checking Redis and Postgres …');
  const nodes = await openRedis(redisUrl, config, log, services);
  const durability = new PostgresDurability((volatile) =>
    events.emit('PostgresDurabilityChanged', { volatile }),
  );
  const shortage = new Shortage();
  const pools = await openPostgresPools(databaseUrl, config, log, services, durability, shortage);
  const sql = pools.background;
  progress('Updating the schema …');
  // A migration holds a session lock, and behind PgBouncer the next statement may run in another session. So
  // migrations use the direct address.
  await migrate(config.DATABASE_DIRECT_URL ?? databaseUrl, config.migrationsDir, (line) => log.debug(line));
  const installed = await installFixed(sql, config);
  const registry = await openRegistry({ config, sql, nodes, events, services });
  const notes = await services.add(
    new EventNotes(sql, { host: hostname(), version: config.version, roles: rolesOf(config), events }),
  );
  const ofProgram = { config, log, roles: rolesOf(config), now: world.now, sql, nodes, events, services };
  const program = await checkProgram(ofProgram);
  registerProgramMetrics(metrics, program);
  const { operatorKey, isNew: isNewOperatorKey } = await operatorKeyOf(config);

  const secretBox = await openKeys({ config, log, sql, events, services, registry });

  const store = openStore(pools.requests);
  const operatorStore = openStore(pools.operators);
  const clocks = { now: world.now, skewMaxMs: config.CLOCK_SKEW_MAX_S * 1000 };
  const scripts = new Scripts(nodes, { outboxMax: config.outboxMax, clock: clocks });
  const catalog = await services.add(new Catalog(sql, config.constants.catalogPollMs, events));
  const staleness = await services.add(
    new Staleness(catalog, nodes, installed.datasetId, config.constants.restrictionReadMs, events),
  );
  const onError = (): void => metrics.storeErrors.inc({ store: 'redis' });
  await services.add(
    new CatalogAnnouncements({ catalog, staleness, nodes, datasetId: installed.datasetId, events, onError }),
  );
  const problems = await services.add(new Problems(() => catalog.epochs.keys(), world.now));
  const remembered = { unownedCells: new UnownedCells(), dryGames: new DryGames() };
  problems.add(() => knownFindings(parts, unservedVolatile(config, nodes, durability)));
  problems.add(() =>
    shortage.current === undefined ? [] : [{ name: 'postgres-short', ...shortage.current }],
  );
  problems.addLook(
    () => storeFindings({ ...parts, store: operatorStore }, remembered),
    () => nodes.connectionsLost,
  );
  registerProblemMetrics(metrics, problems);
  const parts: RoleParts = {
    config,
    log,
    world,
    services,
    events,
    metrics,
    sql,
    store,
    nodes,
    scripts,
    catalog,
    operatorStore,
    ownStore: openStore(sql),
    flushSql: pools.ledger,
    postgresDurability: durability,
    staleness,
    clocks,
    installed,
    operatorKey,
    secretBox,
    registry,
    notes,
    program,
    problems,
  };
  if (config.roles.worker) {
    progress('Preparing the ledger and blocks …');
    // Each role is loaded only if this process has it, because loading either role takes half a second.
    await (await import('./app/roles/worker.js')).startWorker(parts);
    await untilServed(nodes, catalog);
  }
  registerPoolMetrics(metrics, pools);
  let offsets: ReadonlyMap<string, number> = new Map();
  const measureClocks = async (): Promise<void> => {
    offsets = await clockOffsets(sql, nodes, world.now);
  };
  await services.add(new Job('clock offsets', { everyMs: 10_000, firstAfterMs: 0 }, measureClocks));
  registerClockMetrics(metrics, () => offsets);
  let found: readonly Finding[] = [];
  problems.add(() => found);
  const checkMetrics = async (): Promise<void> => {
    found = problemsIn(await metrics.samples());
  };
  await services.add(new Job('metrics check', METRICS_CHECKED_EVERY_MS, checkMetrics));
  return { ...(await serve(parts)), operatorKey, isNewOperatorKey, redisUrl, databaseUrl };
}

/** Opens the sealing keys and reseals everything in Postgres with the newest ones. */
async function openKeys({
  config,
  log,
  sql,
  events,
  services,
  registry,
}: Pick<RoleParts, 'config' | 'log' | 'sql' | 'events' | 'services' | 'registry'>): Promise<SecretBox> {
  const secrets = await openSecretBox(config);
  if (secrets.prefix === undefined)
    log.warn('webhook signing keys are not encrypted in Postgres because WEBHOOK_SECRETS_KEY is not set');
  const seeds = await openSeedBox(config);
  if (!sealsBlocks()) log.warn('undealt outcomes are not encrypted in Postgres because SEEDS_KEY is not set');
  const { processId } = registry;
  const sealAnew = (): Promise<void> => sealAll(sql, secrets);
  await services.add(new KeyReplacement(sql, { processId, seeds, secrets, sealAll: sealAnew, events }));
  return secrets;
}

/** Opens the ports: metrics, and the API if this process serves it. */
async function serve(
  parts: RoleParts,
): Promise<Pick<Running, 'port' | 'metricsPort' | 'demo' | 'waitsFor' | 'stop'>> {
  const { config, log, metrics, nodes, store, catalog, services } = parts;
  const address = { host: config.METRICS_HOST, port: config.METRICS_PORT, token: config.METRICS_TOKEN };
  const metricsServer = new MetricsServer(
    metrics,
    address,
    parts.problems,
    installationTag(parts.installed.datasetId),
  );
  if (config.processes.isChild) answerParent(metrics, parts.problems);
  else
    await services.add(metricsServer).catch((error: Error) => {
      throw new SetupError(error.message);
    });
  const demo = await openDemo(config, store, nodes, catalog);
  let port = config.roles.http
    ? await (await import('./app/roles/frontEnd.js')).startFrontEnd(parts)
    : undefined;
  if (config.processes.children.length > 0) {
    await services.add(new FrontEndProcesses(config, log, metrics, parts.problems));
    port = config.PORT;
  }
  await noteAddress(config, port, services);
  const { port: metricsPort } = metricsServer;
  return { port, metricsPort, demo, waitsFor: () => services.waitsFor, stop: () => services.stop() };
}

/** Registers this process and monitors the data format that processes write. */
async function openRegistry({
  config,
  sql,
  nodes,
  events,
  services,
}: Pick<RoleParts, 'config' | 'sql' | 'nodes' | 'events' | 'services'>): Promise<ProcessRegistry> {
  const { REDIS_URL, DATABASE_URL, version, roles, processes } = config;
  const isEmbedded = REDIS_URL === undefined && DATABASE_URL === undefined;
  // Front ends that this process starts do not run yet.
  const isAlone = isEmbedded && roles.worker && (roles.http || processes.children.length > 0);
  events.on('FormatChanged', ({ format }) => {
    nodes.writtenFormat = format;
  });
  const registry = await services.add(
    new ProcessRegistry(sql, { version, roles: rolesOf(config), isAlone, events }),
  );
  nodes.writtenFormat = registry.format;
  return registry;
}

/** Returns the roles as text, such as `http,worker`. */
const rolesOf = ({ roles }: Config): string =>
  Object.entries(roles)
    .flatMap(([name, isPlayed]) => (isPlayed ? [name] : []))
    .join(',');

if (process.argv[1] === fileURLToPath(import.meta.url)) await runProgram(start);
