/**
 * What happens in the process, as events: what each says, and nothing of who listens. Metrics, log lines and the services that
 * react subscribe; what is asked (a threshold, the games of a cell) is no event.
 */

import type { ProgramDifference } from '../domain/programCheck.js';
import { Emitter } from '../platform/runtime/emitter.js';
import type { RoundEntry } from './blackjack/rounds.store.js';
import type { CatalogGame, CatalogState } from './catalog/catalog.store.js';
import type { GameTotals } from './catalog/games.store.js';
import type { CellLease } from './cells/cells.store.js';
import type { CommittedEvent } from './communal/communalFlush.store.js';

/** What was booked of a game; `spins` is a number where few are told. */
export type CommittedGameTotals = Omit<GameTotals, 'spins'> & { readonly spins: number | bigint };

/** What a flush saw of a game: it is now at `nextIndex`. */
export interface Consumption {
  readonly gameId: number;
  readonly nextIndex: number;
  readonly count: number;
}

/** Work that is repeated until it succeeds. */
export type BackgroundTask =
  | 'flush'
  | 'ledger partition'
  | 'partner move'
  | 'cell lease renewal'
  | 'stalled transactions'
  | 'cell preparation'
  | 'block replenishment'
  | 'cleanup'
  | 'hours of traffic'
  | 'player checkpoint'
  | 'request id release'
  | 'round timeout'
  | 'look for work'
  | 'raffle void'
  | 'lost spins'
  | 'answered entries'
  | 'position file'
  | 'public log'
  | 'evidence of the public log'
  | 'copies of the public log'
  | 'witnesses of the public log'
  | 'outcome removal'
  | 'audit anchor'
  | 'ledger storage'
  | 'day completeness check'
  | 'RTP judgement'
  | 'game status notices'
  | 'webhook delivery'
  | 'webhook retention'
  | 'API key expiry check'
  | 'API sunset reminder'
  | 'e-mail delivery'
  | 'overdue settlement notice'
  | 'process registry'
  | 'key replacement'
  | 'program check'
  | 'significant events';

export interface Events {
  /** A background task failed and is tried again. */
  TaskFailed: {
    readonly task: BackgroundTask;
    readonly error: unknown;
    readonly cell?: number;
    readonly gameId?: number;
  };

  /** An upgrade was finished: what processes share is written in this format from now on. */
  FormatChanged: { readonly format: number };
  /** An upgrade was finished that this build does not read. */
  FormatUnreadable: { readonly reason: string };

  /** Processes run that seal with another key than this one. */
  KeysDiffer: { readonly processes: string };
  /** No such process runs any more, and nothing is sealed with another key. */
  KeysReplaced: Record<string, never>;

  /** One transaction booked the entries of a cell after `from`, up to and with `to`. */
  LedgerCommitted: {
    readonly cell: number;
    readonly from: bigint;
    readonly to: bigint;
    readonly games: readonly CommittedGameTotals[];
    /** Entries of blackjack rounds. */
    readonly rounds: readonly RoundEntry[];
    readonly entries: number;
    /** Age of the oldest entry when it was committed. */
    readonly lagSeconds: number;
  };
  /** Records were appended to the public log, in one transaction. */
  LogAppended: { readonly records: number; readonly seconds: number };
  /** A witness of the public log answers otherwise than before. `problem`: why it did not cosign. */
  WitnessChanged: {
    readonly witness: string;
    readonly result: 'cosigned' | 'overtaken' | 'refused' | 'failed';
    readonly problem: string | undefined;
  };
  /** Somebody has a tree with our signature that the public log does not contain: nothing is appended. */
  LogHalted: {
    readonly reason: string;
    /** What is covered is dealt. Not where it was found at a start: this database may be of an older state. */
    readonly isDealing: boolean;
  };
  /** Blocks that were exhausted long ago have their outcomes no more. */
  OutcomesRemoved: { readonly blocks: number };
  /** A transaction of the ledger was committed, of so many cells. */
  FlushCommitted: { readonly cells: number; readonly seconds: number };
  /** Every entry of the cell up to the cursor is in the ledger. */
  CursorAdvanced: { readonly lease: CellLease; readonly cursor: bigint };
  /** The ledger has booked these games up to an index. */
  OutcomesConsumed: { readonly cell: number; readonly games: readonly Consumption[] };
  /** A commit whose answer was lost moved the cursor: what it consumed is unknown here. */
  CommitFoundLater: { readonly cell: number };
  /** This worker's flusher writes the cell no more, though it was not told to stop. */
  CellAbandoned: { readonly cell: number };
  /** The ledger of a cell contradicts its outbox. Nothing is booked or dealt until people decide. */
  CellHalted: { readonly cell: number; readonly reason: string };
  /** Events of communal progressives were committed. */
  CommunalEventsCommitted: { readonly events: readonly Pick<CommittedEvent, 'tierLevel' | 'status'>[] };
  /** Events for webhooks were committed, with so many deliveries. */
  EventsRecorded: { readonly deliveries: number };

