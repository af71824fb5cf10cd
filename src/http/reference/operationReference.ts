/** What the OpenAPI documents show of an operation beside its schemas: a description and examples. */

export interface OperationReference {
  /** What the summary leaves open; Markdown. Absent where the route has one itself. */
  readonly description?: string;
  /** The body of a request. */
  readonly request?: unknown;
  /** The body of the success response. */
  readonly response?: unknown;
  /** In place of `response`: several, by name. */
  readonly responses?: Readonly<Record<string, unknown>>;
  /** The success response as CSV. */
  readonly csv?: string;
}

/** By operationId. */
export type References = Readonly<Record<string, OperationReference>>;
