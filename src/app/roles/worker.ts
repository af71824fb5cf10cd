/** The worker role: flushes the ledger and replenishes the queues of the cells that this process owns. */

import { join } from 'node:path';
import { isOnThisMachine, type LedgerUse, measureLedger } from '../../books/archive/ledgerStorage.js';
import { RtpJudging } from '../../books/returns/rtpJudging.js';
import { SettlementJob } from '../../books/settlement/job.js';
import { SettlementReports } from '../../books/settlement/settlementReports.js';
import { adjustmentData } from '../../domain/adjustment.js';
import { entryTimeMs } from '../../domain/entryId.js';
import { SpinIds } from '../../domain/spinId.js';
import { findDeal } from '../../engine/blackjack/rounds.store.js';
import { BlockKeeper, type KeeperOptions } from '../../engine/blocks/keeper.js';
import { removeSpentOutcomes } from '../../engine/blocks/spentOutcomes.store.js';
import { openThreads } from '../../engine/blocks/threads.js';
import { committedTotals } from '../../engine/catalog/games.store.js';
import { Adjuster } from '../../engine/cells/adjuster.js';
import { endStalledSessions } from '../../engine/cells/cells.store.js';
import { Confirmations } from '../../engine/cells/confirmations.js';
import { PlayerBlocking, RecordedStatuses } from '../../engine/cells/playerBlocking.js';
import { finishRotation } from '../../engine/cells/rotate.js';
import { Cleanup } from '../../engine/ledger/cleanup.js';
import { CommittedTotals } from '../../engine/ledger/committedTotals.js';
import { drain } from '../../engine/ledger/drain.js';
import { Flusher } from '../../engine/ledger/flusher.js';
import { PartitionMaker } from '../../engine/ledger/partitions.js';
import { countTrafficHours } from '../../engine/ledger/trafficHours.store.js';
import { UnservedCells } from '../../engine/ledger/unservedCells.js';
import { job } from '../../engine/processEvents.js';
import { RaffleVoids } from '../../engine/raffles/raffleVoids.js';
import { AbsentPosition } from '../../engine/recovery/absentPosition.js';
import { type OwnershipParts, openOwnership } from '../../engine/recovery/openOwnership.js';
import { PartnerMover } from '../../engine/recovery/partnerMover.js';
import { PositionKeeper } from '../../engine/recovery/positionKeeper.js';
import { checkpointAllPlayers } from '../../engine/recovery/recoveries.store.js';
import type { RedisNode } from '../../engine/redis/node.js';
import { OutboxReader } from '../../engine/redis/outboxReader.js';
import { CommittedRequestIds } from '../../engine/requestIds/committedRequestIds.js';
import { SegmentRelease } from '../../engine/requestIds/segmentRelease.js';
import { armFailpoint, type OnFailpoint } from '../../platform/failpoints.js';
import type { PeriodicService } from '../../platform/runtime/periodicService.js';
import { closing } from '../../platform/runtime/service.js';
import { ServiceGroup } from '../../platform/runtime/serviceGroup.js';
import { limited } from '../../postgres/limits.js';
import { Deliverer } from '../../webhooks/deliverer.js';
import { largeWinEvents } from '../../webhooks/largeWins.js';
import { Sender } from '../../webhooks/sender.js';
import { removeEndedDeliveries } from '../../webhooks/webhooks.store.js';
import { registerLedgerMetrics } from '../metrics/ledgerMetrics.js';
import { registerOutsideCopyMetrics } from '../metrics/outsideCopyMetrics.js';
import { registerWorkerMetrics } from '../metrics/workerMetrics.js';
import { openNotices } from './openNotices.js';
import { openRoundTimeouts } from './openRounds.js';
import type { RoleParts } from './parts.js';
import { openPublicLog } from './publicLogWriter.js';
import { type Reacting, subscribeWorker } from './reactions.js';
import { workerCells } from './workerCells.js';
import { WORK_EVERY_MS, type WorkWatchOptions, workWatch } from './workWatch.js';

const ATTEMPT_TIME_LIMIT_MS = 15_000;
/**
 * Reserve of outcomes if the log has a quorum of witnesses, in seconds at a game's current pace. The reserve
 * lasts for a minute in which no witness answers.
 */
const RESERVE_WITH_QUORUM_S = 60;
const RESERVE_S = 4;
/**
 * Maximum number of blocks of a game that wait for the same quorum of witnesses: outcomes for a minute at two
 * seconds a block.
 */
const BLOCKS_AT_ONCE = 32;
/**
 * Maximum number of background connections for replenishing games. The remaining background connections renew
 * leases and prepare cells.
 */
