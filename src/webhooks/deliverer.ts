/**
 * Delivers events to webhooks.
 *
 *   pending ──due──> leased ──attempt──> 2xx: delivered
 *      ▲                │       │
 *      │                │       └──> anything else: due again after a wait, or failed after the last attempt
 *      └────────────────┘ the worker ended: its lease lapses
 *
 * One loop records what has come back, prolongs leases and claims what is due; the attempts run beside it. So deliveries
 * need one connection of the pool, however many are under way. Of each webhook only a few are, and each attempt has an end:
 * one that hangs takes nothing from the others. Those that are known to be slow have no more than half of the room together,
 * however many they are. A result is kept until it is written down.
 *
 * A host gets a bounded number of attempts in a minute, whoever's webhooks lead to it, and half of them from one partner; its
 * webhooks take turns. One that only fails gets a single attempt now and then until it succeeds (deliveries.store.ts). So
 * nobody can be flooded through this service, and neither a partner nor a dead webhook takes a host from its neighbours.
 */
import { setImmediate } from 'node:timers/promises';
import type { EventEmitter } from '../engine/processEvents.js';
import { WOKEN_MS } from '../platform/runtime/periodicService.js';
import { HEALTHY, type Health, type Service, unhealthy } from '../platform/runtime/service.js';
import { withTimeout } from '../platform/runtime/withTimeout.js';
import type { Sql } from '../postgres/connection.js';
import {
  type AttemptResult,
  claimDue,
  type DueDelivery,
  nextDueMs,
  prolongLeases,
  recordAttempts,
  releaseLeases,
} from './deliveries.store.js';
import type { Sender, Sending, SendResult } from './sender.js';

export interface DelivererOptions {
  /** Waits after the first, second, … failed attempt. */
  readonly retryDelaysMs: readonly number[];
  /** Attempts to one host in a minute, over all webhooks and workers. */
  readonly hostAttemptsMax: number;
  readonly events: EventEmitter;
}

/** Of one webhook under way at a time, in this process. */
const PER_WEBHOOK_MAX = 4;
const UNDER_WAY_MAX = 512;
/** Of webhooks that are slow. */
const SLOW_UNDER_WAY_MAX = 256;
/** Slow is a webhook whose newest attempt took longer, or that has one under way for longer. */
const SLOW_MS = 2000;
/** Begun before others have their turn. */
const BEGUN_AT_ONCE = 8;
/** How often is looked whether what is due may be sent now. */
const POLL_MS = 250;
const RETRY_MS = 250;
/** A delivery whose worker was killed is due again after this. */
const LEASE_MS = 6000;
const PROLONG_MS = 2000;
/** At a stop the attempts under way may take so long; then they are made again, elsewhere or later. */
const DELIVER_AT_STOP_MS = 2000;

interface UnderWay {
  readonly started: number;
  readonly due: DueDelivery;
  readonly sending: Sending;
}

export class Deliverer implements Service {
  readonly name = 'webhook deliveries';
  readonly #sql: Sql;
  readonly #sender: Sender;
  readonly #options: DelivererOptions;
  readonly #underWay = new Map<string, UnderWay>();
  /** Webhooks whose newest attempt took long. */
  readonly #slow = new Set<number>();
  #results: AttemptResult[] = [];
  #prolongedAt = 0;
  #isStopping = false;
  /** Of the newest look for due deliveries; undefined: it succeeded. */
  #problem: string | undefined;
  #loop: Promise<void> = Promise.resolve();
  #isWoken = false;
  #wake: () => void = () => {};

  constructor(sql: Sql, sender: Sender, options: DelivererOptions) {
    this.#sql = sql;
    this.#sender = sender;
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#loop = this.#run();
  }

  health(): Health {
    return this.#problem === undefined ? HEALTHY : unhealthy(this.#problem);
  }

  /** Looks for due deliveries now: some may have been recorded. */
  wake(): void {
    this.#isWoken = true;
    this.#wake();
  }

  get underWay(): number {
    return this.#underWay.size;
  }

