/**
 * The events within the process: the data of each, its line in the log (docs/operations.md, "The log") and
 * its metrics. Services that react subscribe on their own (src/app/roles/reactions.ts). The spin path emits
 * no events.
 */

import type { Logger } from 'pino';
import { TIERS_MAX } from '../domain/communal.js';
import type { ProgramDifference } from '../domain/programCheck.js';
import { Job, type Period } from '../platform/runtime/periodicService.js';
import type { RoundEntry } from './blackjack/rounds.store.js';
import type { CatalogGame, CatalogState } from './catalog/catalog.store.js';
import type { GameTotals } from './catalog/games.store.js';
import type { CellLease } from './cells/cells.store.js';
import type { CommittedEvent } from './communal/communalFlush.store.js';

/** `spins` is a number if the totals are those of one flush. */
export type CommittedGameTotals = Omit<GameTotals, 'spins'> & { readonly spins: number | bigint };

/** Progress of a game in a flush: its next index is `nextIndex` now, after `count` dealt outcomes. */
export interface Consumption {
  readonly gameId: number;
  readonly nextIndex: number;
  readonly count: number;
}

/**
 * Background work that is repeated until it succeeds, with the store that it depends on (the label of
 * `spindle_store_errors_total`).
 */
export const STORE_OF_TASK = {
  flush: 'ledger',
  'ledger partition': 'ledger',
  'partner move': 'ledger',
  'cell lease renewal': 'ledger',
  'stalled transaction check': 'ledger',
  'cell preparation': 'ledger',
  'block replenishment': 'blocks',
  cleanup: 'redis',
  'traffic statistics': 'postgres',
  'player checkpoint': 'postgres',
  'request id release': 'postgres',
  'round timeout': 'postgres',
  'player statuses': 'postgres',
  'raffle void': 'postgres',
  'work discovery': 'postgres',
  'lost spin record': 'postgres',
  'answered entries': 'postgres',
  'position file': 'position file',
  'public log': 'postgres',
  'public log cosigning': 'postgres',
  'public log verification': 'redis',
  'public log copy': 'log copies',
  'outcome removal': 'postgres',
  'audit anchor': 'postgres',
  'ledger storage': 'postgres',
  'day completeness check': 'redis',
  'webhook delivery': 'postgres',
  'game status notices': 'postgres',
  'webhook retention': 'postgres',
  'API key expiry check': 'postgres',
  'API sunset reminder': 'postgres',
  'e-mail delivery': 'postgres',
  'overdue settlement notice': 'postgres',
  'RTP judgement': 'postgres',
  'process registry': 'postgres',
  'key replacement': 'postgres',
  'program check': 'postgres',
  'significant event record': 'postgres',
} as const;
export type BackgroundTask = keyof typeof STORE_OF_TASK;

type Labels = Record<string, string | number>;
interface Count {
  inc(by?: number): void;
  inc(labels: Labels, by?: number): void;
}
/** The metrics that events change. src/app/metrics/metrics.ts registers those with a name of their own. */
type EventMetrics = Readonly<
  Record<'blockOutcomes' | 'blockPoolSeconds' | 'clockRefusals' | 'flushEntries' | 'outcomesVoided', Count> &
    Record<'settlementFaults' | 'settlementReports' | 'storeErrors' | 'webhookAttempts', Count> &
    Record<'blockMakeSeconds' | 'flushLagSeconds' | 'flushSeconds', { observe(seconds: number): void }> &
    Record<'recoverySeconds' | 'webhookAttemptSeconds', { observe(seconds: number): void }> &
    Record<'postgresVolatile' | 'redisVolatile', { set(value: number): void }> & {
      recoveriesUnderWay: { inc(): void; dec(): void };
      /** Registers a counter whose time series are 0 from the start. */
      counted(name: string, help: string, series?: readonly Labels[]): Count;
    }
>;

/** Stores that may be volatile because the configuration allows it. */
interface AllowedVolatile {
  readonly allowVolatileRedis: boolean;
  readonly allowVolatilePostgres: boolean;
}

