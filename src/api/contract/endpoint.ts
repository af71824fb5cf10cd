/**
 * Describes an operation of an API as clients see it: its path, input, output and errors, and its examples in
 * the documents. Requests are validated against this description, and the OpenAPI documents are built from
 * it. The handler of an operation is in the routes.ts of its resource, with two exceptions: the spin
 * (api/spins/spin.ts), and the views of a partner that operators read (api/server/partnerViews.ts).
 */
import type { TSchema } from '#typebox';
import { ERRORS, type ErrorEntry } from '../../domain/errors.js';
import type { Role } from '../../domain/operator.js';
import type { Scope, TAGS } from './apis.js';

interface Operation {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** Path below the base path of the API, with `{name}` for a variable part. */
  readonly path: string;
  /**
   * Schema of each variable part of the path. Only the OpenAPI document uses these schemas, because handlers
   * answer 404 to an unknown id.
   */
  readonly params?: Readonly<Record<string, TSchema>>;
  readonly operationId: string;
  readonly tag: keyof typeof TAGS;
  readonly summary: string;
  readonly scope: Scope;
  /** True if the path exists for sandbox accounts only. */
  readonly sandboxOnly?: true;
  /** Rate limit window of the partner that the request counts against. Default: `api`. */
  readonly window?: 'spin' | 'api';
  /** Role that an operator needs. Default: `auditor` for reads, `operator` for changes. */
  readonly role?: Role;
  /** True if a repeated request can be answered by a replay of the first answer. */
  readonly replays?: true;
  /** Maximum size of the body in bytes. Default: BODY_LIMIT. */
  readonly bodyLimit?: number;
  readonly body?: TSchema;
  /** True if a request may omit the body, which is then treated as an empty object. */
  readonly isBodyOptional?: true;
  /** True if the handler validates the body itself. The schema is used for the OpenAPI document only. */
  readonly ownCheck?: true;
  readonly query?: TSchema;
  readonly status: number;
  /**
   * What the status 202 of this operation means: the change is on record and will come into force. Absent if
   * a success is always in force.
   */
  readonly mayBePending?: string;
  /** Schema of the response body. Absent: the response has no body (204). */
  readonly response?: TSchema;
  /** True if the response has sums that may exceed the precision of a double (ExactNumber). */
  readonly hasSums?: true;
  /** True if the response is also available as CSV for clients that prefer CSV to JSON. */
  readonly hasCsv?: true;
  /** Errors of this operation in addition to the errors that every operation of its scope has. */
  readonly errors: readonly ErrorEntry[];
  /** Error that is returned when the handler fails because of a defect of the service. */
  readonly failure: ErrorEntry;
}

/**
 * Texts and examples that the OpenAPI documents contain in addition to the schemas. A test validates the
 * examples against the schemas.
 */
interface Shown {
  /** Details beyond the summary, in Markdown. */
  readonly description: string;
  /** Example of a request body. */
  readonly request?: unknown;
  /** Example of the body of the success response. */
  readonly response?: unknown;
  /** Several examples of the success response by name, instead of `response`. */
  readonly responses?: Readonly<Record<string, unknown>>;
  /** Example of the body of the response 202, if the operation has one. */
  readonly pending?: unknown;
  /** Example of the success response as CSV. */
  readonly csv?: string;
}

export interface Endpoint extends Operation {
  readonly shown: Shown;
}

export const endpoint = <const Of extends Operation, const By extends Shown>(
  operation: Of,
  shown: By,
): Of & { readonly shown: By } => ({ ...operation, shown });

/**
 * Returns whether the body of an endpoint has a requestId, so that clients may repeat the request. All such
 * endpoints apply the same checks to the id, and accept it in the header Idempotency-Key.
 */
export const takesRequestId = (body: TSchema | undefined): boolean =>
  'requestId' in ((body as { properties?: object } | undefined)?.properties ?? {});

/** Default properties of an operation with which operators read data. */
export const operatorRead = {
  method: 'get',
  scope: 'operator',
  status: 200,
  failure: ERRORS.internal,
} as const;
