/**
 * Makes the reports that are due, in the worker role. Any number of workers do the same: of several, the transaction lets
 * one make a report. What was due while no worker ran is made at the next start.
 */
import { DAY_MS, shiftDay, startOf } from '../../domain/days.js';
import type { EventEmitter } from '../../engine/processEvents.js';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import { HEALTHY, type Health, unhealthy } from '../../platform/runtime/service.js';
import type { RtpJudging } from '../returns/rtpJudging.js';
import { dueDay } from './schedule.js';
import type { UnsettledDay } from './settledDays.store.js';
import type { SettlementReports } from './settlementReports.js';

export interface JobOptions {
  /** From turn to turn. */
  readonly everyMs: number;
  /** Cron expression, UTC: at these moments the days before become due. */
  readonly cron: string;
  /** Judges the return of games by the days that have their reports. */
  readonly judging: Pick<RtpJudging, 'run'>;
  readonly events: EventEmitter;
}

export class SettlementJob extends PeriodicService {
  readonly name = 'settlement';
  readonly #settlements: SettlementReports;
  readonly #options: JobOptions;
  /** Every report up to this day is there: what was made is not looked at again. */
  #settledThrough: string | undefined;
  #oldestUnsettled: string | undefined;
  #failing = 0;
  /** Every day up to this one is judged of every game. */
  #judgedThrough: string | undefined;

  constructor(settlements: SettlementReports, options: JobOptions) {
    super({ everyMs: options.everyMs, firstAfterMs: 0 });
    this.#settlements = settlements;
    this.#options = options;
  }

  override health(): Health {
    return this.#failing === 0 ? HEALTHY : unhealthy(`${this.#failing} settlement reports could not be made`);
  }

  /** For how long the oldest day that has no complete report, and should have, has been over; 0 where there is none. */
  get overdueSeconds(): number {
    if (this.#oldestUnsettled === undefined) return 0;
    return Math.max(0, this.#settlements.now().getTime() - startOf(this.#oldestUnsettled) - DAY_MS) / 1000;
  }

  /** The oldest day that has no complete report, and for how long it has been over; undefined where there is none. */
  get overdue(): { date: string; seconds: number } | undefined {
    const date = this.#oldestUnsettled;
    return date === undefined ? undefined : { date, seconds: this.overdueSeconds };
  }

  /** Reports that could not be made at the last turn. */
  get failing(): number {
    return this.#failing;
  }

  /** Makes what is due now. Failures are events. */
  async turn(): Promise<void> {
    const { cron } = this.#options;
    let failed = 0;
    const onFault = (error: unknown, day: UnsettledDay | undefined): void => {
      failed++;
      const { partnerId, date } = day ?? {};
      this.#report(error, partnerId === undefined || date === undefined ? {} : { partnerId, date });
    };
    try {
      const through = dueDay(cron, this.#settlements.now());
      const told = { isStopped: (): boolean => this.isStopped, onFault };
      const oldest = await this.#settlements.settle(this.#settledThrough, through, told);
      this.#oldestUnsettled = oldest;
      this.#settledThrough = oldest === undefined ? through : shiftDay(oldest, -1);
    } catch (error) {
      onFault(error, undefined);
    }
    this.#failing = failed;
    await this.#judge();
  }

  /** Judges what the reports let judge; nothing new where every day was settled and judged before. */
  async #judge(): Promise<void> {
    const settledThrough = this.#settledThrough;
    if (settledThrough === undefined) return;
    if (this.#oldestUnsettled === undefined && this.#judgedThrough === settledThrough) return;
    try {
      await this.#options.judging.run(
        () => this.#settlements.now(),
        () => this.isStopped,
      );
      if (!this.isStopped) this.#judgedThrough = settledThrough;
    } catch (error) {
      this.#options.events.emit('TaskFailed', { task: 'RTP judgement', error });
    }
  }

  protected onTurnFailed(error: unknown): void {
    this.#report(error, {});
  }

  #report(error: unknown, day: { readonly partnerId?: number; readonly date?: string }): void {
    this.#options.events.emit('SettlementFailed', { error, ...day });
  }
}
