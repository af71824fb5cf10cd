/**
 * Registers this process in Postgres as running, every five seconds, and keeps track of the data format that
 * all processes write (domain/formats.ts). The format is read for the first time at the start, before
 * anything is dealt or taken over. Later it comes with each read of the catalog. While this process does not
 * read the catalog, because another process announces its state or because the read fails, the format is read
 * several times a second. A process that can't read the format deals nothing.
 */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { assertReads, FORMATS, FormatError } from '../../domain/formats.js';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { Sql } from '../../postgres/connection.js';
import type { EventEmitter } from '../processEvents.js';
import {
  finishUpgrade,
  forgetProcess,
  type ProcessFacts,
  registerProcess,
  seeProcess,
  writtenFormat,
} from './processes.store.js';

/**
 * Interval at which the format is read, in ms. A process stops dealing within a second after the format has
 * become one that it can't read.
 */
const FORMAT_EVERY_MS = 400;
/**
 * Maximum age of the format that a read of the catalog found, in ms. It is longer than the poll interval of
 * the catalog, and leaves time for a read within the second.
 */
const FORMAT_KNOWN_MS = 600;
const SEEN_EVERY_MS = 5000;
const REPORTED_EVERY_MS = 5000;

export class ProcessRegistry extends PeriodicService {
  readonly name = 'process registry';
  readonly #facts: ProcessFacts;
  #format = 1;
  #problem: string | undefined;
  /** Times of the next registration and of the next error report, on the scale of performance.now(). */
  #seeAt = 0;
  #reportAt = 0;
  /** Time at which the read that found the current format began, on the scale of performance.now(). */
  #formatReadAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly sql: Sql,
    private readonly options: {
      readonly version: string;
      readonly roles: string;
      /**
       * True if no other process shares the stores, so that the start of this process completes an upgrade.
       */
      readonly isAlone: boolean;
      readonly events: EventEmitter;
    },
  ) {
    super({ everyMs: FORMAT_EVERY_MS });
    const { version, roles } = options;
    this.#facts = { processId: randomUUID(), version, roles, host: hostname(), formats: FORMATS };
    options.events.on('FormatRead', ({ format, beganAtMs }) => {
      this.#learn(format, beganAtMs);
      const untilMs = Math.min(beganAtMs + FORMAT_KNOWN_MS, this.#seeAt);
      this.postpone(Math.max(0, untilMs - performance.now()));
    });
  }

  /** @throws FormatError if this build can't read the written format */
  override async start(): Promise<void> {
    this.#format = await this.#register();
    if (this.options.isAlone && this.#format < FORMATS.newest) {
      await finishUpgrade(this.sql, 'start', FORMATS.newest);
      this.#format = (await seeProcess(this.sql, this.#facts.processId)).format;
    }
    await super.start();
  }

  override async stop(): Promise<void> {
    await super.stop();
    await forgetProcess(this.sql, this.#facts.processId).catch(this.#report);
  }

  get processId(): string {
    return this.#facts.processId;
  }

  /** Format that processes write at present, as far as this process knows. */
  get format(): number {
    return this.#format;
  }

  /** Reason why this process must not deal: it can't read the written format. Undefined if it can. */
  get problem(): string | undefined {
    return this.#problem;
  }

  protected async turn(): Promise<void> {
    const beganAtMs = performance.now();
    const { format, isKnown } = await this.#look();
    this.#learn(format, beganAtMs);
    // The process was paused for more than a day, so its registration was deleted.
    if (!isKnown && this.#problem === undefined) await this.#register();
  }

  /** Takes over the format that a read found, unless a later read has already found one. */
  #learn(format: number, beganAtMs: number): void {
    if (beganAtMs < this.#formatReadAtMs) return;
    this.#formatReadAtMs = beganAtMs;
    if (format === this.#format) return;
    this.#format = format;
    try {
      assertReads(FORMATS, format);
      this.#problem = undefined;
      this.options.events.emit('FormatChanged', { format });
    } catch (error) {
      if (!(error instanceof FormatError)) throw error;
      this.#problem = error.message;
      this.options.events.emit('FormatUnreadable', { reason: error.message });
    }
  }

  /**
   * Reads the written format, and records from time to time that the process is running.
   * @returns the format, and whether this process is registered, as far as that was checked
   */
  async #look(): Promise<{ format: number; isKnown: boolean }> {
    if (performance.now() < this.#seeAt) return { format: await writtenFormat(this.sql), isKnown: true };
    const seen = await seeProcess(this.sql, this.#facts.processId);
    this.#seeAt = performance.now() + SEEN_EVERY_MS;
    return seen;
  }

  protected override onTurnFailed(error: unknown): void {
    if (performance.now() < this.#reportAt) return;
    this.#reportAt = performance.now() + REPORTED_EVERY_MS;
    this.#report(error);
  }

  #register(): Promise<number> {
    return registerProcess(this.sql, this.#facts, (format) => assertReads(FORMATS, format));
  }

  readonly #report = (error: unknown): void =>
    this.options.events.emit('TaskFailed', { task: 'process registry', error });
}
