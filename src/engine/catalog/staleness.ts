/**
 * Says whether the catalog is behind: a key was revoked, or a partner or game was changed or suspended, and this process can't
 * read it from Postgres. A revoked key must not be accepted then, so nothing is. What is only added holds nobody up.
 *
 *   Postgres ──poll──> catalog of any process ──announcement──> catalogs of all others (catalogAnnouncements.ts)
 *                                 └──the change's number──> Redis ──poll where nothing is heard or read──> staleness of all others
 *
 * A process that has lost Postgres goes on while nothing of that kind has changed.
 */

import { PeriodicService } from '../../platform/runtime/periodicService.js';
import { withTimeout } from '../../platform/runtime/withTimeout.js';
import type { EventEmitter } from '../processEvents.js';
import type { RedisNode } from '../redis/node.js';
import type { RedisNodes } from '../redis/nodes.js';
import type { Catalog } from './catalog.js';

/** With the limits below, and 600 ms to read a change, it is known within 1 s of a change that it can't be read. */
const LOOK_EVERY_MS = 100;
const ANNOUNCED_WITHIN_MS = 200;
/** Rest between two looks while it is known that nothing was announced. */
const QUIET_MS = 400;
/** What is left of the second for silence and a look, where a read takes as long as it may. */
const SILENCE_MS = 400;
/**
 * Silence, in ms, after which every look also asks Redis. It is longer than the time between two polls of the catalog (560 ms), since a
 * poll reads or announces something. What it exceeds SILENCE_MS by is taken from the time that a read may take.
 */
const SILENT_AFTER_MS = 600;
/** Without silence a look asks Redis this often, in ms: a message, or the data of a node, may have been lost. */
const ASK_EVERY_MS = 5000;
/** A process whose last look began longer ago, in ms, was paused: it can't know what was revoked meanwhile. */
const BLIND_AFTER_MS = 1000;
const LOOKS_MAX = 5;

export class Staleness extends PeriodicService {
  readonly name = 'catalog staleness';
  readonly #catalog: Pick<Catalog, 'newestChange' | 'newestRestriction' | 'knownAtMs' | 'refresh'>;
  readonly #nodes: RedisNodes;
  readonly #datasetId: string;
  readonly #readWithinMs: number;
  /** The newest change that was announced. */
  #announced = 0n;
  /** All changes up to this one were announced before a read that succeeded. */
  #caughtUpTo = 0n;
  #isBehind = false;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  /** When the last look that has ended began. */
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | undefined;
  #endFollowing: (() => void) | undefined;

  /** @param readWithinMs how long a change may take to be read, in milliseconds */
  constructor(
    catalog: Pick<Catalog, 'newestChange' | 'newestRestriction' | 'knownAtMs' | 'refresh'>,
    nodes: RedisNodes,
    datasetId: string,
    readWithinMs: number,
    events: EventEmitter,
  ) {
    super({ everyMs: LOOK_EVERY_MS, firstAfterMs: 0 });
    this.#catalog = catalog;
    this.#nodes = nodes;
    this.#datasetId = datasetId;
    this.#readWithinMs = readWithinMs;
    // Announced at once, not at the next look.
    events.on('RestrictionRead', () => this.#askNow());
  }

  override async start(): Promise<void> {
    // A server that was started again may hold less than before.
    this.#endFollowing = this.#nodes.onIdentified(() => this.#askNow());
    this.#lookedAtMs = performance.now();
    await super.start();
  }

  override async stop(): Promise<void> {
    this.#endFollowing?.();
    await super.stop();
  }

  /** What is known of partners, keys and games is known to be old, or this process stood still and has not looked since. */
  get isBehind(): boolean {
    return this.#isBehind || this.isBlind;
  }

  /** This process stood still and has not looked since: one look tells what it missed. */
  get isBlind(): boolean {
    return performance.now() - this.#lookedAtMs > BLIND_AFTER_MS;
  }

  /**
   * Resolves after a look that all who wait share, whatever it found; within the time to ask Redis and to read a change. A look during
   * which the process stood still again is as old as its begin, and is followed by another, a few times.
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

  /** Another process knows a change of that number, and so do all that look at Redis. */
  heard(restriction: bigint): void {
    if (restriction <= this.#announced) return;
    this.#announced = restriction;
    if (restriction > this.#catalog.newestChange) this.hurry();
  }

  #askNow(): void {
    this.#askedAtMs = Number.NEGATIVE_INFINITY;
    this.hurry();
  }

  protected async turn(): Promise<void> {
    const nowMs = performance.now();
    const { knownAtMs } = this.#catalog;
    // All that was announced before is known.
    const quietMs = nowMs - Math.max(knownAtMs, this.#askedAtMs);
    const silentInMs = knownAtMs + SILENT_AFTER_MS - nowMs;
    if (silentInMs <= 0 || nowMs - this.#askedAtMs > ASK_EVERY_MS) await this.#ask(nowMs);
    const announced = this.#announced;
    if (announced > this.#catalog.newestChange && announced > this.#caughtUpTo) {
      // Not by the number alone: a Postgres that was put back to an earlier state has lower ones.
      const lateMs = Math.max(0, Math.min(quietMs, SILENT_AFTER_MS + LOOK_EVERY_MS) - SILENCE_MS);
      const isRead = await withTimeout(this.#catalog.refresh(), this.#readWithinMs - lateMs).then(
        () => true,
        () => false,
      );
      if (isRead) this.#caughtUpTo = announced;
      // The poll may have read it meanwhile.
      this.#isBehind = !isRead && announced > this.#catalog.newestChange;
    } else {
      this.#isBehind = false;
      if (silentInMs > 0) this.postpone(Math.min(silentInMs, QUIET_MS));
    }
    this.#lookedAtMs = nowMs;
  }

  protected onTurnFailed(): void {}

  async #ask(nowMs: number): Promise<void> {
    const announced = await Promise.all(this.#nodes.all.map((node) => this.#exchange(node)));
    // A node that has not answered is asked again with the next look.
    if (!announced.includes(undefined)) this.#askedAtMs = nowMs;
    for (const change of announced)
      if (change !== undefined && change > this.#announced) this.#announced = change;
  }

  /** Learns what was announced to a node, and announces to it what it was not. Undefined where it does not answer: nothing is dealt from it then. */
  async #exchange(node: RedisNode): Promise<bigint | undefined> {
    const { newestRestriction } = this.#catalog;
    try {
      const announced = await withTimeout(
        this.#nodes.announcedChange(node, this.#datasetId),
        ANNOUNCED_WITHIN_MS,
      );
      if (announced < newestRestriction)
        await withTimeout(
          this.#nodes.announceChange(node, this.#datasetId, newestRestriction),
          ANNOUNCED_WITHIN_MS,
        );
      return announced;
    } catch {
      return undefined;
    }
  }
}
