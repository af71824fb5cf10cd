/**
 * An operation of an API as callers know it: where it is, what it takes, gives and refuses, and how the documents show it. Requests
 * are checked by it, and the documents are made of it; the routes.ts of its resource has the handler, except for
 * the spin (api/spins/spin.ts) and for what operators read in a partner's name (api/server/partnerViews.ts).
 */
import type { TSchema } from '#typebox';
import { ERRORS, type ErrorEntry } from '../../domain/errors.js';
import type { Role } from '../../domain/operator.js';
import type { Scope, TAGS } from './apis.js';

interface Operation {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** Below the base, with `{name}` for a part. */
  readonly path: string;
  /** A schema for each variable part of the path, for the document only: the handler answers 404 to a strange id. */
  readonly params?: Readonly<Record<string, TSchema>>;
  readonly operationId: string;
  readonly tag: keyof typeof TAGS;
  readonly summary: string;
  readonly scope: Scope;
  /** For production accounts there is no such path. */
  readonly sandboxOnly?: true;
  /** Which of the partner's windows a request counts against; absent: `api`. */
  readonly window?: 'spin' | 'api';
  /** The role that an operator needs; absent: `auditor` to read, `operator` to change something. */
  readonly role?: Role;
  /** A request may be answered with what an earlier one was answered. */
  readonly replays?: true;
  /** Bytes; absent: BODY_LIMIT. */
  readonly bodyLimit?: number;
  readonly body?: TSchema;
  /** A request may have no body: it is taken as an empty object. */
  readonly isBodyOptional?: true;
  /** The handler checks the body by itself; the schema is for the document only. */
  readonly ownCheck?: true;
  readonly query?: TSchema;
  readonly status: number;
  /** Absent: no body (204). */
  readonly response?: TSchema;
  /** The result has sums, which may be beyond a double: ExactNumber. */
  readonly hasSums?: true;
  /** The result is also given as CSV, to a caller that would rather have that than JSON. */
  readonly hasCsv?: true;
  /** Further errors of this operation, beside those that every one of its scope has. */
  readonly errors: readonly ErrorEntry[];
  /** What a fault of ours is called here. */
  readonly failure: ErrorEntry;
}

/** What the documents show beside the schemas. A test checks that the examples fit them. */
interface Shown {
  /** What the summary leaves open; Markdown. */
  readonly description: string;
  /** The body of a request. */
  readonly request?: unknown;
  /** The body of the success response. */
  readonly response?: unknown;
  /** In place of `response`: several, by name. */
  readonly responses?: Readonly<Record<string, unknown>>;
  /** The success response as CSV. */
  readonly csv?: string;
}

export interface Endpoint extends Operation {
  readonly shown: Shown;
}

export const endpoint = <const Of extends Operation, const By extends Shown>(
  operation: Of,
  shown: By,
): Of & { readonly shown: By } => ({ ...operation, shown });

/** What an operator's reading operation has, unless it says otherwise. */
export const operatorRead = {
  method: 'get',
  scope: 'operator',
  status: 200,
  failure: ERRORS.internal,
} as const;
