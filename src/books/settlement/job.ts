/**
 * Generates the settlement reports that are due, in the worker role. Several workers may run the job, because
 * a transaction ensures that only one of them generates a report. Reports that became due while no worker ran
 * are generated at the next start.
 */
import { DAY_MS, shiftDay, startOf } from '../../domain/days.js';
import type { EventEmitter } from '../../engine/processEvents.js';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import { HEALTHY, type Health, unhealthy } from '../../platform/runtime/service.js';
import type { RtpJudging } from '../returns/rtpJudging.js';
import { dueDay } from './schedule.js';
import type { UnsettledDay } from './settledDays.store.js';
import type { SettlementReports } from './settlementReports.js';

export class SettlementJob extends PeriodicService {
  readonly name = 'settlement';
  /** Newest day up to which all reports are complete. The job does not check earlier days again. */
  #settledThrough: string | undefined;
  #oldestUnsettled: string | undefined;
  #failing = 0;
  /** Newest day up to which the return of every game has been judged. */
  #judgedThrough: string | undefined;

  constructor(
    private readonly settlements: SettlementReports,
    private readonly options: {
      readonly everyMs: number;
      /** Cron expression in UTC. At each of its times all earlier days become due for a report. */
      readonly cron: string;
      /** Judges the return to player of games for days that have their reports. */
      readonly judging: Pick<RtpJudging, 'run'>;
      readonly events: EventEmitter;
    },
  ) {
    super({ everyMs: options.everyMs, firstAfterMs: 0 });
  }

  override health(): Health {
    return this.#failing === 0 ? HEALTHY : unhealthy(`${this.#failing} settlement reports failed`);
  }

  /**
   * Age of the oldest overdue day in seconds, counted from the end of that day; 0 if no complete report is
   * overdue.
   */
  get overdueSeconds(): number {
    if (this.#oldestUnsettled === undefined) return 0;
    return Math.max(0, this.settlements.now().getTime() - startOf(this.#oldestUnsettled) - DAY_MS) / 1000;
  }

  /** Oldest day without a complete report, and the seconds since its end; undefined if there is none. */
  get overdue(): { date: string; seconds: number } | undefined {
    const date = this.#oldestUnsettled;
    return date === undefined ? undefined : { date, seconds: this.overdueSeconds };
  }

  /** Number of settlement reports that failed in the last run. */
  get failing(): number {
    return this.#failing;
  }

  /** Generates the settlement reports that are due now. Failures are emitted as events. */
  async turn(): Promise<void> {
    const { cron } = this.options;
    let failed = 0;
    const onFault = (error: unknown, day: UnsettledDay | undefined): void => {
      failed++;
      const { partnerId, date } = day ?? {};
      this.#report(error, partnerId === undefined || date === undefined ? {} : { partnerId, date });
    };
    try {
      const through = dueDay(cron, this.settlements.now());
      const told = { isStopped: (): boolean => this.isStopped, onFault };
      const oldest = await this.settlements.settle(this.#settledThrough, through, told);
      this.#oldestUnsettled = oldest;
      this.#settledThrough = oldest === undefined ? through : shiftDay(oldest, -1);
    } catch (error) {
      onFault(error, undefined);
    }
    this.#failing = failed;
    await this.#judge();
  }

  /**
   * Judges the return to player for newly settled days. Does nothing if all settled days have been judged.
   */
  async #judge(): Promise<void> {
    const settledThrough = this.#settledThrough;
    if (settledThrough === undefined) return;
    if (this.#oldestUnsettled === undefined && this.#judgedThrough === settledThrough) return;
    try {
      await this.options.judging.run(
        () => this.settlements.now(),
        () => this.isStopped,
      );
      if (!this.isStopped) this.#judgedThrough = settledThrough;
    } catch (error) {
      this.options.events.emit('TaskFailed', { task: 'RTP judgement', error });
    }
  }

  protected override onTurnFailed(error: unknown): void {
    this.#report(error, {});
  }

  #report(error: unknown, day: { readonly partnerId?: number; readonly date?: string }): void {
    this.options.events.emit('SettlementFailed', { error, ...day });
  }
}
