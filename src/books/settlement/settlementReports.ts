/**
 * Makes settlement reports: when a day is complete, which days are due, what an operator may ask for.
 *
 * A report is made of the ledger alone, so the one question is whether all of a day is in it. It is where the partner's ledger is
 * complete beyond the day (partners.store.ts); or where Redis, being the one that the partner's cell was prepared for, has
 * passed the day's end and holds nothing of that day that is not booked. Either way the day must be over by all clocks, which may
 * differ: Redis may step back, or be replaced by one that is behind.
 */

import { DAY_MS, dayOf, shiftDay, startOf } from '../../domain/days.js';
import { firstIdAt } from '../../domain/entryId.js';
import { ApiError, ERRORS } from '../../domain/errors.js';
import { overAfterMs } from '../../domain/settlement.js';
import type { LedgerWatermark } from '../../engine/catalog/partners.store.js';
import type { EngineStore } from '../../engine/engine.store.js';
import type { EventEmitter } from '../../engine/processEvents.js';
import type { Clocks } from '../../engine/redis/clockSkew.js';
import type { RedisNodes } from '../../engine/redis/nodes.js';
import type { BooksStore } from '../books.store.js';
import type { UnsettledDay } from './settledDays.store.js';
import type { OnReport, StoredReport, WantedReport } from './settlements.store.js';

export interface SettlementReportsOptions {
  readonly store: Pick<BooksStore, 'settlements'> & Pick<EngineStore, 'cells' | 'partners'>;
  readonly nodes: Pick<RedisNodes, 'cell'>;
  readonly now?: () => Date;
  readonly clocks: Pick<Clocks, 'skewMaxMs'>;
  /** Called in the transaction that makes a complete report; absent: the partner is notified. */
  readonly onReport?: OnReport;
  readonly events: EventEmitter;
}

export interface SettleObserver {
  /** Asked before each report. */
  readonly isStopped: () => boolean;
  /** A report could not be made. */
  readonly onFault: (error: unknown, day: UnsettledDay) => void;
}

/** Clocks of a Redis that takes over are taken to differ by as much, however little is allowed. */
const CLOCKS_APART_MS = 5000;
/** Looked over at a time, for all partners. */
const DAYS_AT_ONCE = 31;

/** What is known of a day: whether it is over by the clocks, and all of it is in the ledger. */
type DayState = Pick<WantedReport, 'isComplete' | 'isOver'>;

/** By cell, epoch and day: whether the cell has passed it, asked once. */
type PassedDays = Map<string, boolean>;

export class SettlementReports {
  readonly #options: SettlementReportsOptions;

  constructor(options: SettlementReportsOptions) {
    this.#options = options;
  }

  now(): Date {
    return this.#options.now?.() ?? new Date();
  }

  /**
   * Makes the next revision of a report for the operator: PENDING where the day is not complete.
   * @param reason answers a dispute, which stays open until a revision has one
   * @throws ApiError: KS-4209, KS-4214, KS-4301 for a day that is to come or is before the partner's first, KS-4304.
   */
  async makeNow(
    partnerId: number | undefined,
    date: string,
    actor: string,
    reason?: string,
  ): Promise<StoredReport> {
    const { store } = this.#options;
    const partner = partnerId === undefined ? undefined : await store.settlements.partner(partnerId);
    if (partnerId === undefined || partner === undefined) throw new ApiError(ERRORS.partnerNotFound);
    if (!partner.hasGames) throw new ApiError(ERRORS.noGames);
    if (date < partner.firstDay || date > dayOf(this.now().getTime()))
      throw new ApiError(ERRORS.reportNotFound);
    const state = await this.#stateOf(partnerId, date);
    const made = await this.#make(partnerId, date, { actor, reason, isDue: false, ...state });
    // A report that is wanted now is never one that is not due.
    if (typeof made === 'string') throw new ApiError(ERRORS.reportStatus);
    return made;
  }

  /**
   * Makes every report that is missing of some days, and completes those that are incomplete and can be. What fails for one
   * partner is notified, and the others go on.
   * @param after every earlier day, and this one, is settled; undefined: that is not known
   * @param through the last day
   * @returns the oldest day that is not settled now; undefined where all are.
   * @throws where Postgres does not answer.
   */
  async settle(
    after: string | undefined,
    through: string,
    told: SettleObserver,
  ): Promise<string | undefined> {
    const { store } = this.#options;
    let from = after === undefined ? await store.settlements.firstDay() : shiftDay(after, 1);
    let oldest: string | undefined;
    while (from !== undefined && from <= through) {
      const next = shiftDay(from, DAYS_AT_ONCE);
      const last = shiftDay(next, -1);
      const days = await store.settlements.unsettledDays(from, last < through ? last : through);
      const unsettled = await this.#settleDays(days, told);
      oldest ??= unsettled;
      if (told.isStopped()) return oldest ?? next;
      from = next;
    }
    return oldest;
  }

