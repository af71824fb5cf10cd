/**
 * Makes the reports that are due, in the worker role. Any number of workers do the same: of several, the transaction lets
 * one make a report. What was due while no worker ran is made at the next start.
 */
import { DAY_MS, startOf } from '../domain/settlement.js';
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
  /** Every report up to this day was there. */
  #settledThrough: string | undefined;
  #oldestUnsettled: string | undefined;

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

  /** Makes what is due now. Never rejects. */
  async turn(): Promise<void> {
    const { cron, onFault } = this.#options;
    try {
      const through = dueDay(cron, this.#settlements.now());
      if (through === this.#settledThrough) return;
      const isStopped = (): boolean => this.#stopped;
      this.#oldestUnsettled = await this.#settlements.settle(through, { isStopped, onFault });
      if (this.#oldestUnsettled === undefined) this.#settledThrough = through;
    } catch (error) {
      onFault(error, undefined);
    }
  }
}
