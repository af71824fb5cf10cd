/** The http role: serves both APIs. */
import type { Logger } from 'pino';
import type { Catalog } from '../catalog/catalog.js';
import { Acknowledgements } from '../cells/acknowledgements.js';
import { Adjuster } from '../cells/adjuster.js';
import { type Dealt, SpinBatcher, within } from '../cells/batcher.js';
import type { Config } from '../config.js';
import { ERRORS, type ErrorEntry } from '../domain/errors.js';
import { waitsForLedger } from '../domain/games/index.js';
import { SpinIds } from '../domain/spinId.js';
import { SetupError } from '../embedded/index.js';
import { Access } from '../http/access.js';
import type { Exchange } from '../http/exchange.js';
import { Replies } from '../http/reply.js';
import { type Services, serverRoutes } from '../http/routes.js';
import { HttpServer } from '../http/server.js';
import { lineOf } from '../log.js';
import type { Metrics } from '../metrics.js';
import type { Installation } from '../postgres/installation.js';
import type { Store } from '../postgres/store.js';
import { missing } from '../readiness.js';
import type { RedisNodes } from '../redis/nodes.js';
import type { Scripts } from '../redis/scripts.js';
import { Settlements } from '../settlement/settlements.js';
import type { Undo } from '../undo.js';
import { judgeRegistration, type Resolve } from '../webhooks/destination.js';

/** Requests that may wait for one cell: half a second at full speed. */
const WAITING_MAX = 10_000;
const KEY_TOUCH_MS = 10_000;
const DRAIN_MS = 5000;
/** How often it is looked whether the last ticket of a raffle is booked, while somebody waits for that. */
const SOLD_OUT_POLL_MS = 10;

export interface FrontEndParts {
  config: Config;
  log: Logger;
  undo: Undo;
  nodes: RedisNodes;
  scripts: Scripts;
  catalog: Catalog;
  metrics: Metrics;
  installed: Installation;
  operatorKey: string;
  store: Store;
  resolve: Resolve;
}