  /** @returns the oldest of them that is not settled now. */
  async #settleDays(days: readonly UnsettledDay[], told: SettleObserver): Promise<string | undefined> {
    const { store } = this.#options;
    const passed: PassedDays = new Map();
    let oldest: string | undefined;
    for (const day of days) {
      if (told.isStopped()) return oldest ?? day.date;
      try {
        const state = day.isBooked
          ? { isComplete: true, isOver: true }
          : await this.#stateOf(day.partnerId, day.date, passed);
        if (!state.isComplete) oldest ??= day.date;
        if (state.isComplete || !day.hasReport) {
          await this.#make(day.partnerId, day.date, { actor: 'worker', isDue: true, ...state });
        }
      } catch (error) {
        oldest ??= day.date;
        told.onFault(error, day);
        // Where Postgres itself is away this rejects, and the rest comes with the next turn.
        await store.cells.cursors();
      }
    }
    return oldest;
  }

  async #make(
    partnerId: number,
    date: string,
    how: Pick<WantedReport, 'actor' | 'reason' | 'isDue' | 'isComplete' | 'isOver'>,
  ): Promise<StoredReport | 'acknowledged' | 'not-due'> {
    const { store, onReport, events } = this.#options;
    const startMs = startOf(date);
    const endMs = startMs + DAY_MS;
    const made = await store.settlements.make(
      {
        ...how,
        partnerId,
        date,
        ids: { from: firstIdAt(startMs), to: firstIdAt(endMs) },
        start: new Date(startMs),
        end: new Date(endMs),
        now: this.now(),
      },
      onReport,
    );
    if (typeof made !== 'string') {
      const { status, integrityHash, report } = made;
      const { reportDate, revision } = report;
      events.emit('SettlementReportMade', { partnerId, reportDate, revision, status, integrityHash });
    }
    return made;
  }

  /** Complete: every entry of the partner's that the day will ever have is in the ledger. Once true it stays so. */
  async #stateOf(partnerId: number, date: string, passed: PassedDays = new Map()): Promise<DayState> {
    const { store, clocks } = this.#options;
    const { skewMaxMs } = clocks;
    const endMs = startOf(date) + DAY_MS;
    const reach = await store.partners.ledgerWatermark(partnerId);
    const isOver = skewMaxMs >= DAY_MS || Math.min(reach.timeMs, this.now().getTime()) >= endMs + skewMaxMs;
    const isComplete = isOver && (await this.#isBooked(reach, date, passed));
    return { isOver, isComplete };
  }

  async #isBooked(reach: LedgerWatermark, date: string, passed: PassedDays): Promise<boolean> {
    const endMs = startOf(date) + DAY_MS;
    if (reach.toId >= firstIdAt(endMs)) return true;
    const key = `${reach.cell} ${reach.epoch} ${date}`;
    let hasPassed = passed.get(key);
    if (hasPassed === undefined) {
      hasPassed = await this.#hasPassed(reach, endMs);
      passed.set(key, hasPassed);
    }
    return hasPassed;
  }

  /** The Redis that a cell was prepared for is beyond a moment, and all that the cell made before is booked. */
  async #hasPassed({ cell, epoch }: LedgerWatermark, endMs: number): Promise<boolean> {
    const outbox = this.#options.nodes.cell(cell);
    try {
      if (!(await outbox.isOpen(epoch))) return false;
      // The clock first: what is dealt after it was read has an id of a later day.
      const overMs = endMs + Math.max(CLOCKS_APART_MS, overAfterMs(this.#options.clocks.skewMaxMs));
      if ((await outbox.node.timeMs()) < overMs) return false;
      // What is not in the outbox any more is committed: only then it is trimmed.
      const [oldest] = await outbox.outbox(1);
      if (oldest !== undefined && oldest.timeMs < endMs) return false;
      // It was the right Redis that was asked, all the time.
      return await outbox.isOpen(epoch);
    } catch (error) {
      // Taken not to be complete.
      this.#options.events.emit('TaskFailed', { task: 'day completeness check', error });
      return false;
    }
  }
}
