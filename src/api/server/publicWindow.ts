/** How often a client without a key may ask for what is public: a fixed window by its address, in this process. */
import { ERRORS } from '../../domain/errors.js';
import { WINDOW_SECONDS } from './answerHead.js';
import { ClientCounts } from './clientCounts.js';
import type { Exchange } from './exchange.js';
import type { Replies } from './reply.js';

/** Requests of an address for pages in a window: 20 times what reading every page takes. */
const PAGES_MAX = 600;
/** Requests of an address for the API's documents in a window. */
const DOCUMENTS_MAX = 60;
/** Requests of an address for the public log in a window: a mirror reads 6,000 tiles a minute. */
const LOG_MAX = 6000;

export class PublicWindow {
  readonly #counts: ClientCounts;
  readonly #policy: string;
  readonly #limit: number;
  readonly #nowMs: () => number;

  private constructor(policy: string, limit: number, nowMs: () => number) {
    this.#policy = policy;
    this.#limit = limit;
    this.#nowMs = nowMs;
    this.#counts = new ClientCounts(WINDOW_SECONDS, nowMs);
  }

  /** For the pages of the documentation. */
  static ofPages(nowMs: () => number = Date.now): PublicWindow {
    return new PublicWindow('public', PAGES_MAX, nowMs);
  }

  /** For the documents of the API. */
  static ofDocuments(): PublicWindow {
    return new PublicWindow('openapi', DOCUMENTS_MAX, Date.now);
  }

  /** For the public log. */
  static ofLog(): PublicWindow {
    return new PublicWindow('log', LOG_MAX, Date.now);
  }

  /** Counts a request. @param address an IPv4 address or an IPv6 network */
  admits(address: string): boolean {
    return this.#counts.count(address).count <= this.#limit;
  }

  refuse(exchange: Exchange, replies: Replies): void {
    const nowMs = this.#nowMs();
    const window = { policy: this.#policy, limit: this.#limit, remaining: 0, nowMs };
    replies.error(exchange, ERRORS.apiRateExceeded, window);
  }
}