/** Serves both APIs. @returns the port. */
export async function startFrontEnd(parts: FrontEndParts): Promise<number> {
  const { config, log, undo, nodes, scripts, catalog, metrics, installed, store } = parts;
  const { idempotencyTtlSeconds } = installed;
  const spinIds = new SpinIds(installed.spinIdKey);
  const volatileSettings = (): readonly string[] =>
    nodes.all.flatMap(({ durability }) => durability.volatile);
  const onDurability = (): void => {
    const volatile = volatileSettings();
    metrics.redisVolatile.set(volatile.length > 0 ? 1 : 0);
    if (volatile.length === 0) log.warn('Redis keeps what it acknowledges again');
    else log.error({ volatile, isServed: config.allowVolatileRedis }, 'Redis may lose what it acknowledges');
  };
  const isVolatile = (cell: number): boolean =>
    nodes.of(cell).durability.volatile.length > 0 && !config.allowVolatileRedis;
  for (const node of nodes.all) undo.add(await node.durability.watch(onDurability));
  const acknowledgements = new Acknowledgements({
    read: store.cellCursors,
    serverOf: (cell) => nodes.of(cell).serverId,
    deadlineMs: config.SPIN_DEADLINE_MS,
    onBooked: (seconds) => metrics.ackSeconds.observe(seconds),
    onError: (error) => {
      metrics.storeErrors.inc({ store: 'postgres' });
      log.warn({ err: error }, 'spins wait for the ledger, which does not answer');
    },
  });
  for (const node of nodes.all) {
    const endListening = await node.listenBooked(
      ({ cell, epoch, cursor }) => acknowledgements.advance(cell, epoch, cursor),
      () => metrics.storeErrors.inc({ store: 'redis' }),
    );
    undo.add(endListening);
  }
  const booked = async (cell: number, { epoch, serverId }: Dealt, id: bigint): Promise<boolean> => {
    if (!(await acknowledgements.booked(cell, { epoch, serverId }, id))) return false;
    // A Redis that came back may lack what was dealt before: then the ledger has later entries, and not this one.
    return nodes.of(cell).serverId === serverId || (await store.findEntry(id)) !== undefined;
  };
  const batcher = new SpinBatcher({
    call: (call) => scripts.spin(call),
    pipelined: (calls) => nodes.pipelined(calls),
    isReady: (cell) => nodes.of(cell).isReady,
    whenReady: (cell, timeoutMs) => nodes.of(cell).whenReady(timeoutMs),
    epochOf: (cell) => (isVolatile(cell) ? undefined : catalog.epochOf(cell)),
    spinIds,
    serverOf: (cell) => nodes.of(cell).serverId,
    booked,
    isStalled: (cell) => acknowledgements.isStalled(cell),
    deadlineMs: config.SPIN_DEADLINE_MS,
    batchMax: config.BATCH_MAX,
    waitingMax: WAITING_MAX,
    onBatch: (size, seconds) => metrics.batch(size, seconds),
    onError: (error, cell, size) => {
      metrics.storeErrors.inc({ store: 'redis' });
      log.warn({ err: error, cell, size }, 'a batch of spins had no answer');
    },
    // A rebuilt cell has another epoch: the sooner it is known here, the sooner the cell deals again.
    onEpoch: () => void catalog.refresh().catch(() => {}),
  });
  const isDebugging = log.isLevelEnabled('debug');
  const replies = new Replies((exchange, status, errorCode) => {
    metrics.request(exchange.operation, (performance.now() - exchange.startedMs) / 1000, status, errorCode);
    if (status >= 500 && errorCode !== undefined)
      log.warn(answerOf(exchange, status, errorCode), 'answered with an error');
    else if (isDebugging) log.debug(answerOf(exchange, status, errorCode), 'answered');
  });
  const onFault = (exchange: Exchange, operation: string, error: unknown, { code }: ErrorEntry): void => {
    metrics.faults.inc({ operation });
    const { id: requestId, partnerId } = exchange;
    log.error({ err: error, requestId, operation, errorCode: code, partnerId }, 'a request failed');
  };
  const used = new Map<number, Date>();
  const access = new Access(
    {
      keyByHash: (hash) => catalog.keyByHash(hash),
      partner: (partnerId) => catalog.partner(partnerId),
      refresh: () => catalog.refresh(),
      countFailure: (address, limit) => scripts.countFailure(address, limit),
      onKeyUsed: (keyId) => used.set(keyId, NOW.date),
      onError: (exchange, error, entry) => onFault(exchange, 'authenticate', error, entry),
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
    // When a key was used last is not worth a wait.
    await Promise.race([touch().catch(() => {}), new Promise((resolve) => setTimeout(resolve, 500))]);
  });
  const adjuster = new Adjuster({
    store,
    call: (call) => scripts.adjust(call),
    newestInOutbox: (cell) => nodes.cell(cell).newestInOutbox(),
    isDurable: (cell) => !isVolatile(cell),
    isReady: (cell) => nodes.of(cell).isReady,
    whenReady: (cell, timeoutMs) => nodes.of(cell).whenReady(timeoutMs),
    serverOf: (cell) => nodes.of(cell).serverId,
    waitsForLedger: config.ACK === 'ledger',
    booked,
    deadlineMs: config.SPIN_DEADLINE_MS,
    onError: (error, cell) => {
      metrics.storeErrors.inc({ store: 'redis' });
      log.warn({ err: error, cell }, 'a store did not answer to an adjustment');
    },
  });
  const services: Services = {
    store,
    nodes,
    settlements: new Settlements({
      store,
      nodes,
      onMade: (report) => metrics.settlementReports.inc({ status: report.status }),
      onUnknown: (error) => {
        metrics.storeErrors.inc({ store: 'redis' });
        log.warn({ err: error }, 'Redis cannot say whether a day is complete');
      },
    }),
    spinIds,
    playerIdKey: installed.playerIdKey,
    partner: (partnerId) => catalog.partner(partnerId),
    game: (gameId) => catalog.game(gameId),
    refresh: () => catalog.refresh(),
    judgeUrl: (url, environment) => judgeRegistration(url, environment, parts.resolve),
    submit: (job) => batcher.submit(job),
    adjust: (actor, wanted, partner) => adjuster.adjust(actor, wanted, partner),
    waitsForLedger: (game) => waitsForLedger(game?.kind, config.ACK),
    mayForget: ({ kind, sealedAtMs }) =>
      kind.lifeCycle.mayBindInLedger({ sealedAtMs, nowMs: NOW.date.getTime(), idempotencyTtlSeconds }),
    findSold: async (game, partner, requestId) => {
      const entry = await store.findTicket(game.gameId, requestId);
      if (entry === undefined) return undefined;
      return { ...entry, spinId: spinIds.encodeOne(entry.id, partner.partnerId) };
    },
    isSoldOut: async ({ gameId }) => {
      const deadline = performance.now() + config.SPIN_DEADLINE_MS;
      const isClosed = (): boolean => catalog.game(gameId)?.status === 'CLOSED';
      while (!isClosed()) {
        const leftMs = deadline - performance.now();
        if (leftMs <= 0) return false;
        await within(catalog.refresh(), leftMs).catch(() => {});
        if (!isClosed()) await new Promise((resolve) => setTimeout(resolve, SOLD_OUT_POLL_MS));
      }
      return true;
    },
    onDealt: (game, payoutMicros) => metrics.dealt(game.wagerMicros, payoutMicros),
    onFault,
    missing: () => missing(nodes, store, catalog, config.allowVolatileRedis ? [] : volatileSettings()),
  };
  metrics.gauge('spindle_http_open_requests', 'Requests that are not answered yet', () => server.open);
  metrics.gauge('spindle_batch_pending', 'Requests in the batcher', () => batcher.pending);
  metrics.gaugeBy(
    'spindle_batch_requests',
    'Requests that wait for a batch, are in one, or wait for the ledger',
    'state',
    async () => {
      const { waiting, underWay, parked } = batcher.held;
      return [
        ['waiting', waiting],
        ['under-way', underWay],
        ['for-ledger', parked],
      ];
    },
  );
  const routes = serverRoutes(services, access, replies, { brand: config.BRAND });
  const server = new HttpServer(routes, (exchange, error) => {
    onFault(exchange, exchange.operation, error, ERRORS.internal);
    replies.error(exchange, ERRORS.internal);
  });
  let port: number;
  try {
    port = await server.listen(config.HOST, config.PORT);
  } catch (error) {
    throw new SetupError(`${lineOf(error)} (HOST, PORT)`);
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

/** What the log has of an answer. */
const answerOf = (exchange: Exchange, status: number, errorCode: string | undefined): object => ({
  requestId: exchange.id,
  operation: exchange.operation,
  status,
  errorCode,
  partnerId: exchange.partnerId,
  ms: Math.round((performance.now() - exchange.startedMs) * 1000) / 1000,
});

/** The time to the second, for what needs no better. */
const NOW = { date: new Date() };
