/**
 * Delivers events to webhooks.
 *
 *   pending ──due──> leased ──attempt──> 2xx: delivered
 *      ▲                │       │
 *      │                │       └──> any other result: due again after a wait, or failed after the last one
 *      └────────────────┘ the worker ended: its lease expires
 *
 * One loop records results, renews leases and claims due deliveries. The attempts run concurrently with this
 * loop, so all deliveries together need one pool connection. A result is kept in memory until it is recorded.
 *
 * The number of concurrent attempts is limited, so that no receiver that hangs delays the others:
 *
 *   all             512, at most 256 to slow webhooks
 *   one partner      64, at most 32 to slow webhooks
 *   one webhook      64 like its partner; 4 if it is slow, if its newest attempt failed, or while 256
 *                    attempts to webhooks that are not slow are in progress
 *
 * A host receives a limited number of attempts per minute over all its webhooks, and at most half of them
 * from one partner. The webhooks of a host take turns. A webhook that always fails gets a single attempt from
 * time to time until it succeeds (deliveries.store.ts). This way the service can't be used to flood a host,
 * and neither a partner nor a dead webhook can use up the limit of a shared host.
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
  FEW,
  nextDueMs,
  PER_PARTNER_MAX,
  prolongLeases,
  recordAttempts,
  releaseLeases,
  type SendResult,
} from './deliveries.store.js';
import type { Sender, Sending } from './sender.js';

const UNDER_WAY_MAX = 512;
/**
 * Number of concurrent attempts to webhooks that are not slow, from which on a further attempt must be one of
 * the first {@link FEW} of its webhook. The rest of the capacity is so kept for webhooks with fewer attempts.
 */
const BEYOND_FEW_MAX = 256;
/** Maximum number of concurrent attempts to slow webhooks. */
const SLOW_UNDER_WAY_MAX = 256;
/**
 * Duration of an attempt, in ms, above which a webhook counts as slow. The duration of the newest attempt and
 * of attempts in progress is compared with it.
 */
const SLOW_MS = 2000;
/** Number of attempts started before control returns to the event loop. */
const BEGUN_AT_ONCE = 8;
/** Poll interval for due deliveries that may be sent now, in ms. */
const POLL_MS = 250;
const RETRY_MS = 250;
/**
 * Duration of the lease of a delivery, in ms. If its worker is killed, the delivery is due again after this
 * time.
 */
const LEASE_MS = 6000;
const PROLONG_MS = 2000;
/**
 * Time that attempts in progress have when the deliverer stops, in ms. Unfinished attempts are repeated after
 * a restart, or by another worker.
 */
const DELIVER_AT_STOP_MS = 2000;

interface UnderWay {
  readonly started: number;
  readonly due: DueDelivery;
  readonly sending: Sending;
}

export class Deliverer implements Service {
  readonly name = 'webhook deliveries';
  readonly #underWay = new Map<string, UnderWay>();
  /** Webhooks whose newest attempt was slow. */
  readonly #slow = new Set<number>();
  #results: AttemptResult[] = [];
  #prolongedAt = 0;
  #isStopping = false;
  /** Error of the newest poll for due deliveries; undefined if it succeeded. */
  #problem: string | undefined;
  #loop: Promise<void> = Promise.resolve();
  #isWoken = false;
  #wake: () => void = () => {};

  constructor(
    private readonly sql: Sql,
    private readonly sender: Sender,
    private readonly options: {
      /** Waits after the first, second, and further failed attempts, in ms. */
      readonly retryDelaysMs: readonly number[];
      /** Maximum number of attempts to one host per minute, over all webhooks and workers. */
      readonly hostAttemptsMax: number;
      readonly events: EventEmitter;
    },
  ) {}

  async start(): Promise<void> {
    this.#loop = this.#run();
  }

  health(): Health {
    return this.#problem === undefined ? HEALTHY : unhealthy(this.#problem);
  }

  wake(): void {
    this.#isWoken = true;
    this.#wake();
  }

  get underWay(): number {
    return this.#underWay.size;
  }

