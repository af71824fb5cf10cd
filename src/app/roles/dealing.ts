/**
 * Connects the front end to the cells: their commands, the wait for the ledger after a command, and
 * adjustments of balances.
 */

import type { Services } from '../../api/server/services.js';
import type { SpinIds } from '../../domain/spinId.js';
import { Adjuster } from '../../engine/cells/adjuster.js';
import { AnsweredIds } from '../../engine/cells/answeredIds.js';
import { AnsweredSpins } from '../../engine/cells/answeredSpins.js';
import { AnsweredWatermarks } from '../../engine/cells/answeredWatermarks.js';
import { CellClient } from '../../engine/cells/cellClient.js';
import { Confirmations } from '../../engine/cells/confirmations.js';
import { DEAL, dealOperation } from '../../engine/cells/deal.js';
import { ExhaustedWindows } from '../../engine/cells/exhaustedWindows.js';
import { forceOutcome } from '../../engine/cells/forceOutcome.js';
import { MovedPartners } from '../../engine/cells/movedPartners.js';
import { PlayerBlocking } from '../../engine/cells/playerBlocking.js';
import { rotate } from '../../engine/cells/rotate.js';
import { type CellStations, SpinPath } from '../../engine/cells/spinPath.js';
import { SpinRules } from '../../engine/cells/spinRules.js';
import { PotKeeper } from '../../engine/communal/potKeeper.js';
import { endSale } from '../../engine/raffles/endSale.js';
import { ClockError, LacksError } from '../../engine/redis/scriptErrors.js';
import { FilterMemoryError, filterMegabytesByDefault } from '../../engine/requestIds/filterMemory.js';
import { RequestIds } from '../../engine/requestIds/requestIds.js';
import { closing } from '../../platform/runtime/service.js';
import { SetupError } from '../embedded/index.js';
import type { RoleParts } from './parts.js';

const FILTERS_EVERY_MS = 1000;
/** Maximum number of requests waiting for one cell: half a second at full speed. */
const WAITING_MAX = 10_000;
/** Maximum number of spins in a script call, so that no call occupies Redis for long. */
const BATCH_MAX = 128;

/**
 * Opens the filters of request ids that Redis has released. The filters are read before anything is dealt.
 */
async function openRequestIds(parts: RoleParts): Promise<RequestIds> {
  const { config, ownStore, store, log, metrics, services, catalog } = parts;
  const onError = (error: unknown): void => {
    metrics.storeErrors.inc({ store: 'postgres' });
    log.warn({ err: error }, 'failed to read the request id filters from Postgres');
  };
  const everyMs = Math.min(FILTERS_EVERY_MS, config.REQUEST_ID_WINDOW_S * 250);
  const shareMegabytes = (): number => filterMegabytesByDefault() / config.processes.frontEnds;
  const filterBytesMax = (config.REQUEST_FILTERS_MAX_MB ?? shareMegabytes()) * 1e6;
  const newestVersion = (): string => catalog.runsVersion;
  const ids = new RequestIds({ runs: ownStore, store, filterBytesMax, newestVersion, everyMs, onError });
  return services.add(ids).catch((error: unknown) => {
    throw error instanceof FilterMemoryError ? new SetupError(error.message) : error;
  });
}

/**
 * Spins that this process has answered, by newest entry and by id. An older copy of Redis or a promoted
 * replica may lack them.
 */
interface Answered {
  readonly ids: AnsweredIds;
  readonly marks: AnsweredWatermarks;
  readonly spins: AnsweredSpins;
}

/**
 * Opens the records of answered spins. No records are kept if Redis may lose acknowledged data, because that
 * configuration accepts such losses.
 */
async function openAnswered({
  config,
  store,
  catalog,
  events,
  services,
}: RoleParts): Promise<Answered | undefined> {
  if (config.allowVolatileRedis) return undefined;
  const ids = new AnsweredIds();
  const marks = await services.add(new AnsweredWatermarks({ answered: ids, store, events }));
  const spins = await services.add(
    new AnsweredSpins({ store, events, epochOf: (cell) => catalog.epochOf(cell) }),
  );
  return { ids, marks, spins };
}

