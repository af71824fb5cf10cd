/**
 * Sends e-mails of the outbox through an SMTP server, one at a time and at least once. An e-mail whose
 * sending was interrupted is sent again with the same Message-ID. Without an SMTP server, each e-mail is
 * marked as unsent.
 */
import { createTransport, type Transporter } from 'nodemailer';
import { emailOf } from '../domain/email.js';
import { EMAIL_PATTERN } from '../domain/schema.js';
import { type EventEmitter, taskFailed } from '../engine/processEvents.js';
import { IDLE, PeriodicService, WOKEN_MS } from '../platform/runtime/periodicService.js';
import { withTimeout } from '../platform/runtime/withTimeout.js';
import type { Sql } from '../postgres/connection.js';
import { recordAttempts } from './deliveries.store.js';
import { claimEmails, type DueEmail, leaveEmailsUnsent } from './notices.store.js';

export interface MailerOptions {
  /** URL of the SMTP server, `smtp://` or `smtps://`; undefined if e-mails can't be sent. */
  readonly smtpUrl: string | undefined;
  readonly from: string;
  readonly brand: string;
  /** Waits after the first, second, and further failed attempts, in ms. */
  readonly retryDelaysMs: readonly number[];
  readonly events: EventEmitter;
}

const POLL_MS = 1000;
const CLAIMED_MAX = 8;
const CONNECT_TIMEOUT_MS = 5000;
const ATTEMPT_TIMEOUT_MS = 10_000;
/**
 * Lease of claimed e-mails, in ms. It is long enough even if each claimed e-mail takes its full attempt
 * timeout.
 */
const LEASE_MS = CLAIMED_MAX * ATTEMPT_TIMEOUT_MS + 10_000;
/** Maximum size of one reply of the SMTP server, in bytes. */
const RESPONSE_BYTES_MAX = 65_536;
const ERROR_CHARACTERS_MAX = 200;
const ADDRESS = new RegExp(EMAIL_PATTERN, 'u');

export class Mailer extends PeriodicService {
  readonly name = 'e-mail';
  /** An attempt may be in progress when the mailer stops, so the stop waits for one attempt timeout. */
  readonly stopTimeoutMs = ATTEMPT_TIMEOUT_MS;
  readonly #sql: Sql;
  readonly #options: MailerOptions;
  readonly #transport: Transporter | undefined;

  constructor(sql: Sql, options: MailerOptions) {
    super(
      { everyMs: POLL_MS, firstAfterMs: 0, idleMs: WOKEN_MS },
      taskFailed(options.events, 'e-mail delivery'),
    );
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
      // Texts in an e-mail come from partners, so they must not make the mail library read files or URLs.
      disableFileAccess: true,
      disableUrlAccess: true,
    });
  }

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
      // After a stop, the leases of the remaining e-mails expire and another worker sends them.
      if (this.isStopped) return;
      await this.#send(this.#transport, due);
    }
  }

  async #send(transport: Transporter, due: DueEmail): Promise<void> {
    const { from, brand, retryDelaysMs, events } = this.#options;
    const { deliveryId, event, recipient, maxAttempts } = due;
    const attempt = due.attempts + 1;
    const atMs = Date.now();
    let error: string | null = null;
    try {
      // An address stored by an earlier version may contain text that a mail server would read as several
      // addresses.
      if (!ADDRESS.test(recipient)) throw new Error('the recipient is not a single e-mail address');
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
    const noResponse = { responseStatus: null, responseStart: null };
    const tookMs = Date.now() - atMs;
    const result = { deliveryId, attempt, isDelivered, ...noResponse, error, atMs, tookMs };
    await recordAttempts(this.#sql, [result], retryDelaysMs);
    const became = isDelivered ? 'sent' : attempt < maxAttempts ? 'failed' : 'exhausted';
    events.emit('EmailAttempted', { deliveryId, event, attempt, result: became, error });
  }
}
