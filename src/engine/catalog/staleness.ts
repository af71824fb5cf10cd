/**
 * Detects when the catalog is stale: a key was revoked, or a partner or game was changed or suspended, and
 * this process can't read the change from Postgres. A stale process refuses all requests, because it must not
 * accept a revoked key. Changes that only add something make no catalog stale.
 *
 *   Postgres ──poll──> catalog of any process ──announcement──> other catalogs (catalogAnnouncements.ts)
 *                                 └──the change's number──> Redis ──poll after silence──> staleness of others
 *
 * A process that has lost Postgres continues to answer requests while no such change has been announced.
 */

import { PeriodicService } from '../../platform/runtime/periodicService.js';
import { withTimeout } from '../../platform/runtime/withTimeout.js';
import type { EventEmitter } from '../processEvents.js';
import type { RedisNode } from '../redis/node.js';
import type { RedisNodes } from '../redis/nodes.js';
import type { Catalog } from './catalog.js';

/**
 * Interval of the checks, in ms. If this process can't read a change, it notices this within 1 s after the
 * change. That second is the sum of this interval, the limits below, and 600 ms for reading the change.
 */
const LOOK_EVERY_MS = 100;
const ANNOUNCED_WITHIN_MS = 200;
/** Interval of the checks, in ms, while no announcements arrive. */
const QUIET_MS = 400;
/**
 * Maximum time without announcements plus the time of a check, in ms. It is what remains of a second if
 * reading a change takes its maximum time.
 */
const SILENCE_MS = 400;
/**
 * Time without announcements, in ms, after which every check also asks Redis. It is longer than the time
 * between two polls of the catalog (560 ms), since a poll reads or announces something. The excess over
 * SILENCE_MS is subtracted from the time that a read may take.
 */
const SILENT_AFTER_MS = 600;
/**
 * Interval, in ms, at which a check asks Redis even if announcements arrive, because a message or the data of
 * a node may have been lost.
 */
const ASK_EVERY_MS = 5000;
/**
 * Maximum duration of a check in ms, besides reading a change. Above the sum, this process counts as paused,
 * and a paused process may have missed revocations.
 */
const LOOK_MAX_MS = 400;
const LOOKS_MAX = 5;

export class Staleness extends PeriodicService {
  readonly name = 'catalog staleness';
  /**
   * Number of the newest restriction (a revoked key, or a changed or suspended partner or game) that any
   * process has announced.
   */
  #announced = 0n;
  /** Number of a change. All changes up to it were announced before a read that succeeded. */
  #caughtUpTo = 0n;
  #isBehind = false;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  /** Time at which the newest completed check began. */
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | undefined;
  #endFollowing: (() => void) | undefined;

  /** @param readWithinMs maximum time for reading a change, in milliseconds */
  constructor(
    private readonly catalog: Pick<Catalog, 'newestChange' | 'newestRestriction' | 'knownAtMs' | 'refresh'>,
    private readonly nodes: RedisNodes,
    private readonly datasetId: string,
    private readonly readWithinMs: number,
    events: EventEmitter,
  ) {
    super({ everyMs: LOOK_EVERY_MS, firstAfterMs: 0 });
    // A restriction is announced at once instead of at the next check.
    events.on('RestrictionRead', () => this.#askNow());
  }

  override async start(): Promise<void> {
    // Redis may have lost the announced number of the newest restriction in a restart.
    this.#endFollowing = this.nodes.onIdentified(() => this.#askNow());
    this.#lookedAtMs = performance.now();
    await super.start();
  }

  override async stop(): Promise<void> {
    this.#endFollowing?.();
    await super.stop();
  }

  /**
   * Whether this process must refuse requests: its catalog is stale, or it was paused and has not checked
   * since.
   */
  get isBehind(): boolean {
    return this.#isBehind || this.isBlind;
  }

  /**
   * Whether this process was paused and has not checked since. One check finds the changes that this process
   * missed.
   */
  get isBlind(): boolean {
    return performance.now() - this.#lookedAtMs > this.readWithinMs + LOOK_MAX_MS;
  }

  /**
   * Resolves after a check that all waiting callers share, whatever its result. It takes at most the time to
   * ask Redis and to read a change. If the process is paused again during a check, the check is repeated, up
   * to LOOKS_MAX times.
   */
  looked(): Promise<void> {
    this.#looking ??= this.#lookUntilSeen().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #lookUntilSeen(): Promise<void> {
    for (let looks = 0; looks < LOOKS_MAX && this.isBlind && !this.isStopped; looks++) await this.takeTurn();
  }

  /** Receives the number of a restriction that another process has read. */
  heard(restriction: bigint): void {
    if (restriction <= this.#announced) return;
    this.#announced = restriction;
    if (restriction > this.catalog.newestChange) this.hurry();
  }

  #askNow(): void {
    this.#askedAtMs = Number.NEGATIVE_INFINITY;
    this.hurry();
  }

  protected async turn(): Promise<void> {
    const nowMs = performance.now();
    const { knownAtMs } = this.catalog;
    // Time span, in ms, in which announcements may have been missed. Every announcement before that time span
    // has led to a read.
    const quietMs = nowMs - Math.max(knownAtMs, this.#askedAtMs);
    const silentInMs = knownAtMs + SILENT_AFTER_MS - nowMs;
    if (silentInMs <= 0 || nowMs - this.#askedAtMs > ASK_EVERY_MS) await this.#ask(nowMs);
    const announced = this.#announced;
    if (announced > this.catalog.newestChange && announced > this.#caughtUpTo) {
      // Successful reads are noted in addition to numbers. A comparison of numbers alone would fail after a
      // restore of Postgres to an earlier state, which has lower numbers.
      const lateMs = Math.max(0, Math.min(quietMs, SILENT_AFTER_MS + LOOK_EVERY_MS) - SILENCE_MS);
      const isRead = await withTimeout(this.catalog.refresh(), this.readWithinMs - lateMs).then(
        () => true,
        () => false,
      );
      if (isRead) this.#caughtUpTo = announced;
      // If the read failed, a poll of the catalog may nevertheless have read the change meanwhile.
      this.#isBehind = !isRead && announced > this.catalog.newestChange;
    } else {
      this.#isBehind = false;
      if (silentInMs > 0) this.postpone(Math.min(silentInMs, QUIET_MS));
    }
    this.#lookedAtMs = nowMs;
  }

  async #ask(nowMs: number): Promise<void> {
    const announced = await Promise.all(this.nodes.all.map((node) => this.#exchange(node)));
    // A node that did not respond is asked again at the next check.
    if (!announced.includes(undefined)) this.#askedAtMs = nowMs;
    for (const change of announced)
      if (change !== undefined && change > this.#announced) this.#announced = change;
  }

  /**
   * Reads the announced number of the newest restriction from a node. If this process knows a higher number,
   * announces that number on the node. Undefined if the node does not respond; nothing is dealt from the node
   * in that case.
   */
  async #exchange(node: RedisNode): Promise<bigint | undefined> {
    const { newestRestriction } = this.catalog;
    try {
      const announced = await withTimeout(
        this.nodes.announcedChange(node, this.datasetId),
        ANNOUNCED_WITHIN_MS,
      );
      if (announced < newestRestriction)
        await withTimeout(
          this.nodes.announceChange(node, this.datasetId, newestRestriction),
          ANNOUNCED_WITHIN_MS,
        );
      return announced;
    } catch {
      return undefined;
    }
  }
}