  /**
   * Starts no further attempts. Attempts in progress have two seconds to end; after that, other workers
   * repeat them.
   */
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
      if (this.#underWay.size > 0) await releaseLeases(this.sql, [...this.#underWay.keys()]);
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
        const dueMs = await nextDueMs(this.sql);
        const begun = dueMs > 0 ? 0 : await this.#claim();
        this.#problem = undefined;
        if (begun > 0) continue;
        if (dueMs > 0) pauseMs = Math.min(WOKEN_MS, Math.ceil(dueMs));
      } catch (error) {
        this.#report(error);
        // The loop waits the full retry interval after an error, even if attempts finish meanwhile.
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        pauseMs = 0;
      }
      await this.#pause(pauseMs);
    }
  }

  #report(error: unknown): void {
    this.#problem = error instanceof Error ? error.message : String(error);
    this.options.events.emit('TaskFailed', { task: 'webhook delivery', error });
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
    // Results that arrive while earlier ones are being recorded go into a new list.
    this.#results = [];
    try {
      await recordAttempts(this.sql, results, this.options.retryDelaysMs);
    } catch (error) {
      this.#results = [...results, ...this.#results];
      throw error;
    }
    for (const { deliveryId } of results) this.#underWay.delete(deliveryId);
  }

  async #prolong(): Promise<void> {
    const now = performance.now();
    if (this.#underWay.size === 0 || now - this.#prolongedAt < PROLONG_MS) return;
    await prolongLeases(this.sql, [...this.#underWay.keys()], LEASE_MS);
    this.#prolongedAt = now;
  }

  /**
   * Claims as many deliveries as there is capacity for and starts their attempts.
   * @returns the number of started attempts
   */
  async #claim(): Promise<number> {
    const room = UNDER_WAY_MAX - this.#underWay.size;
    if (room <= 0) return 0;
    const busy = new Map<number, number>();
    const slow = new Set(this.#slow);
    const longAgo = performance.now() - SLOW_MS;
    for (const { due, started } of this.#underWay.values()) {
      count(busy, due);
      if (started < longAgo) slow.add(due.webhookId);
    }
    let slowUnderWay = 0;
    for (const webhookId of slow) slowUnderWay += busy.get(webhookId) ?? 0;
    const quickUnderWay = this.#underWay.size - slowUnderWay;
    const limits = { perHost: this.options.hostAttemptsMax, leaseMs: LEASE_MS };
    const claimed: DueDelivery[] = [];
    // Slow webhooks come first. Otherwise the other webhooks of their partner could take every attempt that
    // the partner may still have.
    const slowRoom = Math.min(room, SLOW_UNDER_WAY_MAX - slowUnderWay);
    if (slow.size > 0 && slowRoom > 0) {
      const few = { perPartner: PER_PARTNER_MAX / 2, perWebhook: FEW, room: slowRoom, roomBeyondFew: 0 };
      claimed.push(
        ...(await claimDue(this.sql, busy, { webhooks: slow, only: true }, { ...limits, ...few })),
      );
      for (const due of claimed) count(busy, due);
    }
    const many = {
      perPartner: PER_PARTNER_MAX,
      perWebhook: PER_PARTNER_MAX,
      room: room - claimed.length,
      roomBeyondFew: BEYOND_FEW_MAX - quickUnderWay,
    };
    claimed.push(
      ...(await claimDue(this.sql, busy, { webhooks: slow, only: false }, { ...limits, ...many })),
    );
    let begun = 0;
    for (const due of claimed) {
      // The delivery's lease expired while the process was paused, but its attempt is still in progress here.
      if (this.#underWay.has(due.deliveryId)) continue;
      this.#begin(due);
      // Starting hundreds of attempts at once would delay every spin of this process by a tenth of a second.
      if (++begun % BEGUN_AT_ONCE === 0) await setImmediate();
    }
    return begun;
  }

  #begin(due: DueDelivery): void {
    const started = performance.now();
    const atMs = Date.now();
    const sending = this.sender.send(due);
    this.#underWay.set(due.deliveryId, { due, sending, started });
    void sending.outcome.then((outcome) => {
      if (outcome === undefined) return;
      const tookMs = performance.now() - started;
      if (tookMs > SLOW_MS) this.#slow.add(due.webhookId);
      else this.#slow.delete(due.webhookId);
      this.#reportAttempt(due, outcome, tookMs / 1000);
      this.#results.push({ deliveryId: due.deliveryId, attempt: due.attempts + 1, atMs, tookMs, ...outcome });
      this.wake();
    });
  }

  #reportAttempt(due: DueDelivery, outcome: SendResult, seconds: number): void {
    const { deliveryId, webhookId, event, maxAttempts } = due;
    const { isDelivered, responseStatus, error } = outcome;
    const attempt = due.attempts + 1;
    const result = isDelivered ? 'delivered' : attempt < maxAttempts ? 'failed' : 'exhausted';
    const { events } = this.options;
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

function count(busy: Map<number, number>, { webhookId }: DueDelivery): void {
  busy.set(webhookId, (busy.get(webhookId) ?? 0) + 1);
}
