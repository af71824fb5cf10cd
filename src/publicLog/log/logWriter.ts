/**
 * Appends to the public log what Postgres has for it, signs the tree that is committed, and publishes the note. Any worker does it
 * for all: whoever waits has its own entry taken along by whichever worker comes first.
 *
 *   leased or voided (an entry waits) ──> appended (one transaction) ──> signed ──> stored: published ──> blocks are loaded
 *
 * With a quorum of witnesses a note is stored, and published once it has enough cosignatures (cosigning.ts): what waits for that
 * is held, and appending goes on.
 */
import { checkpointText } from '../../domain/publicLog/checkpoints.js';
import { type Signer, signatureLine, vkeyOf } from '../../domain/publicLog/notes.js';
import type { EventEmitter } from '../../engine/processEvents.js';
import type { OnFailpoint } from '../../platform/failpoints.js';
import { IDLE, PeriodicService, WOKEN_MS } from '../../platform/runtime/periodicService.js';
import { type Health, unhealthy } from '../../platform/runtime/service.js';
import type { Sql } from '../../postgres/connection.js';
import { APPENDED_AT_ONCE, appendWaiting } from './logAppend.store.js';
import { type LogState, logProgress, pruneCheckpoints, storeCheckpoint } from './publicLog.store.js';

export interface PublicLogOptions {
  readonly sql: Sql;
  /** Keys that this process has of a log, newest first. @throws Error where it has none */
  readonly signersOf: (log: LogState) => Promise<readonly Signer[]>;
  /** From the first entry that waits to the append, milliseconds. */
  readonly batchMs: number;
  /** A note is published only with the cosignatures of enough witnesses. */
  readonly hasQuorum: boolean;
  /** A checkpoint is stored that is to be cosigned. */
  readonly onSigned: () => void;
  /** A larger tree is published than this process knew of. */
  readonly onPublished: () => void;
  /** Why nothing may be appended yet; undefined: nothing stands against it. */
  readonly problem: () => string | undefined;
  readonly events: EventEmitter;
  readonly onFailpoint: OnFailpoint;
}

/** While something waits. */
const EVERY_MS = 2000;
const PRUNE_EVERY_MS = 600_000;
/** What waits so long is not well. */
const STALLED_SECONDS = 30;

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Its entries are appended: it waits until a tree of this size is published. */
interface Held extends Waiter {
  readonly size: number;
}

export class PublicLog extends PeriodicService {
  readonly name = 'public log';
  readonly #options: PublicLogOptions;
  #waiters: Waiter[] = [];
  #held: Held[] = [];
  #batch: NodeJS.Timeout | undefined;
  #size = 0;
  /** Of the newest tree that this process has signed. */
  #signed = 0;
  /** The log in force, and its keys. */
  #log:
    | { readonly logId: number; readonly signers: readonly Signer[]; readonly vkeys: readonly string[] }
    | undefined;
  #hasKeysInUse = false;
  /** As performance.now() counts. */
  #pruneAt = performance.now() + PRUNE_EVERY_MS;
  #waitingSince: number | undefined;
  /** Why nothing is appended any more, as of this process's last look. */
  #halted: string | undefined;

  constructor(options: PublicLogOptions) {
    super({ everyMs: EVERY_MS, firstAfterMs: 0, idleMs: WOKEN_MS });
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

  get isHalted(): boolean {
    return this.#halted !== undefined;
  }

  override health(): Health {
    const { waitingSeconds } = this;
    if (this.#halted !== undefined) return unhealthy(`the public log is halted: ${this.#halted}`);
    if (waitingSeconds > STALLED_SECONDS)
      return unhealthy(`what is sealed waits for the public log for ${Math.floor(waitingSeconds)} s`);
    return super.health();
  }

  /** A tree of a size is published, by whichever worker: who waits for it goes on. */
  learnPublished(size: number): void {
    if (size > this.#size) this.#options.onPublished();
    this.#size = Math.max(this.#size, size);
    const done = this.#held.filter((held) => held.size <= size);
    if (done.length === 0) return;
    this.#held = this.#held.filter((held) => held.size > size);
    for (const { resolve } of done) resolve();
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
    for (const { reject } of [...this.#waiters, ...this.#held])
      reject(new Error('The public log is stopped'));
  }

  /** Looks at the log now: another process may have left something to do, or changed it. */
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

  protected onTurnFailed(error: unknown): void {
    this.#options.events.emit('TaskFailed', { task: 'public log', error });
  }

  /** @returns the size of the tree that has all that waited, and of the newest one that is published */
  async #publish(isAsked: boolean): Promise<{ readonly size: number; readonly published: number }> {
    const { sql, hasQuorum, problem } = this.#options;
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

  /** A log has taken the place of the one before, or this is the first look: sizes begin anew, and who waits for the old one waits in vain. */
  async #follow(state: LogState): Promise<void> {
    const signers = await this.#options.signersOf(state);
    const held = this.#held;
    this.#held = [];
    this.#log = { logId: state.logId, signers, vkeys: signers.map(vkeyOf) };
    this.#signed = 0;
    this.#size = 0;
    this.#hasKeysInUse = false;
    for (const { reject } of held) reject(new Error('Another public log has begun'));
  }

  /** Has the keys of this process be those in force, newest first; a newer one is told of in the log. @returns whether they were others */
  async #useKeys({ vkeys }: LogState): Promise<boolean> {
    const own = this.#log!.vkeys;
    // A worker that still had a key which is taken out has put it back at its start.
    if (this.#hasKeysInUse && vkeys.every((vkey) => own.includes(vkey))) return false;
    if (!own.includes(vkeys[0]!)) throw new Error(`LOG_KEY lacks a key that is in force: ${vkeys[0]}`);
    const areOthers = own.join() !== vkeys.join();
    if (areOthers) await appendWaiting(this.#options.sql, own);
    this.#hasKeysInUse = true;
    return areOthers;
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
    const { sql, hasQuorum, onSigned, onFailpoint } = this.#options;
    const { signers } = this.#log!;
    const text = checkpointText({ origin, size, root });
    const lines = vkeys.map((vkey) => {
      const signer = signers.find((each) => vkeyOf(each) === vkey);
      if (signer === undefined) throw new Error(`LOG_KEY lacks a key that is in force: ${vkey}`);
      return signatureLine(text, signer);
    });
    onFailpoint('block.signed');
    await storeCheckpoint(sql, logId, { size, note: `${text}\n${lines.join('')}`, isPublished: !hasQuorum });
    this.#signed = size;
    onSigned();
  }
}