const BLOCK_CONNECTIONS_MAX = 6;
/**
 * Interval of player checkpoints, in ms. It bounds the ledger entries that a rebuild reads for the players.
 */
const CHECKPOINT_EVERY_MS = 60_000;

function openDeliverer({ config, events, sql, world, secretBox }: RoleParts): Deliverer {
  const sender = new Sender({
    brand: config.BRAND,
    resolve: world.resolve,
    timeLimitMs: ATTEMPT_TIME_LIMIT_MS,
    openSecret: (sealed) => secretBox.open(sealed),
    now: world.now,
  });
  return new Deliverer(sql, sender, {
    retryDelaysMs: config.constants.webhookRetryDelaysMs,
    hostAttemptsMax: config.constants.webhookHostAttemptsMax,
    events,
  });
}

function openSegmentRelease(
  { config, events, sql, nodes }: RoleParts,
  committedIds: CommittedRequestIds,
  onFailpoint: OnFailpoint,
): SegmentRelease {
  return new SegmentRelease(sql, nodes, {
    windowMs: config.REQUEST_ID_WINDOW_S * 1000,
    committedIds,
    events,
    onFailpoint,
  });
}

/**
 * Makes the keeper react when scripts announce that a block is exhausted, and the flusher when another
 * process waits for a commit.
 */
async function listenForWork(
  { nodes, metrics, events, services, installed }: RoleParts,
  { ownership, keeper, flusher }: Pick<Reacting, 'ownership' | 'keeper' | 'flusher'>,
): Promise<void> {
  let announced = 0;
  metrics.counter(
    'spindle_block_announcements_total',
    'Exhausted blocks that a script announced at once. If none while blocks are dealt, the Redis user may lack the right to publish or subscribe',
    () => announced,
  );
  const listening = nodes.listenForWork(
    () => ownership.cells,
    (announcement) => {
      announced++;
      keeper.dealtOut(announcement);
    },
    ({ cell, datasetId }) => {
      if (datasetId === installed.datasetId) flusher.commitSoon(cell);
    },
    () => metrics.storeErrors.inc({ store: 'redis' }),
  );
  await services.add(closing('block subscriptions', listening.end));
  events.on('CellAcquired', listening.subscribe);
}

/**
 * Opens periodic services that maintain the ledger and the rounds, and the watch that wakes services for
 * waiting work.
 */
function openTidying(
  parts: RoleParts,
  cells: () => readonly number[],
  woken: Omit<WorkWatchOptions, 'sql' | 'cells' | 'roundTimeouts'>,
): PeriodicService[] {
  const { config, sql, events, metrics, log } = parts;
  const partitions = new PartitionMaker(sql, events);
  metrics.gauge(
    'spindle_ledger_partition_days_ahead',
    'Number of days, from tomorrow on, whose ledger partitions exist',
    () => partitions.daysAhead,
  );
  const { DATABASE_URL, dataDir } = config;
  const folder = DATABASE_URL === undefined ? dataDir : undefined;
  let use: LedgerUse | undefined;
  registerLedgerMetrics(metrics, () => use);
  const measure = async (): Promise<void> => {
    const found = await measureLedger(sql, folder, isOnThisMachine(DATABASE_URL));
    if (use === undefined && found.disk === undefined)
      log.warn('free disk space of Postgres is unknown, so SpindleDiskFull cannot fire');
    use = found;
  };
  const endStalled = async (): Promise<void> => {
    const sessions = await endStalledSessions(sql);
    if (sessions > 0) events.emit('StalledSessionsEnded', { sessions });
  };
  const removeDeliveries = async (stopped: AbortSignal): Promise<void> => {
    while (!stopped.aborted && (await removeEndedDeliveries(sql, config.WEBHOOK_RETENTION_DAYS)) > 0);
  };
  const checkpoint = (stopped: AbortSignal): Promise<void> =>
    checkpointAllPlayers(sql, CHECKPOINT_EVERY_MS, events, stopped);
  const roundTimeouts = openRoundTimeouts(parts, cells);
  const watch = workWatch({ ...woken, roundTimeouts, sql, cells });
  const { trafficTurnMs } = config.constants;
  const rare = { everyMs: 600_000, firstAfterMs: 5000 };
  return [
    roundTimeouts,
    job(events, 'work discovery', WORK_EVERY_MS, watch),
    partitions,
    job(events, 'outcome removal', rare, (stopped) => removeSpentOutcomes(sql, events, stopped)),
    job(events, 'ledger storage', { everyMs: 300_000, firstAfterMs: 0 }, measure),
    job(events, 'traffic statistics', trafficTurnMs, () => countTrafficHours(sql)),
    job(events, 'stalled transaction check', 2500, endStalled),
    job(events, 'player checkpoint', 30_000, checkpoint, 'player checkpoints'),
    job(events, 'webhook retention', rare, removeDeliveries),
  ];
}