/**
 * Starts to receive confirmations of commits. The worker of this process reports its commits directly, and
 * other workers report theirs through Redis. If Redis is silent, the commits are read from Postgres.
 */
async function openConfirmations(parts: RoleParts, answered: Answered | undefined): Promise<Confirmations> {
  const { log, services, nodes, catalog, metrics, events, ownStore } = parts;
  const { datasetId } = parts.installed;
  const confirmations = new Confirmations({
    datasetId,
    // Confirmations use the background pool, so that requests of partners that take all request connections
    // can't delay them.
    read: () => ownStore.cells.cursors(),
    findEntry: (entryId) => ownStore.ledgerEntries.find(entryId),
    serverOf: (cell) => nodes.of(cell).serverId,
    onAwaited: (cell) => events.emit('CommitAwaited', { cell }),
    onConfirmed: (seconds) => metrics.ackSeconds.observe(seconds),
    onError: (error) => {
      metrics.storeErrors.inc({ store: 'postgres' });
      log.warn({ err: error }, 'Postgres is not responding, spins are waiting for commit');
    },
  });
  if (!parts.config.roles.worker)
    events.on('CommitAwaited', ({ cell }) => nodes.announceAwaited({ cell, datasetId }));
  // Commits of this process are confirmed directly, before Redis has synced and announced them.
  const advance = (cell: number, epoch: string, cursor: bigint): void => {
    confirmations.advance(cell, epoch, cursor);
    answered?.marks.booked(cell, epoch, cursor);
    answered?.spins.booked(cell, epoch, cursor);
  };
  events.on('CursorAdvanced', ({ lease, cursor }) => advance(lease.cell, lease.token, cursor));
  const onStrange = strangeMessages(log);
  const listening = await nodes.listenForCommits(
    () => catalog.epochs.keys(),
    ({ cell, epoch, cursor }) => advance(cell, epoch, cursor),
    (error) => {
      metrics.storeErrors.inc({ store: 'redis' });
      onStrange(error);
    },
  );
  events.on('CellsAdded', listening.subscribe);
  await services.add(closing('Redis subscriptions', listening.end));
  return confirmations;
}

const STRANGE_SAID_EVERY_MS = 60_000;

/**
 * Logs at most once a minute that a received message is invalid. It may come from an incompatible version or
 * from another program.
 */
function strangeMessages(log: RoleParts['log']): (error: Error) => void {
  let saidAt = Number.NEGATIVE_INFINITY;
  return (error) => {
    const now = performance.now();
    if (!(error.cause instanceof RangeError) || now - saidAt < STRANGE_SAID_EVERY_MS) return;
    saidAt = now;
    log.warn({ err: error.cause }, 'ignoring malformed pub/sub message');
  };
}

/** Opens the script calls of ACK=replica, which wait until the replicas have the data, and counts them. */
function openReplication({ nodes, scripts, metrics }: RoleParts): NonNullable<CellStations['replication']> {
  const counts = { acknowledged: 0, late: 0 };
  metrics.counters(
    'spindle_replica_waits_total',
    'Calls that waited for replicas, by result: acknowledged (every replica of the node had the writes) or late (the call then waited for the ledger)',
    () => Object.entries(counts).map(([result, value]) => ({ labels: { result }, value })),
  );
  metrics.gauge(
    'spindle_replicas_volatile',
    'Number of replica settings that allow the loss of acknowledged writes; spins of these replicas wait for the ledger',
    () => nodes.all.reduce((sum, { volatileReplicas }) => sum + volatileReplicas.length, 0),
  );
  return {
    replicated: async (operation, call) => {
      const reply = await scripts.replicated(operation, call);
      counts[reply.isReplicated ? 'acknowledged' : 'late']++;
      return reply;
    },
    isCurrent: (cell) => nodes.of(cell).isReplicating,
  };
}