  /** This worker leased the cell, and Redis is what the ledger knows: the cell may be written. */
  CellAcquired: { readonly lease: CellLease };
  CellLost: { readonly cell: number };
  /** Redis holds what people must decide about; said at every try. */
  /** Transactions that held cells and whose processes stood still. */
  StalledSessionsEnded: { readonly sessions: number };
  CellRefused: { readonly cell: number; readonly reason: string };
  /** Redis lost what it held of a cell; the cell is rebuilt from the ledger. */
  RebuildStarted: {
    readonly cell: number;
    readonly reason: string;
    /** A replica has taken over: only what it lacks is written. */
    readonly isRepair: boolean;
  };
  RebuildFailed: { readonly cell: number };
  CellRebuilt: {
    readonly cell: number;
    readonly isRepair: boolean;
    /** Outcomes given up because nobody knows whether they were dealt. */
    readonly voided: number;
    readonly players: number;
    readonly requests: number;
    readonly seconds: number;
  };
  /** The program's files, or the packages beside it, were compared with the build's list; `manifest` null: there is none. */
  ProgramChecked: {
    readonly part: 'program' | 'packages';
    readonly manifest: string | null;
    readonly files: number;
    readonly differing: number;
    readonly differences: readonly ProgramDifference[];
  };
  /** Spins that this process had answered are neither in Redis nor in the ledger since a cell began another epoch; they are written down. */
  SpinsLost: {
    readonly cell: number;
    readonly epoch: string;
    readonly spins: number;
    /** More were answered, and may be lost: they are not known by name any more. */
    readonly notRemembered: number;
  };
  /** Request ids were written to runs: Redis may release them. */
  RunWritten: { readonly ids: number; readonly seconds: number };
  /** A partner is dealt for in another cell now. */
  PartnerMoved: {
    readonly partnerId: number;
    readonly fromCell: number;
    readonly toCell: number;
    readonly players: number;
    /** For how long nothing was dealt for it. */
    readonly stoppedSeconds: number;
    readonly seconds: number;
  };
  /** The move was tried too often. The partner stays where it is. */
  PartnerMoveAbandoned: { readonly partnerId: number; readonly toCell: number; readonly reason: string };
  /** A ticket of a voided raffle has its refund, or can't have one. */
  TicketRefunded: { readonly result: 'refunded' | 'failed' };
  PlayersCheckpointed: { readonly players: number; readonly seconds: number };

  /** A command was refused: the clock of Redis, or the cell's newest entry, is so far ahead of this process's (below 0: behind). */
  /** A copy outside both stores that Postgres has on record was not found at a start: nothing is dealt. */
  OutsideCopyMissing: { readonly setting: string; readonly reason: string };
  /** A copy outside both stores is gone that this process had found or made; the process makes it again. */
  OutsideCopyVanished: { readonly setting: string; readonly path: string };
  /** The position file says more than Postgres has, or names another one: nothing is dealt. */
  StoresRestored: { readonly reason: string };
  ClockRefused: { readonly cell: number; readonly skewMs: number };

  /** There are cells that there were not before. */
  CellsAdded: { readonly cells: readonly number[] };
  /** The catalog has read that a partner lives in another cell than before. */
  PartnerChangedCell: { readonly partnerId: number; readonly fromCell: number; readonly toCell: number };
  /** Games are new, or have changed. */
  GamesChanged: { readonly games: readonly CatalogGame[] };
  /** The end of an API version was announced, or moved. */
  VersionEndsChanged: Record<never, never>;
  /** The catalog can't be read any more; what is known stays known. */
  CatalogStale: { readonly error: unknown };
  /** The catalog was read, and the other processes are to learn what was found. */
  CatalogRead: CatalogState;
  /** The catalog has read that somebody may do less than before. */
  RestrictionRead: Record<never, never>;
  /** It is read again. */
  CatalogRecovered: Record<never, never>;
  /** A block is made, leased and loaded. */
  BlockMade: {
    readonly gameId: number;
    readonly outcomes: number;
    /** In a thread. */
    readonly makeSeconds: number;
    readonly totalSeconds: number;
  };

  SettlementReportMade: {
    readonly partnerId: number;
    /** YYYY-MM-DD, UTC. */
    readonly reportDate: string;
    readonly revision: number;
    readonly status: string;
    readonly integrityHash: string;
  };
  /** A report that is due could not be made, or without a day: none could be looked for. It is tried again. */
  SettlementFailed: { readonly error: unknown; readonly partnerId?: number; readonly date?: string };

  DeliveryAttempted: {
    readonly deliveryId: string;
    readonly webhookId: number;
    readonly event: string;
    /** 1: the first. */
    readonly attempt: number;
    readonly result: 'delivered' | 'failed' | 'exhausted';
    /** Null: no answer came. */
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

  /** Nobody can send them: there is no SMTP_URL. */
  EmailsLeftUnsent: { readonly emails: number };

  /** The settings that let Redis lose what it acknowledges are others now; none: it keeps everything. */
  DurabilityChanged: { readonly volatile: readonly string[] };
  /** The same of Postgres and what it commits. */
  PostgresDurabilityChanged: { readonly volatile: readonly string[] };
  /** The same of the replicas that ACK=replica waits for: the address of each before its setting. */
  ReplicaDurabilityChanged: { readonly volatile: readonly string[] };
}

export type EventEmitter = Emitter<Events>;

/** @param onHandlerError called with a handler that threw. */
export const newEvents = (onHandlerError: (error: unknown, event: string) => void): EventEmitter =>
  new Emitter<Events>(onHandlerError);