/**
 * Opens the position file outside both stores (POSITION_FILE). If Postgres has a position file on record and
 * the setting is missing, the worker deals nothing.
 */
async function openPosition(
  parts: RoleParts,
): Promise<Pick<OwnershipParts, 'problem' | 'knownOutside'> & Pick<KeeperOptions, 'leased'>> {
  const { config, sql, nodes, installed, events, services, log, metrics } = parts;
  registerOutsideCopyMetrics(metrics, events);
  const { POSITION_FILE: path, REDIS_URL, DATABASE_URL } = config;
  const { datasetId } = installed;
  if (path === undefined && REDIS_URL !== undefined && DATABASE_URL !== undefined)
    log.warn('a restore of the stores to an older state cannot be detected because POSITION_FILE is not set');
  if (path === undefined) {
    const absent = await services.add(new AbsentPosition(sql, events));
    return { problem: () => absent.problem, knownOutside: () => 0n, leased: () => Promise.resolve() };
  }
  const keeper = new PositionKeeper({ path, sql, nodes, datasetId, events });
  parts.problems.add(() => keeper.findings());
  const position = await services.add(keeper);
  metrics.gauge(
    'spindle_position_file_age_seconds',
    'Time since this process wrote the position file, in seconds; absent without POSITION_FILE',
    () => position.ageSeconds,
  );
  return {
    problem: () => position.problem,
    knownOutside: ({ cell, epoch }) => position.newestId(cell, epoch),
    leased: (gameId, toIndex) => position.leased(gameId, toIndex),
  };
}

/** Lets the worker carry out the recorded changes of players' statuses in its cells. */
function openPlayerStatuses(parts: RoleParts): RecordedStatuses {
  const { ownStore: store, config, events } = parts;
  // These commands do not wait for the ledger, so they need no confirmation.
  const cells = workerCells(parts, { confirmed: async () => true, isStalled: () => false });
  const blocking = new PlayerBlocking({ store, cells, deadlineMs: config.SPIN_DEADLINE_MS });
  return new RecordedStatuses({ store, blocking, events });
}

/** Lets the worker carry out the recorded rotations of games before it leases their next blocks. */
function openRotations(parts: RoleParts): Pick<KeeperOptions, 'finishRotation'> {
  const { ownStore, config } = parts;
  // The rotation itself waits until the ledger has the void of the game's outcomes, so these commands need no
  // confirmation.
  const cells = workerCells(parts, { confirmed: async () => true, isStalled: () => false });
  return {
    finishRotation: (gameId) => finishRotation(cells, ownStore.rotations, gameId, config.SPIN_DEADLINE_MS),
  };
}

/** Lets the worker carry out the voids of raffles. */
function openRaffleVoids(parts: RoleParts, spinIds: SpinIds, onFailpoint: OnFailpoint): RaffleVoids {
  const { config, log, sql, ownStore, nodes, installed, metrics, events } = parts;
  // Commits of this process are confirmed directly. Commits of other workers are read from Postgres.
  const confirmations = new Confirmations({
    datasetId: installed.datasetId,
    read: () => ownStore.cells.cursors(),
    findEntry: (entryId) => ownStore.ledgerEntries.find(entryId),
    serverOf: (cell) => nodes.of(cell).serverId,
    onError: () => metrics.storeErrors.inc({ store: 'postgres' }),
    onAwaited: (cell) => events.emit('CommitAwaited', { cell }),
    onConfirmed: () => {},
  });
  events.on('CursorAdvanced', ({ lease, cursor }) => confirmations.advance(lease.cell, lease.token, cursor));
  const adjuster = new Adjuster({
    store: ownStore,
    cells: workerCells(parts, confirmations),
    newestInOutbox: (cell) => nodes.cell(cell).newestInOutbox(),
    confirmations,
    waitsForLedger: true,
    deadlineMs: config.SPIN_DEADLINE_MS,
    onError: (error, cell) => {
      metrics.storeErrors.inc({ store: 'redis' });
      log.warn({ err: error, cell }, 'no response from a store to an adjustment');
    },
  });
  return new RaffleVoids({ sql, nodes, adjuster, spinIds, events, onFailpoint });
}

