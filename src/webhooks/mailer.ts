/**
 * Sends e-mails of the outbox through an SMTP server, one after the other, at least once: an e-mail whose sending was cut off
 * goes out again under the same Message-ID. Without a server each is marked as unsent.
 */
import { createTransport, type Transporter } from 'nodemailer';
import { emailOf } from '../domain/email.js';
import { EMAIL_PATTERN } from '../domain/schema.js';
import type { EventEmitter } from '../engine/processEvents.js';
import { IDLE, PeriodicService, WOKEN_MS } from '../platform/runtime/periodicService.js';
import { withTimeout } from '../platform/runtime/withTimeout.js';
import type { Sql } from '../postgres/connection.js';
import { recordAttempts } from './deliveries.store.js';
import { claimEmails, type DueEmail, leaveEmailsUnsent } from './notices.store.js';

export interface MailerOptions {
  /** `smtp://` or `smtps://`; undefined: nothing can be sent. */
  readonly smtpUrl: string | undefined;
  /** Address of the sender. */
  readonly from: string;
  readonly brand: string;
  /** Waits after the first, second, … failed attempt. */
  readonly retryDelaysMs: readonly number[];
  readonly events: EventEmitter;
}

const POLL_MS = 1000;
const CLAIMED_MAX = 8;
const CONNECT_TIMEOUT_MS = 5000;
const ATTEMPT_TIMEOUT_MS = 10_000;
/** All that are claimed together have an end by then, each with its whole time. */
const LEASE_MS = CLAIMED_MAX * ATTEMPT_TIMEOUT_MS + 10_000;
/** Of one reply of the server. */
const RESPONSE_BYTES_MAX = 65_536;
const ERROR_CHARACTERS_MAX = 200;
const ADDRESS = new RegExp(EMAIL_PATTERN, 'u');

export class Mailer extends PeriodicService {
  readonly name = 'e-mail';
  /** An attempt may be under way. */
  readonly stopTimeoutMs = ATTEMPT_TIMEOUT_MS;
  readonly #sql: Sql;
  readonly #options: MailerOptions;
  readonly #transport: Transporter | undefined;

  constructor(sql: Sql, options: MailerOptions) {
    super({ everyMs: POLL_MS, firstAfterMs: 0, idleMs: WOKEN_MS });
    this.#sql = sql;
    this.#options = options;
    const { smtpUrl } = options;
    if (smtpUrl === undefined) return;
    this.#transport = createTransport({
      url: smtpUrl,
      connectionTimeout: CONNECT_TIMEOUT_MS,
      greetingTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: ATTEMPT_TIMEOUT_MS,
      maxResponseSize: RESPONSE_BYTES_MAX,
      // A template has texts of partners: none of them is a file or an address to be read.
      disableFileAccess: true,
      disableUrlAccess: true,
    });
  }

  /** Looks for due e-mails now: some may have been recorded. */
  wake(): void {
    this.hurry();
  }

  override async stop(): Promise<void> {
    await super.stop();
    this.#transport?.close();
  }

  protected async turn(): Promise<typeof IDLE | undefined> {
    if (this.#transport === undefined) {
      const unsent = await leaveEmailsUnsent(this.#sql);
      if (unsent === 0) return IDLE;
      this.#options.events.emit('EmailsLeftUnsent', { emails: unsent });
      return;
    }
    const claimed = await claimEmails(this.#sql, { room: CLAIMED_MAX, leaseMs: LEASE_MS });
    if (claimed.length === 0) return IDLE;
    for (const due of claimed) {
      // Its lease lapses, and another worker sends it.
      if (this.isStopped) return;
      await this.#send(this.#transport, due);
    }
  }

  protected onTurnFailed(error: unknown): void {
    this.#options.events.emit('TaskFailed', { task: 'e-mail delivery', error });
  }

  async #send(transport: Transporter, due: DueEmail): Promise<void> {
    const { from, brand, retryDelaysMs, events } = this.#options;
    const { deliveryId, event, recipient, maxAttempts } = due;
    const attempt = due.attempts + 1;
    const atMs = Date.now();
    let error: string | null = null;
    try {
      // A setting of an earlier version may hold what a mail server would read as another address.
      if (!ADDRESS.test(recipient)) throw new Error('not one e-mail address');
      const { data } = JSON.parse(due.body) as { data: unknown };
      const sent = transport.sendMail({
        from,
        to: recipient,
        envelope: { from, to: [recipient] },
        messageId: `<${deliveryId}@${from.slice(from.lastIndexOf('@') + 1)}>`,
        headers: { 'Auto-Submitted': 'auto-generated' },
        ...emailOf(event, data, brand),
      });
      await withTimeout(sent, ATTEMPT_TIMEOUT_MS);
    } catch (reason) {
      error = (reason instanceof Error ? reason.message : String(reason)).slice(0, ERROR_CHARACTERS_MAX);
    }
    const isDelivered = error === null;
    const result = { deliveryId, attempt, isDelivered, responseStatus: null, error, atMs };
    await recordAttempts(this.#sql, [result], retryDelaysMs);
    const became = isDelivered ? 'sent' : attempt < maxAttempts ? 'failed' : 'exhausted';
    events.emit('EmailAttempted', { deliveryId, event, attempt, result: became, error });
  }
}
