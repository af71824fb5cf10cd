/** The http role: serves the partner API and the operator API. */

import { join } from 'node:path';
import type { Store } from '../../api/api.store.js';
import { PARTNER_BASE, PARTNER_VERSION } from '../../api/contract/apis.js';
import { Access } from '../../api/server/access.js';
import { Connections, connectionsWithin } from '../../api/server/connections.js';
import { HttpServer } from '../../api/server/httpServer.js';
import { KeyUse } from '../../api/server/keyUse.js';
import { installationTag, refuseStrangersPort } from '../../api/server/portHolder.js';
import { Replies } from '../../api/server/reply.js';
import { RequestLog } from '../../api/server/requestLog.js';
import { ServedVersion } from '../../api/server/servedVersion.js';
import { serverRoutes } from '../../api/server/serverRoutes.js';
import type { Services } from '../../api/server/services.js';
import { SessionTokens } from '../../api/server/sessionTokens.js';
import { ofVersion } from '../../api/server/versionedRoutes.js';
import { SettlementReports } from '../../books/settlement/settlementReports.js';
import { dayOf, shiftDay } from '../../domain/days.js';
import { ApiError, ERRORS } from '../../domain/errors.js';
import { overAfterMs } from '../../domain/settlement.js';
import { SpinIds } from '../../domain/spinId.js';
import { Redrawing } from '../../engine/blocks/redrawing.js';
import { sheetsOf } from '../../engine/catalog/catalog.store.js';
import { CellViews } from '../../engine/cells/cellViews.js';
import { PartnerReads } from '../../engine/cells/partnerReads.js';
import { DurabilityWatches } from '../../engine/redis/redisDurabilityWatch.js';
import { isRedisAway } from '../../engine/redis/scriptErrors.js';
import { closing } from '../../platform/runtime/service.js';
import { lineOf } from '../../platform/secretsInLogs.js';
import { isPostgresAway } from '../../postgres/postgresErrors.js';
import { type DrawAgain, Proofs } from '../../publicLog/log/proofs.js';
import { judgeRegistration } from '../../webhooks/allowedAddresses.js';
import { SetupError } from '../embedded/index.js';
import { registerFrontEndMetrics } from '../metrics/frontEndMetrics.js';
import { openDealing } from './dealing.js';
import { playedRounds } from './openRounds.js';
import type { RoleParts } from './parts.js';

/** Node 20 ignores the option reusePort of node:http. */
const NODE_SHARES_PORTS = Number.parseInt(process.versions.node, 10) > 20;

/** If an end of the version is announced while the process runs, it takes effect without a restart. */
async function serveVersion({ world, catalog, events, services, store }: RoleParts): Promise<ServedVersion> {
  const version = new ServedVersion(PARTNER_VERSION, world.now);
  const learnEnd = (): void => version.learn(catalog.versionEnd(version.name));
  events.on('VersionEndsChanged', learnEnd);
  learnEnd();
  await services.add(new KeyUse([version], (uses) => store.apiVersions.noteUses(uses)));
  return version;
}

/** Watches whether the Redis nodes, and the replicas that calls wait for, keep data durably. */
async function watchDurability({ services, nodes, events }: RoleParts): Promise<void> {
  const volatile = (): string[] => nodes.all.flatMap(({ durability }) => durability.volatile);
  const volatileReplicas = (): string[] => nodes.all.flatMap((node) => node.volatileReplicas);
  await services.add(
    new DurabilityWatches(nodes, {
      onChanged: () => events.emit('DurabilityChanged', { volatile: volatile() }),
      onReplicasChanged: () => events.emit('ReplicaDurabilityChanged', { volatile: volatileReplicas() }),
    }),
  );
}

/** Returns whether a store of a cell may lose acknowledged data, so that the cell must not be served. */
const isVolatile = ({ config, nodes, postgresDurability }: RoleParts, cell: number): boolean =>
  (nodes.of(cell).durability.volatile.length > 0 && !config.allowVolatileRedis) ||
  (postgresDurability.volatile.length > 0 && !config.allowVolatilePostgres);

/** @returns the port of the API */
export async function startFrontEnd(parts: RoleParts): Promise<number> {
  const { config, log, events, nodes, catalog, metrics, installed } = parts;
  await watchDurability(parts);
  const spinIds = new SpinIds(installed.spinIdKey);
  const dealing = await openDealing(parts, spinIds, (cell) => isVolatile(parts, cell));
  const { cells, spinPath, rules, operating, confirmations, requestIds, moved } = dealing;
  const version = await serveVersion(parts);

  const requestLog = new RequestLog(log, metrics);
  const replies = new Replies(requestLog.answered);
  const access = openAccess(parts, requestLog, replies);
  const drawAgain = await openRedrawing(parts);
  const blackjack = playedRounds(parts, cells, requestIds);
  const reads = new PartnerReads(nodes, catalog, moved);
  const answering = (store: Store): Services => ({
    store,
    catalog,
    spinIds,
    playerIdKey: installed.playerIdKey,
    spinPath,
    spinRules: rules,
    metrics,
    drawAgain,
    requestIds,
    proofs: new Proofs(store.publicLogReads, drawAgain),
    blackjack,
    cells: { ...operating, confirmations, reads, views: new CellViews(nodes) },
    settlementReports: new SettlementReports({ store, nodes, events, clocks: parts.clocks }),
    webhooks: {
      judgeUrl: (url, environment) => judgeRegistration(url, environment, parts.world.resolve),
      sealSecret: (secret) => parts.secretBox.seal(secret),
      recorded: (deliveries) => events.emit('EventsRecorded', { deliveries }),
    },
    sessions: {
      minutes: config.constants.consoleSessionMinutes,
      tokens: new SessionTokens(parts.operatorKey),
    },
    process: processOf(parts, requestLog),
  });
  const tag = installationTag(installed.datasetId);
  const services = { partners: answering(parts.store), operators: answering(parts.operatorStore) };
  const routes = serverRoutes(services, access, replies, {
    brand: config.BRAND,
    installationTag: tag,
    docsDir: config.docsDir,
    consoleDir: config.consoleDir,
    verifyDir: config.verifyDir,
  });
  const server = await HttpServer.make(ofVersion(version, PARTNER_BASE, routes, replies), {
    kind: config.HTTP_SERVER,
    host: config.HOST,
    port: config.PORT,
    connections: connectionsOf(parts),
    clientOf: (exchange) => access.clientOf(exchange),
    idleTimeoutSeconds: config.constants.idleTimeoutS,
    graceMs: config.SHUTDOWN_GRACE_S * 1000,
    onDefect: (exchange, error) => {
      requestLog.failed(exchange, exchange.operation, error, ERRORS.internal);
      replies.error(exchange, ERRORS.internal);
    },
    onStopping: () => replies.closeConnections(),
    isIdle: () => cells.pending === 0,
  });
  registerFrontEndMetrics(metrics, server, cells, [version], requestIds);
  await listen(server, tag, parts);
  return server.port;
}