export async function startWorker(parts: RoleParts): Promise<void> {
  const { config, log, services, events, metrics } = parts;
  const { sql, flushSql, nodes, catalog, installed, registry } = parts;
  const threads = openThreads(join(config.workersDir, 'makeBlock.js'), config.BLOCK_WORKERS);
  await services.add(closing('block threads', () => threads.destroy()));

  const onFailpoint = armFailpoint(config.FAILPOINT);
  const spinIds = new SpinIds(installed.spinIdKey);
  const openReader = (node: RedisNode): OutboxReader =>
    new OutboxReader(node, nodes, () => metrics.storeErrors.inc({ store: 'redis' }));
  const committedIds = new CommittedRequestIds();
  const flusher = new Flusher(flushSql, nodes, openReader, {
    intervalMs: config.constants.flushIntervalMs,
    isAwaited: config.ACK === 'ledger',
    largeWinThreshold: (partnerId) => catalog.largeWinThreshold(partnerId),
    eventsOf: {
      ofWins: (wins) =>
        largeWinEvents(spinIds, catalog, wins, (gameId, shoeIndex) => findDeal(sql, gameId, shoeIndex)),
      ofAdjustment: (adjustment) => ({
        event: 'player.adjusted',
        partnerId: adjustment.partnerId,
        createdAt: new Date(entryTimeMs(adjustment.entryId)),
        data: adjustmentData(spinIds, adjustment),
      }),
    },
    committedIds,
    events,
    onFailpoint,
  });
  const { problem, knownOutside, leased } = await openPosition(parts);
  const { publicLog, copies, hasQuorum, problem: logProblem } = await openPublicLog(parts, onFailpoint);
  const ownership = openOwnership({
    sql,
    nodes,
    events,
    onFailpoint,
    isVolatileServed: config.allowVolatileRedis,
    readsFormat: () => registry.problem === undefined,
    clocks: parts.clocks,
    problem: () => logProblem() ?? problem(),
    knownOutside,
    drain: (lease, token) => drain(flusher, nodes.cell(lease.cell), lease, token),
  });
  const keeper = new BlockKeeper(limited(sql, BLOCK_CONNECTIONS_MAX), nodes, threads, {
    gamesOfCell: (cell) => catalog.gamesOfCell(cell),
    minReadyBlocks: (partnerId) => catalog.minReadyBlocks(partnerId),
    sealer: join(config.workersDir, 'sealRaffle.js'),
    shoemaker: join(config.workersDir, 'makeShoes.js'),
    reserveSeconds: hasQuorum ? RESERVE_WITH_QUORUM_S : RESERVE_S,
    blocksAtOnce: hasQuorum ? BLOCKS_AT_ONCE : 1,
    leased,
    events,
    onFailpoint,
    ...openRotations(parts),
    published: () => publicLog.published(),
  });
  const cleanup = new Cleanup(nodes, () => ownership.cells, events);
  const release = openSegmentRelease(parts, committedIds, onFailpoint);
  const judging = new RtpJudging(parts.ownStore);
  const settlements = new SettlementReports({ store: parts.ownStore, nodes, events, clocks: parts.clocks });
  const settlement = new SettlementJob(settlements, {
    cron: config.SETTLEMENT_CRON,
    everyMs: config.constants.settlementTurnMs,
    events,
    judging,
  });
  const deliverer = openDeliverer(parts);
  const { mailer, notices } = openNotices(parts, settlement);
  const totals = new CommittedTotals((cells) => committedTotals(sql, cells));
  const unservedCells = new UnservedCells(events);
  const moves = new PartnerMover({ sql, nodes, events, onFailpoint });
  const voids = openRaffleVoids(parts, spinIds, onFailpoint);
  const playerStatuses = openPlayerStatuses(parts);
  await listenForWork(parts, { ownership, keeper, flusher });
  const writing = { nodes, ownership, flusher, keeper, cleanup, release, moves, voids, playerStatuses };
  subscribeWorker(events, { ...writing, totals, deliverer, mailer, datasetId: parts.installed.datasetId });
  registerWorkerMetrics({
    config,
    metrics,
    events,
    sql,
    nodes,
    catalog,
    ownership,
    keeper,
    totals,
    release,
    unservedCells,
    threads,
    settlement,
    deliverer,
  });

  // At a stop, the services of this group end in order: first refunds, moves and block production, then the
  // ledger flush, and last the release of the cells to other workers.
  const writers = new ServiceGroup('cell writers', log, [
    ownership,
    flusher,
    keeper,
    moves,
    voids,
    playerStatuses,
  ]);
  const woken = { moves, voids, playerStatuses, mailer, deliverer, publicLog, copies };
  const tidying = openTidying(parts, () => ownership.cells, woken);
  const jobs = [...tidying, cleanup, release, settlement, deliverer, mailer, ...notices];
  const background = new ServiceGroup('background jobs', log, jobs, 'together');
  await services.add(new ServiceGroup('worker', log, [writers, background], 'together'));
}