/**
 * Minimum time between two log lines about a wrong clock, in ms. Every batch is refused while the clock is
 * wrong.
 */
const CLOCK_TOLD_EVERY_MS = 60_000;

const byResult = (...results: string[]): Labels[] => results.map((result) => ({ result }));

/** An event that is not logged. Only workers may count it. */
const silent =
  <Data>() =>
  (_: Data): void => {};

/** All events, named in the past tense. The parameter of an event is its data. */
function eventTable(log: Logger, metrics: EventMetrics, allowed: AllowedVolatile) {
  const moves = metrics.counted(
    'spindle_partner_moves_total',
    'Partner moves that this process finished, by result: moved, given_up (abandoned)',
    byResult('moved', 'given_up'),
  );
  const moveStoppedSeconds = metrics.counted(
    'spindle_partner_move_stopped_seconds_total',
    'Total time for which dealing was stopped for partners that moved, in seconds',
  );
  const refunds = metrics.counted(
    'spindle_raffle_refunds_total',
    'Tickets of voided raffles that this process handled, by result: refunded, failed (the refund is impossible)',
    byResult('refunded', 'failed'),
  );
  const lostSpins = metrics.counted(
    'spindle_lost_spins_total',
    'Spins answered by this process that a failover to a replica lost (table lost_spins)',
  );
  const emails = metrics.counted(
    'spindle_emails_total',
    'E-mails, by result: sent, failed (one attempt), exhausted (the last attempt), unsent (SMTP_URL is not set)',
    byResult('sent', 'failed', 'exhausted', 'unsent'),
  );
  const communalEvents = metrics.counted(
    'spindle_communal_events_total',
    'Events of communal progressives that this process committed, by tier level and status',
    Array.from({ length: TIERS_MAX }, (_, i) =>
      ['PAID', 'SKIPPED_BUDGET'].map((status) => ({ tier: i + 1, status })),
    ).flat(),
  );
  /** Cells whose refusal is in the log. Every attempt to prepare such a cell is refused again. */
  const refusedCells = new Set<number>();
  const differingParts = new Set<string>();
  let clockToldAtMs = Number.NEGATIVE_INFINITY;

  return {
    /** A background task failed and will be tried again. */
    TaskFailed(failed: { task: BackgroundTask; error: unknown; cell?: number; gameId?: number }) {
      const { task, error, ...about } = failed;
      metrics.storeErrors.inc({ store: STORE_OF_TASK[task] });
      log.warn({ err: error, ...about }, `${task} failed, will retry`);
    },

    /** An upgrade was finished: shared data is written in this format from now on. */
    FormatChanged: (changed: { format: number }) =>
      log.warn(changed, 'upgrade finished, writing the new data format'),
    /** An upgrade was finished to a format that this build can't read. */
    FormatUnreadable: (found: { reason: string }) =>
      log.error(found, 'stored data format is newer than this version supports, dealing stopped'),

    /** Some running processes seal with another key than this process. */
    KeysDiffer: (others: { processes: string }) =>
      log.warn(others, 'other processes encrypt with a different key'),
    /** All running processes seal with this process's key, and nothing is sealed with another key. */
    KeysReplaced: () => log.warn('key replacement completed, all processes use the new key'),

    /** A transaction committed the entries of a cell after `from`, up to and including `to`. */
    LedgerCommitted(flush: {
      cell: number;
      from: bigint;
      to: bigint;
      games: readonly CommittedGameTotals[];
      rounds: readonly RoundEntry[];
      entries: number;
      /** Age of the oldest committed entry at its commit, in seconds. */
      lagSeconds: number;
    }) {
      metrics.flushEntries.inc(flush.entries);
      metrics.flushLagSeconds.observe(flush.lagSeconds);
    },
    /** Records of the public log were appended in one transaction. */
    LogAppended: silent<{ records: number; seconds: number }>(),
    /** The result of a witness of the public log has changed. `problem` says why it did not cosign. */
    WitnessChanged(witness: {
      witness: string;
      result: 'cosigned' | 'overtaken' | 'refused' | 'failed';
      problem: string | undefined;
    }) {
      const { result, ...changed } = witness;
      if (result === 'cosigned') log.warn(changed, 'witness cosigns the public log again');
      else log.warn({ ...changed, result }, 'witness did not cosign the public log, will retry');
    },
    /**
     * The public log does not contain a tree that has this installation's signature, so nothing is appended
     * any more.
     */
    LogHalted(halted: {
      reason: string;
      /**
       * Whether outcomes that a published checkpoint covers are still dealt. False if the difference was
       * found at a start, because this database may have been restored to an older state.
       */
      isDealing: boolean;
    }) {
      const { reason, isDealing } = halted;
      if (isDealing) log.fatal({ reason }, 'public log halted, no records are appended');
      else log.fatal({ reason }, 'public log is older than its published copies, dealing stopped');
    },
    /** The outcomes of blocks that were exhausted long ago have been removed. */
    OutcomesRemoved: silent<{ blocks: number }>(),
    /** A transaction of the ledger was committed, with entries of `cells` cells. */
    FlushCommitted: ({ seconds }: { cells: number; seconds: number }) =>
      metrics.flushSeconds.observe(seconds),
    /** Every entry of the cell up to the cursor is in the ledger. */
    CursorAdvanced: silent<{ lease: CellLease; cursor: bigint }>(),
    /** The ledger has committed the outcomes of these games up to an index. */
    OutcomesConsumed: silent<{ cell: number; games: readonly Consumption[] }>(),
    /**
     * A commit whose reply was lost has moved the cursor. This process does not know which outcomes that
     * commit consumed.
     */
    CommitFoundLater: silent<{ cell: number }>(),
    /** Somebody waits for a commit of the cell, which any worker may own. */
    CommitAwaited: silent<{ cell: number }>(),
    /** This worker's flusher stopped writing the cell on its own. */
    CellAbandoned: silent<{ cell: number }>(),
    /**
     * The ledger of a cell contradicts its outbox. Nothing of the cell is committed or dealt until an
     * operator decides.
     */
    CellHalted: (halted: { cell: number; reason: string }) => log.fatal(halted, 'cell halted'),
    CommunalEventsCommitted({ events }: { events: readonly Pick<CommittedEvent, 'tierLevel' | 'status'>[] }) {
      for (const { tierLevel, status } of events) communalEvents.inc({ tier: tierLevel, status });
    },
    /** Events for webhooks were committed, with this number of deliveries. */
    EventsRecorded: silent<{ deliveries: number }>(),

    /** This worker leased the cell and Redis agrees with the ledger, so the cell may be written. */
    CellAcquired({ lease: { cell } }: { lease: CellLease }) {
      if (refusedCells.delete(cell)) log.warn({ cell }, 'cell back in service');
    },
    CellLost: (lost: { cell: number }) => log.info(lost, 'cell released'),
    /** Transactions that held cells were ended because their processes were paused. */
    StalledSessionsEnded: (ended: { sessions: number }) =>
      log.error(ended, 'ended a stalled transaction that blocked a cell'),
    /**
     * Redis has data of the cell that needs a decision by an operator. The event is emitted at every attempt
     * to prepare the cell.
     */
    CellRefused(refused: { cell: number; reason: string }) {
      if (!refusedCells.has(refused.cell)) log.fatal(refused, 'cell refused');
      refusedCells.add(refused.cell);
    },
    /** Redis has lost data of a cell, so the cell is rebuilt from the ledger. */
    RebuildStarted(start: {
      cell: number;
      reason: string;
      /** Whether a replica was promoted, so that only the missing data is written. */
      isRepair: boolean;
    }) {
      const { isRepair, ...lost } = start;
      metrics.recoveriesUnderWay.inc();
      if (isRepair) log.error(lost, 'failover to a replica, repairing the cell from the ledger');
      else log.error(lost, 'Redis lost the data of a cell, rebuilding it from the ledger');
    },
    RebuildFailed: (_: { cell: number }) => metrics.recoveriesUnderWay.dec(),
    CellRebuilt(end: {
      cell: number;
      isRepair: boolean;
      /** Number of outcomes voided because nobody knows whether they were dealt. */
      voided: number;
      players: number;
      requests: number;
      seconds: number;
    }) {
      const { isRepair, ...rebuilt } = end;
      metrics.recoveriesUnderWay.dec();
      metrics.recoverySeconds.observe(rebuilt.seconds);
      metrics.outcomesVoided.inc(rebuilt.voided);
      log.error(rebuilt, isRepair ? 'cell repaired' : 'cell rebuilt');
    },
    /**
     * The program's files or its packages were compared with the build's manifest. `manifest` is null if
     * there is none.
     */
    ProgramChecked(check: {
      part: 'program' | 'packages';
      manifest: string | null;
      files: number;
      differing: number;
      differences: readonly ProgramDifference[];
    }) {
      const { differing, differences: _, ...same } = check;
      if (differing > 0) {
        differingParts.add(check.part);
        log.fatal(check, 'program files differ from the build manifest');
      } else if (differingParts.delete(check.part))
        log.warn(same, 'program files match the build manifest again');
      else log.debug(same, 'program checked');
    },
    /**
     * A cell began another epoch, and spins that this process had answered are neither in Redis nor in the
     * ledger. The lost spins are recorded.
     */
    SpinsLost(lost: {
      cell: number;
      epoch: string;
      spins: number;
      /** Number of further answered spins that may be lost. This process no longer has their ids. */
      notRemembered: number;
    }) {
      lostSpins.inc(lost.spins + lost.notRemembered);
      log.error(lost, 'acknowledged spins were lost');
    },
    /** Request ids were written to runs, so Redis may release them. */
    RunWritten: (made: { ids: number; seconds: number }) => log.debug(made, 'run of request ids written'),
    /** A partner has moved, so its games are now dealt in another cell. */
    PartnerMoved(moved: {
      partnerId: number;
      fromCell: number;
      toCell: number;
      players: number;
      /** Time for which nothing was dealt for the partner, in seconds. */
      stoppedSeconds: number;
      seconds: number;
    }) {
      moves.inc({ result: 'moved' });
      moveStoppedSeconds.inc(moved.stoppedSeconds);
      log.info(moved, 'partner moved');
    },
    /** The move of a partner failed too often. The partner stays in its cell. */
    PartnerMoveAbandoned(move: { partnerId: number; toCell: number; reason: string }) {
      moves.inc({ result: 'given_up' });
      log.error(move, 'partner move abandoned');
    },
    /** A ticket of a voided raffle was refunded, or can't be refunded. */
    TicketRefunded: ({ result }: { result: 'refunded' | 'failed' }) => refunds.inc({ result }),
    PlayersCheckpointed: (made: { players: number; seconds: number }) =>
      log.debug(made, 'player checkpoint completed'),

    /**
     * A copy outside the database, which Postgres has on record, was not found at a start or can't be read,
     * so nothing is dealt.
     */
    OutsideCopyMissing: (found: { setting: string; reason: string }) =>
      log.fatal(found, 'position file or log copy is missing or unreadable, dealing stopped'),
    /**
     * A copy outside the database, which this process had found or made, has disappeared or can't be read
     * any more. The process makes it again.
     */
    OutsideCopyVanished(gone: {
      setting: string;
      path: string;
      /** Why it can't be read; undefined if it has disappeared. */
      damage?: string | undefined;
    }) {
      if (gone.damage === undefined)
        log.error(gone, 'position file or log copy disappeared and is written again');
      else log.error(gone, 'position file or log copy was damaged and is written again');
    },
    /** The position file is ahead of Postgres, or names another database, so nothing is dealt. */
    StoresRestored: (found: { reason: string }) =>
      log.fatal(found, 'stores were restored to an older state, dealing stopped'),
    /**
     * A command was refused because the clock of Redis, or the cell's newest entry, differs too much from
     * this process's clock. `skewMs` is the time by which it is ahead of this process; a negative value
     * means that it is behind.
     */
    ClockRefused(refusal: { cell: number; skewMs: number }) {
      metrics.clockRefusals.inc();
      if (performance.now() - clockToldAtMs < CLOCK_TOLD_EVERY_MS) return;
      clockToldAtMs = performance.now();
      log.fatal(refusal, 'clock skew exceeds CLOCK_SKEW_MAX_S, dealing from the cell stopped');
    },

    CellsAdded: (added: { cells: readonly number[] }) => log.info(added, 'cells added'),
    /** The catalog has read that a partner has moved to another cell. */
    PartnerChangedCell: silent<{ partnerId: number; fromCell: number; toCell: number }>(),
    GamesChanged: silent<{ games: readonly CatalogGame[] }>(),
    VersionEndsChanged: () => {},
    /** The catalog can't be read any more. Its present content stays in use. */
    CatalogStale({ error }: { error: unknown }) {
      metrics.storeErrors.inc({ store: 'postgres' });
      log.warn({ err: error }, 'catalog refresh failed, using the cached catalog');
    },
    /** The catalog was read, and its state is to be announced to the other processes. */
    CatalogRead: silent<CatalogState>(),
    /**
     * The catalog was read, and with it the data format that all processes write. `beganAtMs` is the time at
     * which the read began, on the scale of performance.now().
     */
    FormatRead: silent<{ format: number; beganAtMs: number }>(),
    /** The catalog has read a change that revokes or restricts something, such as a key or a game. */
    RestrictionRead: () => {},
    /** The catalog can be read again. */
    CatalogRecovered: () => log.warn('catalog refresh recovered'),
    BlockMade(made: {
      gameId: number;
      outcomes: number;
      /** Duration of making the block in the thread, in seconds. */
      makeSeconds: number;
      totalSeconds: number;
    }) {
      metrics.blockOutcomes.inc(made.outcomes);
      metrics.blockPoolSeconds.inc(made.makeSeconds);
      metrics.blockMakeSeconds.observe(made.totalSeconds);
    },

    SettlementReportMade(report: {
      partnerId: number;
      /** UTC day of the settlement report, YYYY-MM-DD. */
      reportDate: string;
      revision: number;
      status: string;
      integrityHash: string;
    }) {
      metrics.settlementReports.inc({ status: report.status });
      log.info(report, 'settlement report made');
    },
    /**
     * A due settlement report could not be made and will be tried again. Without `date`, the due reports
     * could not be determined.
     */
    SettlementFailed({ error, ...day }: { error: unknown; partnerId?: number; date?: string }) {
      metrics.settlementFaults.inc();
      log.error({ err: error, ...day }, 'settlement report failed, will retry');
    },

    DeliveryAttempted(delivery: {
      deliveryId: string;
      webhookId: number;
      event: string;
      /** Number of the delivery attempt, from 1. */
      attempt: number;
      result: 'delivered' | 'failed' | 'exhausted';
      /** HTTP status of the webhook's response. Null if there was none. */
      responseStatus: number | null;
      error: string | null;
      seconds: number;
    }) {
      const { result, seconds, ...attempt } = delivery;
      metrics.webhookAttempts.inc({ result });
      metrics.webhookAttemptSeconds.observe(seconds);
      if (result === 'exhausted') log.warn(attempt, 'webhook delivery failed permanently');
      // The delivery history records each webhook attempt too. An unavailable receiver causes thousands of
      // failed attempts, so they are logged at debug level only.
      else if (result === 'failed') log.debug(attempt, 'webhook delivery attempt failed');
    },

    EmailAttempted(email: {
      deliveryId: string;
      event: string;
      attempt: number;
      result: 'sent' | 'failed' | 'exhausted';
      error: string | null;
    }) {
      const { result, ...attempt } = email;
      emails.inc({ result });
      if (result === 'exhausted') log.warn(attempt, 'e-mail delivery failed permanently');
      else if (result === 'failed') log.debug(attempt, 'e-mail delivery attempt failed');
    },
    /** The ledger has no partition for tomorrow, and none could be made. */
    PartitionsMissing: () => log.error('ledger partition for tomorrow is missing, will retry'),

    /** E-mails can't be sent because SMTP_URL is not set. */
    EmailsLeftUnsent(left: { emails: number }) {
      emails.inc({ result: 'unsent' }, left.emails);
      log.warn(left, 'e-mails are not sent because SMTP_URL is not set');
    },

    /**
     * There is a new list of the Redis settings that put acknowledged data at risk. An empty list means that
     * Redis keeps everything it acknowledges.
     */
    DurabilityChanged({ volatile }: { volatile: readonly string[] }) {
      metrics.redisVolatile.set(volatile.length > 0 ? 1 : 0);
      if (volatile.length === 0) log.warn('Redis is durable again');
      else
        log.error({ volatile, isServed: allowed.allowVolatileRedis }, 'Redis may lose acknowledged writes');
    },
    /** There is a new list of the Postgres settings that put committed data at risk. */
    PostgresDurabilityChanged({ volatile }: { volatile: readonly string[] }) {
      metrics.postgresVolatile.set(volatile.length > 0 ? 1 : 0);
      if (volatile.length === 0) log.warn('Postgres is durable again');
      else
        log.error(
          { volatile, isServed: allowed.allowVolatilePostgres },
          'Postgres may lose committed writes',
        );
    },
    /**
     * The list of settings of the replicas that risk data acknowledged under ACK=replica has changed. Each
     * setting is preceded by the replica's address.
     */
    ReplicaDurabilityChanged({ volatile }: { volatile: readonly string[] }) {
      if (volatile.length === 0) log.warn('all replicas are durable again');
      else log.warn({ volatile }, 'a replica may lose acknowledged writes, so spins wait for Postgres');
    },
  };
}

