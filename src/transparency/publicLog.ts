/**
 * Appends to the public log what Postgres has for it, signs the tree that is committed, and publishes the note. Any worker does it
 * for all: whoever waits has its own entry taken along by whichever worker comes first.
 *
 *   leased or voided (an entry waits) ──> appended (one transaction) ──> signed ──> stored: published ──> blocks are loaded
 */
import { checkpointText } from '../domain/transparency/checkpoints.js';
import { type Signer, signatureLine, vkeyOf } from '../domain/transparency/notes.js';
import type { EventEmitter } from '../events.js';
import type { OnFailpoint } from '../failpoints.js';
import type { Sql } from '../postgres/client.js';
import {
  APPENDED_AT_ONCE,
  appendWaiting,
  type LogState,
  logProgress,
  pruneCheckpoints,
  storeCheckpoint,
} from '../postgres/publicLog.js';
import { PeriodicService } from '../runtime/periodicService.js';

export interface PublicLogOptions {
  readonly sql: Sql;
  /** Keys of the log that this process has, newest first. */
  readonly signers: readonly Signer[];
  /** From the first entry that waits to the append, milliseconds. */
  readonly batchMs: number;
  readonly events: EventEmitter;
  readonly onFailpoint: OnFailpoint;
}

/** How often this process looks for what others have left to do. */
const EVERY_MS = 2000;
const PRUNE_EVERY_MS = 600_000;

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class PublicLog extends PeriodicService {
  readonly name = 'public log';
  readonly #options: PublicLogOptions;
  #waiters: Waiter[] = [];
  #batch: NodeJS.Timeout | undefined;
  #size = 0;
  /** As performance.now() counts. */
  #pruneAt = performance.now() + PRUNE_EVERY_MS;
  #waitingSince: number | undefined;

  constructor(options: PublicLogOptions) {
    super({ everyMs: EVERY_MS, firstAfterMs: 0 });
    this.#options = options;
  }

  /** Records in the newest published tree, as far as this process knows. */
  get size(): number {
    return this.#size;
  }

  /** How long the oldest entry waits that is not published, seconds, as of this process's last look; 0: none does. */
  get waitingSeconds(): number {
    return this.#waitingSince === undefined ? 0 : (performance.now() - this.#waitingSince) / 1000;
  }

  /** Resolves once everything that Postgres had for the log when it was called lies in a published checkpoint; rejects where that failed. */
  published(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject });
      this.#batch ??= setTimeout(() => this.hurry(), this.#options.batchMs);
    });
  }

  override async stop(): Promise<void> {
    clearTimeout(this.#batch);
    await super.stop();
    for (const { reject } of this.#waiters) reject(new Error('The public log is stopped'));
  }

  protected async turn(): Promise<void> {
    clearTimeout(this.#batch);
    this.#batch = undefined;
    const waiters = this.#waiters;
    this.#waiters = [];
    try {
      await this.#publish(waiters.length > 0);
      for (const { resolve } of waiters) resolve();
    } catch (error) {
      for (const { reject } of waiters) reject(error);
      throw error;
    }
  }

  protected onTurnFailed(error: unknown): void {
    this.#options.events.emit('TaskFailed', { task: 'public log', error });
  }

  async #publish(isAsked: boolean): Promise<void> {
    const { sql } = this.#options;
    const { state, published, waitingSeconds } = await logProgress(sql);
    this.#size = published;
    if (waitingSeconds === 0 && published === state.size) {
      this.#waitingSince = undefined;
      return;
    }
    this.#waitingSince ??= performance.now() - waitingSeconds * 1000;
    await this.#prune();
    let at = await this.#append();
    while (isAsked && at.appended >= APPENDED_AT_ONCE) at = await this.#append();
    await this.#sign(at);
    this.#waitingSince = undefined;
  }

  async #prune(): Promise<void> {
    if (performance.now() < this.#pruneAt) return;
    this.#pruneAt = performance.now() + PRUNE_EVERY_MS;
    await pruneCheckpoints(this.#options.sql);
  }

  async #append(): Promise<LogState & { readonly appended: number }> {
    const { sql, events, onFailpoint } = this.#options;
    const started = performance.now();
    const at = await appendWaiting(sql);
    if (at.appended > 0) {
      events.emit('LogAppended', {
        records: at.appended,
        seconds: (performance.now() - started) / 1000,
      });
    }
    onFailpoint('block.appended');
    return at;
  }

  /** Only what is committed is signed, and a note leaves the process only once it is stored. */
  async #sign({ logId, origin, vkeys, size, root }: LogState): Promise<void> {
    const { sql, signers, onFailpoint } = this.#options;
    const text = checkpointText({ origin, size, root });
    const lines = vkeys.map((vkey) => {
      const signer = signers.find((each) => vkeyOf(each) === vkey);
      if (signer === undefined) throw new Error(`LOG_KEY lacks a key that is in force: ${vkey}`);
      return signatureLine(text, signer);
    });
    onFailpoint('block.signed');
    await storeCheckpoint(sql, logId, { size, note: `${text}\n${lines.join('')}`, isPublished: true });
    this.#size = Math.max(this.#size, size);
  }
}
