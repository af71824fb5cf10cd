/**
 * Definition of the events within the process: their names and data, but not their listeners. Metrics, log
 * lines and reacting services subscribe to them. A query, such as for a threshold or the games of a cell, is
 * no event.
 */

import type { ProgramDifference } from '../domain/programCheck.js';
import { Emitter } from '../platform/runtime/emitter.js';
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

export interface Events {
  /** A background task failed and will be tried again. */
  TaskFailed: {
    readonly task: BackgroundTask;
    readonly error: unknown;
    readonly cell?: number;
    readonly gameId?: number;
  };

  /** An upgrade was finished: shared data is written in this format from now on. */
  FormatChanged: { readonly format: number };
  /** An upgrade was finished to a format that this build can't read. */
  FormatUnreadable: { readonly reason: string };

  /** Some running processes seal with another key than this process. */
  KeysDiffer: { readonly processes: string };
  /** All running processes seal with this process's key, and nothing is sealed with another key. */
  KeysReplaced: Record<string, never>;

  /** A transaction committed the entries of a cell after `from`, up to and including `to`. */
  LedgerCommitted: {
    readonly cell: number;
    readonly from: bigint;
    readonly to: bigint;
    readonly games: readonly CommittedGameTotals[];
    readonly rounds: readonly RoundEntry[];
    readonly entries: number;
    /** Age of the oldest committed entry at its commit, in seconds. */
    readonly lagSeconds: number;
  };
  /** Records of the public log were appended in one transaction. */
  LogAppended: { readonly records: number; readonly seconds: number };
  /** The result of a witness of the public log has changed. `problem` says why it did not cosign. */
  WitnessChanged: {
    readonly witness: string;
    readonly result: 'cosigned' | 'overtaken' | 'refused' | 'failed';
    readonly problem: string | undefined;
  };
  /**
   * The public log does not contain a tree that has this installation's signature, so nothing is appended any
   * more.
   */
  LogHalted: {
    readonly reason: string;
    /**
     * Whether outcomes that a published checkpoint covers are still dealt. False if the difference was found
     * at a start, because this database may have been restored to an older state.
     */
    readonly isDealing: boolean;
  };
  /** The outcomes of blocks that were exhausted long ago have been removed. */
  OutcomesRemoved: { readonly blocks: number };
  /** A transaction of the ledger was committed, with entries of `cells` cells. */
  FlushCommitted: { readonly cells: number; readonly seconds: number };
  /** Every entry of the cell up to the cursor is in the ledger. */
  CursorAdvanced: { readonly lease: CellLease; readonly cursor: bigint };
  /** The ledger has committed the outcomes of these games up to an index. */
  OutcomesConsumed: { readonly cell: number; readonly games: readonly Consumption[] };
  /**
   * A commit whose reply was lost has moved the cursor. This process does not know which outcomes that commit
   * consumed.
   */
  CommitFoundLater: { readonly cell: number };
  /** Somebody waits for a commit of the cell, which any worker may own. */
  CommitAwaited: { readonly cell: number };
  /** This worker's flusher stopped writing the cell on its own. */
  CellAbandoned: { readonly cell: number };
  /**
   * The ledger of a cell contradicts its outbox. Nothing of the cell is committed or dealt until an operator
   * decides.
   */
  CellHalted: { readonly cell: number; readonly reason: string };
  CommunalEventsCommitted: { readonly events: readonly Pick<CommittedEvent, 'tierLevel' | 'status'>[] };
  /** Events for webhooks were committed, with this number of deliveries. */
  EventsRecorded: { readonly deliveries: number };

  /** This worker leased the cell and Redis agrees with the ledger, so the cell may be written. */
  CellAcquired: { readonly lease: CellLease };
  CellLost: { readonly cell: number };
  /** Transactions that held cells were ended because their processes were paused. */
  StalledSessionsEnded: { readonly sessions: number };
  /**
   * Redis has data of the cell that needs a decision by an operator. The event is emitted at every attempt to
   * prepare the cell.
   */
  CellRefused: { readonly cell: number; readonly reason: string };
  /** Redis has lost data of a cell, so the cell is rebuilt from the ledger. */
  RebuildStarted: {
    readonly cell: number;
    readonly reason: string;
    /** Whether a replica was promoted, so that only the missing data is written. */
    readonly isRepair: boolean;
  };
  RebuildFailed: { readonly cell: number };
  CellRebuilt: {
    readonly cell: number;
    readonly isRepair: boolean;
    /** Number of outcomes voided because nobody knows whether they were dealt. */
    readonly voided: number;
    readonly players: number;
    readonly requests: number;
    readonly seconds: number;
  };
  /**
   * The program's files or its packages were compared with the build's manifest. `manifest` is null if there
   * is none.
   */
  ProgramChecked: {
    readonly part: 'program' | 'packages';
    readonly manifest: string | null;
    readonly files: number;
    readonly differing: number;
    readonly differences: readonly ProgramDifference[];
  };
  /**
   * A cell began another epoch, and spins that this process had answered are neither in Redis nor in the
   * ledger. The lost spins are recorded.
   */
  SpinsLost: {
    readonly cell: number;
    readonly epoch: string;
    readonly spins: number;
    /** Number of further answered spins that may be lost. This process no longer has their ids. */
    readonly notRemembered: number;
  };
  /** Request ids were written to runs, so Redis may release them. */
  RunWritten: { readonly ids: number; readonly seconds: number };
  /** A partner has moved, so its games are now dealt in another cell. */
  PartnerMoved: {
    readonly partnerId: number;
    readonly fromCell: number;
    readonly toCell: number;
    readonly players: number;
    /** Time for which nothing was dealt for the partner, in seconds. */
    readonly stoppedSeconds: number;
    readonly seconds: number;
  };
  /** The move of a partner failed too often. The partner stays in its cell. */
  PartnerMoveAbandoned: { readonly partnerId: number; readonly toCell: number; readonly reason: string };
  /** A ticket of a voided raffle was refunded, or can't be refunded. */
  TicketRefunded: { readonly result: 'refunded' | 'failed' };
  PlayersCheckpointed: { readonly players: number; readonly seconds: number };