type EventTable = ReturnType<typeof eventTable>;
export type Events = {
  readonly [E in keyof EventTable]: Parameters<EventTable[E]> extends [infer Data]
    ? Readonly<Data>
    : Record<never, never>;
};
/** Calls the handlers of an event synchronously, in the order of their subscription. */
export class EventEmitter {
  readonly #handlers = new Map<keyof Events, ((data: never) => void)[]>();

  /** @param onHandlerError called when a handler throws; the other handlers are still called */
  constructor(private readonly onHandlerError: (error: unknown, event: keyof Events) => void) {}

  on<E extends keyof Events>(event: E, handler: (data: Events[E]) => void): void {
    const handlers = this.#handlers.get(event);
    if (handlers === undefined) this.#handlers.set(event, [handler]);
    else handlers.push(handler);
  }

  /** Emits an event. It never throws. */
  emit<E extends keyof Events>(event: E, data: Events[E]): void {
    for (const handler of this.#handlers.get(event) ?? []) {
      try {
        (handler as (data: Events[E]) => void)(data);
      } catch (error) {
        this.onHandlerError(error, event);
      }
    }
  }
}

/** Writes the events of the process to its log and counts them in its metrics. */
export function subscribeTable(events: EventEmitter, ...told: Parameters<typeof eventTable>): void {
  for (const [event, tell] of Object.entries(eventTable(...told)))
    events.on(event as keyof Events, tell as (data: Events[keyof Events]) => void);
}

/** Returns a handler of errors that emits `TaskFailed`. */
export const taskFailed =
  (events: Pick<EventEmitter, 'emit'>, task: BackgroundTask) =>
  (error: unknown): void =>
    events.emit('TaskFailed', { task, error });

/**
 * A background task that is a function. `TaskFailed` is emitted when it failed.
 * @param period a number is the interval, in ms
 * @param name name of the service, if it is not that of the task
 */
export const job = (
  events: Pick<EventEmitter, 'emit'>,
  task: BackgroundTask,
  period: Period | number,
  turn: (stopped: AbortSignal) => Promise<unknown>,
  name: string = task,
): Job => new Job(name, period, turn, taskFailed(events, task));
