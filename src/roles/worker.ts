/** The worker role: flushes the ledger and keeps the queues filled, for the cells that this process comes to own. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import { Piscina } from 'piscina';
import { BlockKeeper } from '../blocks/keeper.js';
import type { Catalog } from '../catalog/catalog.js';
import type { Config } from '../config.js';
import type { SpinIds } from '../domain/spinId.js';
import type { OnFailpoint } from '../failpoints.js';
import { BookedTotals } from '../ledger/bookedTotals.js';
import { Flusher } from '../ledger/flusher.js';
import { Housekeeping } from '../ledger/housekeeping.js';
import { Ownership } from '../ledger/ownership.js';
import type { Metrics } from '../metrics.js';
import { bookedTotals } from '../postgres/bookedTotals.js';
import type { CellLease } from '../postgres/cells.js';
import type { Sql } from '../postgres/client.js';
import { openStore } from '../postgres/store.js';
import { Checkpoints } from '../recovery/checkpoints.js';
import { ForeignError } from '../recovery/handshake.js';
import { prepareCell } from '../recovery/prepare.js';
import type { RedisNodes } from '../redis/nodes.js';
import { OutboxReader } from '../redis/outboxReader.js';
import { Semaphore } from '../semaphore.js';
import { SettlementJob } from '../settlement/job.js';
import { Settlements } from '../settlement/settlements.js';
import type { Undo } from '../undo.js';
import { Deliverer } from '../webhooks/deliverer.js';
import type { Resolve } from '../webhooks/destination.js';
import { KeyExpiry } from '../webhooks/keyExpiry.js';
import { largeWinEvents } from '../webhooks/largeWins.js';
import { Sender } from '../webhooks/sender.js';
import { registerWorkerMetrics } from './workerMetrics.js';

/**
 * A thread that is ended while it loads an ES module by `require` aborts the whole process ("v8::Module::IsGraphAsync", seen
 * with Node 20.20): the threads must import it. Node 20 before 20.17 can't require one, and does not know the flag.
 */
const IMPORTS_ONLY = process.allowedNodeEnvironmentFlags.has('--no-experimental-require-module')
  ? ['--no-experimental-require-module']
  : [];
const FLUSH_AT_STOP_MS = 3000;
/** At a stop attempts of deliveries under way may take so long; then they are made again, elsewhere or later. */
const DELIVER_AT_STOP_MS = 2000;
const ATTEMPT_TIME_LIMIT_MS = 15_000;
const KEY_EXPIRY_EVERY_MS = 300_000;
/** Each holds a connection to Postgres for as long as it takes. */
const REBUILDS_AT_ONCE = 3;
/** What a rebuild reads of the ledger for the players is not much older than this. */
const CHECKPOINT_EVERY_MS = 60_000;
/** A cell that is refused is tried again more often than this. */
const REFUSED_LATELY_MS = 10_000;

export interface WorkerParts {
  config: Config;
  log: Logger;
  undo: Undo;
  sql: Sql;
  nodes: RedisNodes;
  idempotencyTtlSeconds: number;
  catalog: Catalog;
  spinIds: SpinIds;
  resolve: Resolve;
  now: () => number;
  metrics: Metrics;
  onFailpoint: OnFailpoint;
}