function openObserver(
  { metrics, events, log }: RoleParts,
  answered: Answered | undefined,
): CellStations['observer'] {
  return {
    onCall: (operation, size, seconds) => {
      if (operation === DEAL) metrics.batch(size, seconds);
    },
    onError: (error, cell, size) => {
      if (error instanceof ClockError) {
        events.emit('ClockRefused', { cell, skewMs: error.skewMs });
        return;
      }
      if (error instanceof LacksError) answered?.marks.lacks(cell);
      metrics.storeErrors.inc({ store: 'redis' });
      log.warn({ err: error, cell, size }, 'call to a cell failed');
    },
  };
}

/**
 * Connects the stages of a spin in order (src/engine/cells/spinPath.ts).
 * @param isVolatile returns whether the Redis of a cell may lose acknowledged data, so that the cell must not
 * be served
 */
export async function openDealing(parts: RoleParts, spinIds: SpinIds, isVolatile: (cell: number) => boolean) {
  const { config, nodes, scripts, catalog, registry, staleness, store } = parts;
  const deadlineMs = config.SPIN_DEADLINE_MS;
  const answered = await openAnswered(parts);
  const confirmations = await openConfirmations(parts, answered);
  const requestIds = await openRequestIds(parts);
  const cells = new CellClient({
    permission: { maySend: (cell) => registry.problem === undefined && !isVolatile(cell) },
    epochs: catalog,
    servers: nodes,
    requestIds,
    scripts,
    ...(config.ACK === 'replica' ? { replication: openReplication(parts) } : {}),
    ...(answered === undefined ? {} : { answered: answered.ids }),
    confirmations,
    observer: openObserver(parts, answered),
    limits: { deadlineMs, waitingMax: WAITING_MAX },
  });
  nodes.onChanged(() => cells.regroup());
  const exhausted = new ExhaustedWindows();
  const deal = dealOperation(spinIds, BATCH_MAX, exhausted, requestIds, answered?.spins);
  const spinPath = new SpinPath(staleness, exhausted, cells, deal, deadlineMs);
  const moved = new MovedPartners(catalog, requestIds, deadlineMs);
  const rules = new SpinRules({
    catalog,
    freshness: staleness,
    faults: [parts.program, registry],
    store,
    spinIds,
    nodes,
    confirmations,
    moved,
    requestIds,
    ack: config.ACK,
    deadlineMs,
  });
  const operating = openOperating(parts, cells, confirmations);
  return { cells, spinPath, rules, operating, confirmations, requestIds, moved };
}

/** Opens the operations that requests of operators and testers run in cells. */
function openOperating(
  { config, log, nodes, metrics, operatorStore: store }: RoleParts,
  cells: CellClient,
  confirmations: Confirmations,
): Omit<Services['cells'], 'confirmations' | 'reads' | 'views'> {
  const options = {
    store,
    cells,
    confirmations,
    newestInOutbox: (cell: number) => nodes.cell(cell).newestInOutbox(),
    waitsForLedger: config.ACK === 'ledger',
    deadlineMs: config.SPIN_DEADLINE_MS,
  };
  const onError =
    (message: string) =>
    (error: unknown, cell: number): void => {
      metrics.storeErrors.inc({ store: 'redis' });
      log.warn({ err: error, cell }, message);
    };
  return {
    adjuster: new Adjuster({ ...options, onError: onError('no response from a store to an adjustment') }),
    playerBlocking: new PlayerBlocking({ store, cells, deadlineMs: config.SPIN_DEADLINE_MS }),
    pots: new PotKeeper({
      ...options,
      onError: onError('no response from a store to a change of a communal progressive'),
    }),
    forceOutcome: (wanted) => forceOutcome(cells, wanted),
    endSale: (gameId) => endSale(cells, store.raffles, gameId, config.SPIN_DEADLINE_MS),
    rotate: (wanted) => rotate(cells, store.rotations, wanted, config.SPIN_DEADLINE_MS),
  };
}
