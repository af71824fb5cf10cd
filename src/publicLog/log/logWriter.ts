/**
 * Appends waiting entries to the public log, signs the committed tree and publishes the checkpoint. Any
 * worker does this for all workers, so an entry is appended by whichever worker comes first.
 *
 *  leased or voided (an entry waits) ──> appended (one transaction) ──> signed ──> stored: published
 *    ──> blocks are loaded
 *
 * If the policy has a quorum of witnesses, a note is stored first, and published once it has enough
 * cosignatures (cosigning.ts). Callers wait for the publication, while appending continues.
 */
import { checkpointText } from '../../domain/publicLog/checkpoints.js';
import { type Signer, signatureLine, vkeyOf } from '../../domain/publicLog/notes.js';
import { type EventEmitter, taskFailed } from '../../engine/processEvents.js';
import type { OnFailpoint } from '../../platform/failpoints.js';
import { IDLE, PeriodicService, WOKEN_MS } from '../../platform/runtime/periodicService.js';
import { type Health, unhealthy } from '../../platform/runtime/service.js';
import type { Sql } from '../../postgres/connection.js';
import { APPENDED_AT_ONCE, appendWaiting } from './logAppend.store.js';
import { type LogState, logProgress, pruneCheckpoints, storeCheckpoint } from './publicLog.store.js';

/** Poll interval while entries are waiting, in ms. */
const EVERY_MS = 2000;
const PRUNE_EVERY_MS = 600_000;
/** Age of a waiting entry, in seconds, from which on the log is unhealthy. */
const STALLED_SECONDS = 30;

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Caller that waits until a tree of this size, which includes the caller's entries, is published. */
interface Held extends Waiter {
  readonly size: number;
}

export class PublicLog extends PeriodicService {
  readonly name = 'public log';
  #waiters: Waiter[] = [];
  #held: Held[] = [];
  #batch: NodeJS.Timeout | undefined;
  #size = 0;
  /** Size of the newest tree signed by this process. */
  #signed = 0;
  /** Current log, with the keys that this process has for it. */
  #log:
    | { readonly logId: number; readonly signers: readonly Signer[]; readonly vkeys: readonly string[] }
    | undefined;
  #hasKeysInUse = false;
  /** Time of the next pruning, as performance.now(). */
  #pruneAt = performance.now() + PRUNE_EVERY_MS;
  #waitingSince: number | undefined;
  /** Reason why the log is halted, as found by this process's newest check. */
  #halted: string | undefined;

  constructor(
    private readonly options: {
      readonly sql: Sql;
      /**
       * Returns this process's keys for a log, newest first.
       * @throws Error if it has none
       */
      readonly signersOf: (log: LogState) => Promise<readonly Signer[]>;
      /** Maximum delay between the first waiting entry and its append, in ms. */
      readonly batchMs: number;
      /** True if a note is published only with the cosignatures of enough witnesses. */
      readonly hasQuorum: boolean;
      /** Called when a checkpoint that needs cosignatures has been stored. */
      readonly onSigned: () => void;
      /** Called when this process learns of a published tree that is larger than the one it knew. */
      readonly onPublished: () => void;
      /** Returns the reason why nothing may be appended yet, or undefined. */
      readonly problem: () => string | undefined;
      readonly events: EventEmitter;
      readonly onFailpoint: OnFailpoint;
    },
  ) {
    super({ everyMs: EVERY_MS, firstAfterMs: 0, idleMs: WOKEN_MS }, taskFailed(options.events, 'public log'));
  }

  /** Number of records in the newest published tree, as far as this process knows. */
  get size(): number {
    return this.#size;
  }

  /**
   * Age of the oldest unpublished entry in seconds, as found by this process's newest check; 0 if there is
   * none.
   */
  get waitingSeconds(): number {
    return this.#waitingSince === undefined ? 0 : (performance.now() - this.#waitingSince) / 1000;
  }

  get isHalted(): boolean {
    return this.#halted !== undefined;
  }