  /**
   * A copy outside the database, which Postgres has on record, was not found at a start or can't be read, so
   * nothing is dealt.
   */
  OutsideCopyMissing: { readonly setting: string; readonly reason: string };
  /**
   * A copy outside the database, which this process had found or made, has disappeared or can't be read any
   * more. The process makes it again.
   */
  OutsideCopyVanished: {
    readonly setting: string;
    readonly path: string;
    /** Why it can't be read; undefined if it has disappeared. */
    readonly damage?: string | undefined;
  };
  /** The position file is ahead of Postgres, or names another database, so nothing is dealt. */
  StoresRestored: { readonly reason: string };
  /**
   * A command was refused because the clock of Redis, or the cell's newest entry, differs too much from this
   * process's clock. `skewMs` is the time by which it is ahead of this process; a negative value means that
   * it is behind.
   */
  ClockRefused: { readonly cell: number; readonly skewMs: number };

  CellsAdded: { readonly cells: readonly number[] };
  /** The catalog has read that a partner has moved to another cell. */
  PartnerChangedCell: { readonly partnerId: number; readonly fromCell: number; readonly toCell: number };
  GamesChanged: { readonly games: readonly CatalogGame[] };
  VersionEndsChanged: Record<never, never>;
  /** The catalog can't be read any more. Its present content stays in use. */
  CatalogStale: { readonly error: unknown };
  /** The catalog was read, and its state is to be announced to the other processes. */
  CatalogRead: CatalogState;
  /**
   * The catalog was read, and with it the data format that all processes write. `beganAtMs` is the time at
   * which the read began, on the scale of performance.now().
   */
  FormatRead: { readonly format: number; readonly beganAtMs: number };
  /** The catalog has read a change that revokes or restricts something, such as a key or a game. */
  RestrictionRead: Record<never, never>;
  /** The catalog can be read again. */
  CatalogRecovered: Record<never, never>;
  BlockMade: {
    readonly gameId: number;
    readonly outcomes: number;
    /** Duration of making the block in the thread, in seconds. */
    readonly makeSeconds: number;
    readonly totalSeconds: number;
  };

  SettlementReportMade: {
    readonly partnerId: number;
    /** UTC day of the settlement report, YYYY-MM-DD. */
    readonly reportDate: string;
    readonly revision: number;
    readonly status: string;
    readonly integrityHash: string;
  };
  /**
   * A due settlement report could not be made and will be tried again. Without `date`, the due reports could
   * not be determined.
   */
  SettlementFailed: { readonly error: unknown; readonly partnerId?: number; readonly date?: string };

  DeliveryAttempted: {
    readonly deliveryId: string;
    readonly webhookId: number;
    readonly event: string;
    /** Number of the delivery attempt, from 1. */
    readonly attempt: number;
    readonly result: 'delivered' | 'failed' | 'exhausted';
    /** HTTP status of the webhook's response. Null if there was none. */
    readonly responseStatus: number | null;
    readonly error: string | null;
    readonly seconds: number;
  };

  EmailAttempted: {
    readonly deliveryId: string;
    readonly event: string;
    readonly attempt: number;
    readonly result: 'sent' | 'failed' | 'exhausted';
    readonly error: string | null;
  };
  /** The ledger has no partition for tomorrow, and none could be made. */
  PartitionsMissing: Record<never, never>;

  /** E-mails can't be sent because SMTP_URL is not set. */
  EmailsLeftUnsent: { readonly emails: number };

  /**
   * There is a new list of the Redis settings that put acknowledged data at risk. An empty list means that
   * Redis keeps everything it acknowledges.
   */
  DurabilityChanged: { readonly volatile: readonly string[] };
  /** There is a new list of the Postgres settings that put committed data at risk. */
  PostgresDurabilityChanged: { readonly volatile: readonly string[] };
  /**
   * The list of settings of the replicas that risk data acknowledged under ACK=replica has changed. Each
   * setting is preceded by the replica's address.
   */
  ReplicaDurabilityChanged: { readonly volatile: readonly string[] };
}

export type EventEmitter = Emitter<Events>;

export const newEvents = (onHandlerError: (error: unknown, event: string) => void): EventEmitter =>
  new Emitter<Events>(onHandlerError);

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
