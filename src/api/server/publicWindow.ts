/**
 * Limits the rate of requests for public resources without a key, by client address, in a fixed window of
 * this process.
 */
import { ERRORS } from '../../domain/errors.js';
import { WINDOW_SECONDS } from './answerHead.js';
import { ClientCounts } from './clientCounts.js';
import type { Exchange } from './exchange.js';
import type { Replies } from './reply.js';

/**
 * Maximum number of requests for pages from one address per window: 20 times the number of requests that
 * reading every page needs.
 */
const PAGES_MAX = 600;
const DOCUMENTS_MAX = 60;
/**
 * Maximum number of requests for the public log from one address per window. A mirror reads 6,000 tiles a
 * minute.
 */
const LOG_MAX = 6000;

export class PublicWindow {
  readonly #counts: ClientCounts;

  private constructor(
    private readonly policy: string,
    private readonly limit: number,
    private readonly nowMs: () => number,
  ) {
    this.#counts = new ClientCounts(WINDOW_SECONDS, nowMs);
  }

  static ofPages(nowMs: () => number = Date.now): PublicWindow {
    return new PublicWindow('public', PAGES_MAX, nowMs);
  }

  static ofDocuments(): PublicWindow {
    return new PublicWindow('openapi', DOCUMENTS_MAX, Date.now);
  }

  static ofLog(): PublicWindow {
    return new PublicWindow('log', LOG_MAX, Date.now);
  }

  /**
   * Returns whether it is within the limit.
   * @param address an IPv4 address or an IPv6 network
   */
  admits(address: string): boolean {
    return this.#counts.count(address).count <= this.limit;
  }

  refuse(exchange: Exchange, replies: Replies): void {
    const nowMs = this.nowMs();
    const window = { policy: this.policy, limit: this.limit, remaining: 0, nowMs };
    replies.error(exchange, ERRORS.apiRateExceeded, window);
  }
}