const processOf = (parts: RoleParts, requestLog: RequestLog): Services['process'] => ({
  now: parts.world.now,
  overDay: () => shiftDay(dayOf(parts.world.now() - overAfterMs(parts.clocks.skewMaxMs)), -1),
  noticeDays: parts.config.constants.apiNoticeDays ?? undefined,
  ledgerKeepDays: parts.config.LEDGER_KEEP_DAYS,
  manifest: () => parts.program.identity.manifest,
  figures: () => parts.metrics.figures(),
  onFault: requestLog.failed,
  isStoreAway: (error) => isPostgresAway(error) || isRedisAway(error),
  problems: parts.problems,
});

function openAccess(
  { config, catalog, staleness, scripts, operatorStore, operatorKey, notes }: RoleParts,
  requestLog: RequestLog,
  replies: Replies,
): Access {
  return new Access(
    {
      catalog,
      isBehind: () => staleness.isBehind,
      sessionTokens: new SessionTokens(operatorKey),
      findSession: (hash) => operatorStore.operators.findSession(hash),
      onWindowOver: (client) => notes.note({ action: 'auth.window', subject: `address:${client}` }),
      onWrongKey: (client, { code }) =>
        notes.note({
          action: 'auth.failed',
          subject: 'api:operator',
          data: { errorCode: code, address: client },
        }),
      onNotPermitted: (operator, operation) =>
        notes.note({
          action: 'operator.refused',
          actor: operator,
          subject: `operator:${operator}`,
          data: { operation },
        }),
      countFailure: (address, limit) => scripts.countFailure(address, limit),
      onError: (exchange, error, entry) => requestLog.failed(exchange, 'authenticate', error, entry),
    },
    replies,
    { failureLimit: config.constants.authFailureLimit, operatorKey, proxies: config.trustedProxies },
  );
}

/**
 * If the system allows too few file descriptors for CONNECTIONS_MAX connections, the limit is lower, because
 * a connection without a descriptor can't be accepted.
 */
function connectionsOf({ config, log }: RoleParts): Connections {
  const total = connectionsWithin(config.CONNECTIONS_MAX);
  if (total < config.CONNECTIONS_MAX)
    log.warn({ connectionsMax: total }, 'file descriptor limit is too low for CONNECTIONS_MAX connections');
  return new Connections({
    total,
    perAddress: config.CONNECTIONS_PER_ADDRESS_MAX,
    isProxy: (address) => config.trustedProxies.trusts(address),
  });
}

/** @throws SetupError if the port is not available or belongs to another service */
async function listen(server: HttpServer, tag: string, { config, log, services }: RoleParts): Promise<void> {
  if (server.kind === 'node' && config.processes.frontEnds > 1 && !NODE_SHARES_PORTS)
    throw new SetupError(
      'FRONT_ENDS above 1 needs uWebSockets.js, or Node 22 or later, because node:http of Node 20 cannot share a port',
    );
  if (server.kind === 'node' && config.HTTP_SERVER === undefined)
    log.warn(
      { node: process.version },
      'no uWebSockets.js binding loads here, using node:http at 1.6 times the CPU per spin (docs/production.md lists the bindings)',
    );
  try {
    await refuseStrangersPort(config.HOST, config.PORT, tag);
    await services.add(server);
  } catch (error) {
    throw new SetupError(`${lineOf(error)} (HOST, PORT)`);
  }
}

/** Draws removed outcomes again from their seed when a request asks for their proof. */
async function openRedrawing({ config, sql, store, services }: RoleParts): Promise<DrawAgain> {
  const redrawing = new Redrawing(join(config.workersDir, 'redraw.js'));
  await services.add(closing('redrawing thread', () => redrawing.end()));
  return async ({ gameId, seed, count }) => {
    const game = await store.games.find(gameId);
    const id = game?.parSheetId ?? -1;
    const sheet = (await sheetsOf(sql, [id])).get(id);
    if (sheet === undefined)
      throw new Error(`Game ${gameId} has no PAR sheet, so its outcomes can't be drawn again`);
    const drawn = await redrawing.draw({ sheet, seed, count });
    if (drawn === undefined) throw new ApiError(ERRORS.unavailable);
    return drawn;
  };
}