  override health(): Health {
    const { waitingSeconds } = this;
    if (this.#halted !== undefined) return unhealthy(`the public log is halted: ${this.#halted}`);
    if (waitingSeconds > STALLED_SECONDS)
      return unhealthy(`sealed blocks have waited for the public log for ${Math.floor(waitingSeconds)} s`);
    return super.health();
  }

  /**
   * Records that some worker has published a tree of the given size, and resolves the callers that wait for
   * this size.
   */
  learnPublished(size: number): void {
    if (size > this.#size) this.options.onPublished();
    this.#size = Math.max(this.#size, size);
    const done = this.#held.filter((held) => held.size <= size);
    if (done.length === 0) return;
    this.#held = this.#held.filter((held) => held.size > size);
    for (const { resolve } of done) resolve();
  }

  /**
   * Resolves once a published checkpoint covers every entry that was waiting at the time of the call. Rejects
   * on failure.
   */
  published(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject });
      this.#batch ??= setTimeout(() => this.hurry(), this.options.batchMs);
    });
  }

  override async stop(): Promise<void> {
    clearTimeout(this.#batch);
    await super.stop();
    for (const { reject } of [...this.#waiters, ...this.#held])
      reject(new Error('The public log is stopped'));
  }

  /** Appends and publishes now, because another process may have queued entries or changed the log. */
  wake(): void {
    this.hurry();
  }

  protected async turn(): Promise<typeof IDLE | undefined> {
    clearTimeout(this.#batch);
    this.#batch = undefined;
    const waiters = this.#waiters;
    this.#waiters = [];
    try {
      const { size, published } = await this.#publish(waiters.length > 0);
      for (const waiter of waiters) this.#held.push({ ...waiter, size });
      this.learnPublished(published);
      return this.#waitingSince === undefined && waiters.length === 0 ? IDLE : undefined;
    } catch (error) {
      for (const { reject } of waiters) reject(error);
      throw error;
    }
  }

  /**
   * Appends waiting entries, signs the tree and publishes the checkpoint.
   * @returns the size of the tree with all waiting entries, and the size of the newest published tree
   */
  async #publish(isAsked: boolean): Promise<{ readonly size: number; readonly published: number }> {
    const { sql, hasQuorum, problem } = this.options;
    const { state, published, waitingSeconds, unpublishedSeconds } = await logProgress(sql);
    this.#halted = state.halt ?? undefined;
    if (state.logId !== this.#log?.logId) await this.#follow(state);
    const obstacle = this.#halted ?? problem();
    if (obstacle === undefined && (await this.#useKeys(state))) return this.#publish(isAsked);
    if (waitingSeconds === 0 && published === state.size) {
      this.#waitingSince = undefined;
      return { size: state.size, published };
    }
    const since = performance.now() - Math.max(waitingSeconds, unpublishedSeconds) * 1000;
    this.#waitingSince = hasQuorum ? since : (this.#waitingSince ?? since);
    if (obstacle !== undefined) throw new Error(obstacle);
    await this.#prune();
    let at = await this.#append();
    while (isAsked && at.appended >= APPENDED_AT_ONCE) at = await this.#append();
    if (!hasQuorum || at.size !== this.#signed) await this.#sign(at);
    if (!hasQuorum) this.#waitingSince = undefined;
    return { size: at.size, published: hasQuorum ? published : at.size };
  }

  /**
   * Switches to the current log of the database if this process uses another log or none yet. Sizes start at
   * zero, and callers that wait for the replaced log are rejected.
   */
  async #follow(state: LogState): Promise<void> {
    const signers = await this.options.signersOf(state);
    const held = this.#held;
    this.#held = [];
    this.#log = { logId: state.logId, signers, vkeys: signers.map(vkeyOf) };
    this.#signed = 0;
    this.#size = 0;
    this.#hasKeysInUse = false;
    for (const { reject } of held) reject(new Error('A new public log was begun'));
  }

  /**
   * Puts the keys of this process into force, newest first. A new key is announced by a record in the log.
   * @returns whether the keys have changed
   */
  async #useKeys({ vkeys }: LogState): Promise<boolean> {
    const own = this.#log!.vkeys;
    // If a worker still has a removed key, it puts that key back into force at its start.
    if (this.#hasKeysInUse && vkeys.every((vkey) => own.includes(vkey))) return false;
    if (!own.includes(vkeys[0]!))
      throw new Error(`LOG_KEY lacks a current key of the public log: ${vkeys[0]}`);
    const areOthers = own.join() !== vkeys.join();
    if (areOthers) await appendWaiting(this.options.sql, own);
    this.#hasKeysInUse = true;
    return areOthers;
  }

  async #prune(): Promise<void> {
    if (performance.now() < this.#pruneAt) return;
    this.#pruneAt = performance.now() + PRUNE_EVERY_MS;
    await pruneCheckpoints(this.options.sql);
  }

  async #append(): Promise<LogState & { readonly appended: number }> {
    const { sql, events, onFailpoint } = this.options;
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

  /** Signs and stores a committed tree. A note leaves the process only after it has been stored. */
  async #sign({ logId, origin, vkeys, size, root }: LogState): Promise<void> {
    const { sql, hasQuorum, onSigned, onFailpoint } = this.options;
    const { signers } = this.#log!;
    const text = checkpointText({ origin, size, root });
    const lines = vkeys.map((vkey) => {
      const signer = signers.find((each) => vkeyOf(each) === vkey);
      if (signer === undefined) throw new Error(`LOG_KEY lacks a current key of the public log: ${vkey}`);
      return signatureLine(text, signer);
    });
    onFailpoint('block.signed');
    await storeCheckpoint(sql, logId, { size, note: `${text}\n${lines.join('')}`, isPublished: !hasQuorum });
    this.#signed = size;
    onSigned();
  }
}
