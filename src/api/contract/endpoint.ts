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

export interface Endpoint {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** Path below the base path of the API, with `{name}` for a variable part. */
  readonly path: string;
  readonly operationId: string;
  readonly tag: keyof typeof TAGS;
  readonly scope: Scope;
  readonly summary: string;
  /** Details beyond the summary, in Markdown. */
  readonly description: string;
  readonly sandboxOnly?: true;
  /** Rate limit window of the partner that the request counts against. Default: `api`. */
  readonly window?: 'spin' | 'api';
  /** Role that an operator needs. Default: `auditor` for reads, `operator` for changes. */
  readonly role?: Role;
  /** True if a repeated request can be answered by a replay of the first answer. */
  readonly replays?: true;
  /** Maximum size of the body in bytes. Default: BODY_LIMIT. */
  readonly bodyLimit?: number;
  readonly query?: TSchema;
  readonly body?: TSchema;
  /** True if a request may omit the body, which is then treated as an empty object. */
  readonly isBodyOptional?: true;
  /** True if the handler validates the body itself. The schema is used for the OpenAPI document only. */
  readonly ownCheck?: true;
  /** Default: 200, or 204 without a `response`. */
  readonly status: number;
  /**
   * What the status 202 of this operation means: the change is on record and will come into force. Absent if
   * a success is always in force.
   */
  readonly mayBePending?: string;
  /** Schema of the response body. Absent: the response has no body. */
  readonly response?: TSchema;
  /** True if the response has sums that may exceed the precision of a double (ExactNumber). */
  readonly hasSums?: true;
  /** Errors in addition to those that errorsOf derives from scope, path and body. Default: none. */
  readonly errors: readonly ErrorEntry[];
  /** The error if the handler fails because of a defect of the service. Default: ERRORS.internal. */
  readonly failure: ErrorEntry;
  /** Example of the request's body. A test validates all examples against their schemas. */
  readonly bodyExample?: unknown;
  /** Example of the body of the success response. */
  readonly example?: unknown;
  /** Several examples of the success response by name, instead of `example`. */
  readonly examples?: Readonly<Record<string, unknown>>;
  /** Example of the body of the response 202, if the operation has one. */
  readonly pendingExample?: unknown;
  /** Example of the success response as CSV, if clients may prefer CSV to JSON. */
  readonly csvExample?: string;
}

type Named = Pick<Endpoint, 'method' | 'operationId' | 'tag' | 'scope'>;
type Defaulted = Pick<Endpoint, 'status' | 'errors' | 'failure'>;
type Described = Omit<Endpoint, keyof Named | keyof Defaulted | 'path'> & Partial<Defaulted>;

/**
 * An endpoint with the exact types of its path and schemas, so that the handler's request has the types of
 * its parameters, query and body.
 */
type Typed<Path extends string, Of> = Omit<Of, keyof Named | keyof Defaulted | 'path'> &
  Named &
  Defaulted & { readonly path: Path };

function ofScope(tag: Endpoint['tag'], scope: Scope) {
  const by =
    (method: Endpoint['method']) =>
    <const Path extends string, const Of extends Described>(operationId: string, path: Path, of: Of) =>
      ({
        status: of.response === undefined ? 204 : 200,
        errors: [],
        failure: ERRORS.internal,
        ...of,
        ...{ method, path, operationId, tag, scope },
      }) as Typed<Path, Of>;
  return { get: by('get'), post: by('post'), put: by('put'), patch: by('patch'), delete: by('delete') };
}

/**
 * Returns the functions that describe endpoints under a tag, by API and method. An endpoint like another one
 * spreads it: `operator.get('getAnySpin', '/spins/{spinId}', { ...getSpin, errors: [] })`.
 */
export const endpointsOf = (tag: Endpoint['tag']) => ({
  partner: ofScope(tag, 'partner'),
  play: ofScope(tag, 'play'),
  operator: ofScope(tag, 'operator'),
});

/**
 * Returns whether the body of an endpoint has a requestId, so that clients may repeat the request. All such
 * endpoints apply the same checks to the id, and accept it in the header Idempotency-Key.
 */
export const takesRequestId = (body: TSchema | undefined): boolean =>
  'requestId' in ((body as { properties?: object } | undefined)?.properties ?? {});
