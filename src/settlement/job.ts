/**
 * Makes the reports that are due, in the worker role. Any number of workers do the same: of several, the transaction lets
 * one make a report. What was due while no worker ran is made at the next start.
 */
import { DAY_MS, shiftDay, startOf } from '../domain/settlement.js';
import type { UnsettledDay } from '../postgres/settlements.js';
import { dueDay } from './schedule.js';
import type { Settlements } from './settlements.js';

const TURN_MS = 60_000;

export interface JobOptions {
  /** Cron expression, UTC: at these moments the days before become due. */
  readonly cron: string;
  /** A report could not be made; it comes again with the next turn. `undefined`: none could be looked for. */
  readonly onFault: (error: unknown, day: UnsettledDay | undefined) => void;
}

export class SettlementJob {
  readonly #settlements: Settlements;
  readonly #options: JobOptions;
  #timer: NodeJS.Timeout | undefined;
  #turn: Promise<void> = Promise.resolve();
  #stopped = false;
  /** Every report up to this day is there: what was made is not looked at again. */
  #settledThrough: string | undefined;
  #oldestUnsettled: string | undefined;
  #failing = 0;

  constructor(settlements: Settlements, options: JobOptions) {
    this.#settlements = settlements;
    this.#options = options;
  }

  start(): void {
    this.#turn = this.turn().finally(() => {
      if (!this.#stopped) this.#timer = setTimeout(() => this.start(), TURN_MS);
    });
  }

  /** Resolves once the report that is being made is made. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#turn;
  }

  /** For how long the oldest day that has no complete report, and should have, has been over; 0 where there is none. */
  get overdueSeconds(): number {
    if (this.#oldestUnsettled === undefined) return 0;
    return Math.max(0, this.#settlements.now().getTime() - startOf(this.#oldestUnsettled) - DAY_MS) / 1000;
  }

  /** Reports that could not be made at the last turn. */
  get failing(): number {
    return this.#failing;
  }

  /** Makes what is due now. Never rejects. */
  async turn(): Promise<void> {
    const { cron } = this.#options;
    let failed = 0;
    const onFault: JobOptions['onFault'] = (error, day) => {
      failed++;
      this.#options.onFault(error, day);
    };
    try {
      const through = dueDay(cron, this.#settlements.now());
      const told = { isStopped: (): boolean => this.#stopped, onFault };
      const oldest = await this.#settlements.settle(this.#settledThrough, through, told);
      this.#oldestUnsettled = oldest;
      this.#settledThrough = oldest === undefined ? through : shiftDay(oldest, -1);
    } catch (error) {
      onFault(error, undefined);
    }
    this.#failing = failed;
  }
}
