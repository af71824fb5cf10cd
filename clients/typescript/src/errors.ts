/**
 * The errors that the client throws: the service refused a request, did not answer, or the result of a spin
 * is unknown.
 */
import { ERROR_CATALOG, type ErrorCode, type RetryClass } from './errorCatalog.js';

export type { ErrorCode, RetryClass } from './errorCatalog.js';

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
  /** Faults of the request; empty if the message says everything. */
  readonly details: readonly Fault[];
  /**
   * Correlation id of this request in the service's log (`X-Request-Id`). It is not the requestId of a spin.
   */
  readonly requestId: string | undefined;
  /** Value of the `Retry-After` header, in seconds. */
  readonly retryAfterSeconds: number | undefined;

  constructor(refusal: Refusal) {
    super(refusal.message);
    this.code = refusal.code;
    this.status = refusal.status;
    this.retry = retryClassOf(refusal.code, refusal.status);
    this.details = refusal.details ?? [];
    this.requestId = refusal.requestId;
    this.retryAfterSeconds = refusal.retryAfterSeconds;
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

/**
 * Returns the retry class of an error code. For an unknown code, the status decides: 429 and 5xx may be
 * repeated (specification of the API, retry semantics).
 */
function retryClassOf(code: string, status: number): RetryClass {
  const known = (ERROR_CATALOG as Readonly<Record<string, { retry: RetryClass }>>)[code];
  if (known !== undefined) return known.retry;
  return status === 429 || status >= 500 ? 'later' : 'never';
}
