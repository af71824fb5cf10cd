/** The errors that the client throws: the service refused, nobody answered, or a spin's result is unknown. */
import { ERROR_CATALOG, type ErrorCode, type RetryClass } from './errorCatalog.js';

export type { ErrorCode, RetryClass } from './errorCatalog.js';

/** One fault of a refused request. */
export interface Fault {
  /** JSON Pointer (RFC 6901) into what was sent; empty: all of it. */
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

/** The service answered with an error of its catalogue. */
export class SpindleError extends Error {
  override readonly name = 'SpindleError';
  /** Such as `KS-4103`. A newer service may send codes that this version of the client does not know. */
  readonly code: ErrorCode | (string & {});
  /** Of the HTTP response. */
  readonly status: number;
  /** What the caller should do next. */
  readonly retry: RetryClass;
  /** What is wrong with the request; empty where the error says all. */
  readonly details: readonly Fault[];
  /** Id of this request in the service's log (`X-Request-Id`); not the requestId of a spin. */
  readonly requestId: string | undefined;
  /** Of `Retry-After`. */
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
}

/** No service answered, or not in time: whether the request changed anything is unknown. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';
}

/** A spin may have happened. Call `spin` again with this `requestId` to learn its result. */
export class UnknownSpinError extends Error {
  override readonly name = 'UnknownSpinError';
  readonly requestId: string;

  constructor(requestId: string, cause: unknown) {
    super(`The result of the spin with requestId ${requestId} is unknown; repeat it with this requestId`, {
      cause,
    });
    this.requestId = requestId;
  }
}

/** Of an unknown code the status decides: 429 and 5xx may be repeated (specification of the API, retry semantics). */
function retryClassOf(code: string, status: number): RetryClass {
  const known = (ERROR_CATALOG as Readonly<Record<string, { retry: RetryClass }>>)[code];
  if (known !== undefined) return known.retry;
  return status === 429 || status >= 500 ? 'later' : 'never';
}