export async function startWorker(parts: WorkerParts): Promise<BlockKeeper> {
  const { config, log, undo, sql, nodes, catalog, metrics, onFailpoint } = parts;
  const readers: OutboxReader[] = [];
  for (const node of nodes.all) {
    const reader = await OutboxReader.open(node, () => metrics.storeErrors.inc({ store: 'redis' }));
    undo.add(() => reader.close());
    readers.push(reader);
  }
  const pool = new Piscina({
    filename: join(config.workersDir, 'makeBlock.js'),
    minThreads: 1,
    maxThreads: config.BLOCK_WORKERS,
    maxQueue: 1024,
    execArgv: IMPORTS_ONLY,
  });
  undo.add(() => pool.destroy());
  const onWebhookError = (error: unknown): void => {
    metrics.storeErrors.inc({ store: 'postgres' });
    log.warn({ err: error }, 'deliveries of webhooks wait for Postgres');
  };
  const sender = new Sender({
    brand: config.BRAND,
    resolve: parts.resolve,
    timeLimitMs: ATTEMPT_TIME_LIMIT_MS,
  });
  const deliverer = new Deliverer(sql, sender, {
    retryDelaysMs: config.webhookRetryDelaysMs,
    onAttempt: ({ due: { deliveryId, webhookId, event, attempts, maxAttempts }, outcome, seconds }) => {
      const { isDelivered, responseStatus, error } = outcome;
      const result = isDelivered ? 'delivered' : attempts + 1 < maxAttempts ? 'failed' : 'exhausted';
      metrics.webhookAttempts.inc({ result });
      metrics.webhookAttemptSeconds.observe(seconds);
      if (isDelivered) return;
      const fields = { deliveryId, webhookId, event, attempt: attempts + 1, responseStatus, error };
      if (result === 'exhausted') log.warn(fields, 'a delivery of a webhook has failed for good');
      // The history has it, too, and a receiver that is away makes thousands of them.
      else log.debug(fields, 'an attempt of a delivery of a webhook has failed');
    },
    onError: onWebhookError,
  });
  const onEvents = (): void => deliverer.wake();
  const keyExpiry = new KeyExpiry(sql, {
    everyMs: KEY_EXPIRY_EVERY_MS,
    now: parts.now,
    onEvents,
    onError: onWebhookError,
  });
  const keeper = new BlockKeeper(sql, nodes, pool, {
    gamesOfCell: (cell) => catalog.gamesOfCell(cell),
    minReadyBlocks: (partnerId) => catalog.minReadyBlocks(partnerId),
    sealer: join(config.workersDir, 'sealRaffle.js'),
    onMade: ({ outcomes, makeSeconds, totalSeconds }) => {
      metrics.blockOutcomes.inc(outcomes);
      metrics.blockPoolSeconds.inc(makeSeconds);
      metrics.blockMakeSeconds.observe(totalSeconds);
    },
    onError: (error, gameId) => {
      metrics.storeErrors.inc({ store: 'blocks' });
      log.warn({ err: error, gameId }, 'a block could not be made or loaded; trying again');
    },
    onEvents,
    onFailpoint,
  });
  /** Cells that are not served, and when that was found last; those whose ledger was halted here, and when. */
  const refused = new Map<number, number>();
  const halted = new Map<number, number>();
  const totals = new BookedTotals((cells) => bookedTotals(sql, cells));
  const flusher = new Flusher(sql, nodes, readers, {
    // Somebody waits for each commit: the next one begins as soon as there is something to write.
    intervalMs: config.ACK === 'ledger' ? 0 : config.FLUSH_INTERVAL_MS,
    onFlushed: (flush) => {
      metrics.flushEntries.inc(flush.entries);
      metrics.flushSeconds.observe(flush.seconds);
      metrics.flushLagSeconds.observe(flush.lagSeconds);
      totals.booked(flush);
    },
    onBooked: ({ cell, token }, cursor) => nodes.announceBooked({ cell, epoch: token, cursor }),
    onConsumed: (cell, games) => keeper.consumed(cell, games),
    largeWinThreshold: (partnerId) => catalog.largeWinThreshold(partnerId),
    eventsOf: (wins) =>
      largeWinEvents(
        {
          spinIds: parts.spinIds,
          largeWinThreshold: (partnerId) => catalog.largeWinThreshold(partnerId),
          game: (gameId) => catalog.game(gameId),
          refresh: () => catalog.refresh(),
        },
        wins,
      ),
    onEvents,
    onUncertain: (cell) => keeper.readAgain(cell),
    onGivenUp: (cell) => ownership.giveUp(cell),
    onHalted: (cell, reason) => {
      halted.set(cell, performance.now());
      log.fatal({ cell, reason }, 'the ledger of a cell is halted');
    },
    onError: (error, cell) => {
      metrics.storeErrors.inc({ store: 'ledger' });
      log.warn({ err: error, cell }, 'a flush failed; trying again');
    },
    onFailpoint,
  });
  const housekeeping = new Housekeeping(
    nodes,
    parts.idempotencyTtlSeconds,
    () => ownership.cells,
    (error) => {
      metrics.storeErrors.inc({ store: 'redis' });
      log.warn({ err: error }, 'housekeeping failed; it comes again');
    },
  );
  const checkpoints = new Checkpoints(sql, {
    everyMs: CHECKPOINT_EVERY_MS,
    onMade: (players, seconds) => log.debug({ players, seconds }, 'players are accounted for up to now'),
    onError: (error) => {
      metrics.storeErrors.inc({ store: 'postgres' });
      log.warn({ err: error }, 'the checkpoint of the players failed; it comes again');
    },
  });
  const rebuilds = new Semaphore(REBUILDS_AT_ONCE);
  const ownership = new Ownership(sql, {
    prepare: (lease: CellLease) =>
      prepareCell(
        {
          sql,
          store: nodes.cell(lease.cell),
          idempotencyPeriodSeconds: parts.idempotencyTtlSeconds,
          volatile: async () => (config.allowVolatileRedis ? [] : nodes.of(lease.cell).durability.find()),
          turn: rebuilds,
          onFailpoint,
          onLost: (cell, reason) => {
            metrics.recoveriesUnderWay.inc();
            log.error(
              { cell, reason },
              'Redis has lost what it held of a cell: rebuilding it from the ledger',
            );
          },
          onRebuilt: (cell, rebuilt) => {
            metrics.recoveriesUnderWay.dec();
            if (rebuilt === undefined) return;
            const { voided, players, requests, seconds } = rebuilt;
            metrics.recoverySeconds.observe(seconds);
            metrics.outcomesVoided.inc(voided);
            log.error({ cell, voided, players, requests, seconds }, 'a cell is rebuilt');
          },
        },
        lease,
      ),
    onAcquired: (lease: CellLease) => {
      const { cell } = lease;
      if (refused.delete(cell)) log.warn({ cell }, 'a cell that was refused is served again');
      flusher.own(lease);
      keeper.own(lease);
      housekeeping.tidySoon(cell);
    },
    onLost: (cell) => {
      flusher.disown(cell);
      totals.forget(cell);
      keeper.disown(cell);
      log.info({ cell }, 'a cell is written by this worker no more');
    },
    onRefused: (cell, error) => {
      if (!(error instanceof ForeignError)) {
        metrics.storeErrors.inc({ store: 'ledger' });
        log.warn({ err: error, cell }, 'a cell could not be prepared; trying again');
        return;
      }
      // It is tried again at every turn, and said once.
      if (!refused.has(cell)) log.fatal({ cell, reason: error.message }, 'a cell is not served');
      refused.set(cell, performance.now());
    },
    onError: (error) => {
      metrics.storeErrors.inc({ store: 'ledger' });
      log.warn({ err: error }, 'a cell could not be prepared; trying again');
    },
    isAble: () => nodes.all.some((node) => node.isReady),
    changed: (leases) => {
      const reached = leases.filter(({ cell }) => nodes.of(cell).serverId !== undefined);
      return nodes.closed(new Map(reached.map(({ cell, token }) => [cell, token])));
    },
  });
  const settlement = new SettlementJob(
    new Settlements({
      store: openStore(sql),
      nodes,
      onMade: ({ partnerId, report, status, integrityHash }) => {
        metrics.settlementReports.inc({ status });
        const { reportDate, revision } = report;
        onEvents();
        log.info({ partnerId, reportDate, revision, status, integrityHash }, 'a settlement report is made');
      },
      onUnknown: (error) => {
        metrics.storeErrors.inc({ store: 'redis' });
        log.warn({ err: error }, 'Redis cannot say whether a day is complete; it is asked again');
      },
    }),
    {
      cron: config.SETTLEMENT_CRON,
      onFault: (error, day) => {
        metrics.settlementFaults.inc();
        log.error({ err: error, day }, 'a settlement report could not be made; it comes again');
      },
    },
  );
  registerWorkerMetrics({
    config,
    metrics,
    sql,
    nodes,
    catalog,
    keeper,
    ownership,
    totals,
    pool,
    settlement,
    deliverer,
    refusedCells: () => {
      // It is tried again at every turn: one that was not refused lately is served by another worker.
      const since = performance.now() - REFUSED_LATELY_MS;
      return [...new Map([...halted, ...refused])].flatMap(([cell, atMs]) => (atMs > since ? [cell] : []));
    },
  });
  await ownership.start();
  const look = (): void => ownership.lookNow();
  undo.add(nodes.onIdentified(look));
  flusher.start();
  keeper.start();
  housekeeping.start();
  checkpoints.start();
  settlement.start();
  deliverer.start();
  keyExpiry.start();
  undo.add(async () => {
    const settled = settlement.stop();
    housekeeping.stop();
    const checkpointed = checkpoints.stop();
    const delivered = Promise.all([keyExpiry.stop(), deliverer.stop(DELIVER_AT_STOP_MS)]);
    await keeper.stop();
    await flusher.stop(FLUSH_AT_STOP_MS);
    await ownership.stop();
    await Promise.all([checkpointed, settled, delivered]);
  });
  return keeper;
}
