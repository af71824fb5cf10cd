/**
 * The errors that the client throws: the service refused a request, did not answer, or the result of a spin
 * is unknown.
 */
import { ERROR_CATALOG, type ErrorCode, type Happened, type RetryClass } from './errorCatalog.js';

export type { ErrorCode, Happened, RetryClass } from './errorCatalog.js';

type CatalogEntry = { readonly retry: RetryClass; readonly happened?: Happened };
const CATALOG: Readonly<Record<string, CatalogEntry>> = ERROR_CATALOG;

/** One fault of a refused request. */
export interface Fault {
  /** JSON Pointer (RFC 6901) to the faulty member of the request; empty for the whole request. */
  readonly path: string;
  readonly message: string;
}

export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly details?: readonly Fault[] | undefined;
  readonly httpRequestId?: string | undefined;
  /** @deprecated Old name of `httpRequestId`. */
  readonly requestId?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
}

/** An error whose JSON has its message, which the JSON of other errors leaves out. */
abstract class ClientError extends Error {
  /** Returns the members for `JSON.stringify`, without an error of `fetch`, because it may be circular. */
  toJSON(): object {
    const cause = this.cause instanceof ClientError ? this.cause : undefined;
    return { ...this, message: this.message, cause };
  }
}

/** The service answered with an error of its catalog. */
export class SpindleError extends ClientError {
  override readonly name = 'SpindleError';
  /**
   * Error code such as `KS-4103`. A newer service may send codes that this version of the client does not
   * know.
   */
  readonly code: ErrorCode | (string & {});
  /** Status code of the HTTP response. */
  readonly status: number;
  /** The next step for the caller: never repeat, repeat later, or repeat with the same or a new requestId. */
  readonly retry: RetryClass;
  /**
   * What this error says about the spin or deal: did it happen? An earlier attempt may have happened even if
   * this one did not. The methods `spin` and `blackjack.deal` look at all attempts and throw an
   * UnknownSpinError if one of them may have happened.
   */
  readonly happened: Happened;
  /** Faults of the request; empty if the message says everything. */
  readonly details: readonly Fault[];
  /**
   * Id of the HTTP request in the service's log (`X-Request-Id`). A spin must not be repeated with it: the
   * requestId of a spin is that of its body.
   */
  readonly httpRequestId: string | undefined;
  /** Value of the `Retry-After` header, in seconds. */
  readonly retryAfterSeconds: number | undefined;

  constructor(refusal: Refusal) {
    super(refusal.message);
    this.code = refusal.code;
    this.status = refusal.status;
    const known: CatalogEntry | undefined = CATALOG[refusal.code];
    // A code of a newer service is judged by its status.
    const isServers = refusal.status >= 500;
    this.retry = known?.retry ?? (isServers || refusal.status === 429 ? 'later' : 'never');
    this.happened = known?.happened ?? (isServers ? 'unknown' : 'no');
    this.details = refusal.details ?? [];
    this.httpRequestId = refusal.httpRequestId ?? refusal.requestId;
    this.retryAfterSeconds = refusal.retryAfterSeconds;
  }

  /** @deprecated Old name of `httpRequestId`. It is not the requestId of a spin. */
  get requestId(): string | undefined {
    return this.httpRequestId;
  }

  /** Returns one line with the code and the faults: `SpindleError: KS-4102 A required …: /gameId is …`. */
  override toString(): string {
    const faults = this.details.map(({ path, message }) => `${path} ${message}`.trim()).join('; ');
    return `${this.name}: ${this.code} ${this.message}${faults && `: ${faults}`}`;
  }
}

/** The service did not answer, or not in time. Whether the request changed anything is unknown. */
export class NoAnswerError extends ClientError {
  override readonly name = 'NoAnswerError';
}

/**
 * The result of a spin is unknown: it may have happened. Call `spin` again with this `requestId` to get the
 * result.
 */
export class UnknownSpinError extends ClientError {
  override readonly name = 'UnknownSpinError';
  readonly requestId: string;

  constructor(requestId: string, cause: unknown) {
    const reason = cause instanceof Error ? `, because the last attempt ended with ${cause}` : '';
    super(
      `The result of the spin with requestId ${requestId} is unknown${reason}. Repeat the spin with this requestId.`,
      { cause },
    );
    this.requestId = requestId;
  }
}