  /** Begins no attempt any more; those under way have two seconds, then others make them again. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.wake();
    await this.#loop;
    const all = Promise.all([...this.#underWay.values()].map(({ sending }) => sending.outcome));
    await withTimeout(all, DELIVER_AT_STOP_MS).catch(() => {});
    for (const { sending } of this.#underWay.values()) sending.giveUp();
    await all;
    try {
      await this.#record();
      if (this.#underWay.size > 0) await releaseLeases(this.#sql, [...this.#underWay.keys()]);
    } catch (error) {
      this.#report(error);
    }
  }

  async #run(): Promise<void> {
    while (!this.#isStopping) {
      this.#isWoken = false;
      let pauseMs = POLL_MS;
      try {
        await this.#record();
        await this.#prolong();
        const dueMs = await nextDueMs(this.#sql);
        const begun = dueMs > 0 ? 0 : await this.#claim();
        this.#problem = undefined;
        if (begun > 0) continue;
        if (dueMs > 0) pauseMs = Math.min(WOKEN_MS, Math.ceil(dueMs));
      } catch (error) {
        this.#report(error);
        // Not before its time, even where attempts come back meanwhile.
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        pauseMs = 0;
      }
      await this.#pause(pauseMs);
    }
  }

  #report(error: unknown): void {
    this.#problem = error instanceof Error ? error.message : String(error);
    this.#options.events.emit('TaskFailed', { task: 'webhook delivery', error });
  }

  #pause(ms: number): Promise<void> {
    if (this.#isWoken || this.#isStopping) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async #record(): Promise<void> {
    const results = this.#results;
    if (results.length === 0) return;
    // What comes meanwhile gathers anew.
    this.#results = [];
    try {
      await recordAttempts(this.#sql, results, this.#options.retryDelaysMs);
    } catch (error) {
      this.#results = [...results, ...this.#results];
      throw error;
    }
    for (const { deliveryId } of results) this.#underWay.delete(deliveryId);
  }

  async #prolong(): Promise<void> {
    const now = performance.now();
    if (this.#underWay.size === 0 || now - this.#prolongedAt < PROLONG_MS) return;
    await prolongLeases(this.#sql, [...this.#underWay.keys()], LEASE_MS);
    this.#prolongedAt = now;
  }

  /** Claims what there is room for, and begins its attempts; gives how many. */
  async #claim(): Promise<number> {
    const room = UNDER_WAY_MAX - this.#underWay.size;
    if (room <= 0) return 0;
    const busy = new Map<number, number>();
    const slow = new Set(this.#slow);
    const longAgo = performance.now() - SLOW_MS;
    for (const { due, started } of this.#underWay.values()) {
      busy.set(due.webhookId, (busy.get(due.webhookId) ?? 0) + 1);
      if (started < longAgo) slow.add(due.webhookId);
    }
    const perHost = this.#options.hostAttemptsMax;
    const limits = { perWebhook: PER_WEBHOOK_MAX, perHost, leaseMs: LEASE_MS };
    const claimed = await claimDue(this.#sql, busy, { webhooks: slow, only: false }, { ...limits, room });
    let slowUnderWay = 0;
    for (const webhookId of slow) slowUnderWay += busy.get(webhookId) ?? 0;
    const slowRoom = Math.min(room - claimed.length, SLOW_UNDER_WAY_MAX - slowUnderWay);
    if (slow.size > 0 && slowRoom > 0) {
      const few = { ...limits, room: slowRoom };
      claimed.push(...(await claimDue(this.#sql, busy, { webhooks: slow, only: true }, few)));
    }
    let begun = 0;
    for (const due of claimed) {
      // Its lease had lapsed while the process stood still: it is under way all the same.
      if (this.#underWay.has(due.deliveryId)) continue;
      this.#begin(due);
      // Hundreds in one go would hold up every spin of this process by a tenth of a second.
      if (++begun % BEGUN_AT_ONCE === 0) await setImmediate();
    }
    return begun;
  }

  #begin(due: DueDelivery): void {
    const started = performance.now();
    const atMs = Date.now();
    const sending = this.#sender.send(due);
    this.#underWay.set(due.deliveryId, { due, sending, started });
    void sending.outcome.then((outcome) => {
      if (outcome === undefined) return;
      const tookMs = performance.now() - started;
      if (tookMs > SLOW_MS) this.#slow.add(due.webhookId);
      else this.#slow.delete(due.webhookId);
      this.#reportAttempt(due, outcome, tookMs / 1000);
      this.#results.push({ deliveryId: due.deliveryId, attempt: due.attempts + 1, atMs, ...outcome });
      this.wake();
    });
  }

  #reportAttempt(due: DueDelivery, outcome: SendResult, seconds: number): void {
    const { deliveryId, webhookId, event, maxAttempts } = due;
    const { isDelivered, responseStatus, error } = outcome;
    const attempt = due.attempts + 1;
    const result = isDelivered ? 'delivered' : attempt < maxAttempts ? 'failed' : 'exhausted';
    const { events } = this.#options;
    events.emit('DeliveryAttempted', {
      deliveryId,
      webhookId,
      event,
      attempt,
      result,
      responseStatus,
      error,
      seconds,
    });
  }
}
