/** The parts of a view: what the `spindle` command and the console both say about a resource. */
import type { components, paths } from '../operator.v1.js';

export type Schemas = components['schemas'];

type Method = 'get' | 'put' | 'post' | 'patch' | 'delete';

/** An operation of the operator API, such as `GET /cells`. */
export type Endpoint = {
  [Path in keyof paths]: {
    [M in Method]: paths[Path][M] extends undefined ? never : `${Uppercase<M>} ${Path}`;
  }[Method];
}[keyof paths];

type Operation<E> = E extends `${infer M} ${infer Path extends keyof paths}`
  ? NonNullable<paths[Path][Lowercase<M> & Method]>
  : never;

export type BodyOf<E extends Endpoint> =
  Operation<E> extends { requestBody?: { content: { 'application/json': infer Body } } } ? Body : never;

type InJson<Response> = Response extends { content: { 'application/json': infer Body } } ? Body : never;
export type AnswerOf<E extends Endpoint> =
  Operation<E> extends { responses: infer Responses }
    ? InJson<Responses[keyof Responses & (200 | 201 | 202)]>
    : never;

export interface Column<Row> {
  /** As the console shows it. The command prints it in lower case. */
  readonly heading: string;
  readonly value: (row: Row) => unknown;
  /** How the value is shown: a `number` without separators of thousands. Undefined: as text. */
  readonly kind?: 'number' | 'count' | 'usd' | 'percent' | 'time' | 'status';
}

/** A change of one object, with the question before it. */
export interface Change<E extends Endpoint = Endpoint> {
  readonly endpoint: E;
  /** Members of the body that are the same each time. */
  readonly body?: Partial<BodyOf<E>>;
  /** The question without the object: `Suspend` in `Suspend Classic Three?`. */
  readonly asks: string;
  /** What happens, to whom, and whether it can be undone. */
  readonly consequence: string;
  /** Label of the button that asks, in the console. */
  readonly button: string;
  /** Label of the button that confirms, if it differs. */
  readonly confirm?: string;
  readonly isHarmless?: true;
  readonly done: string | ((answer: AnswerOf<E>) => string);
}

export const change = <E extends Endpoint>(endpoint: E, parts: Omit<Change<E>, 'endpoint'>): Change<E> => ({
  endpoint,
  ...parts,
});

/** These changes take their reason for the audit log in the query, because they have no body. */
const REASON_IN_QUERY: readonly Endpoint[] = [
  'DELETE /operators/{name}',
  'DELETE /partners/{id}/keys/{keyId}',
  'POST /partners/{id}/settlements/{date}',
  'POST /rounds/{roundId}/close',
];

interface Sent {
  readonly path: object;
  readonly query?: object;
  readonly body?: object | undefined;
  readonly reason?: string | undefined;
  /** Options of openapi-fetch. */
  readonly options?: object;
}

/** Sends a request by the client of either surface, whose `bodyOf` returns its answer. */
export function send<E extends Endpoint>(
  client: { readonly request: unknown },
  endpoint: E,
  { path, query, body, reason, options }: Sent,
): Promise<{ readonly data?: AnswerOf<E>; readonly error?: unknown; readonly response: Response }> {
  const [method, url] = endpoint.split(' ') as [string, string];
  const isInQuery = REASON_IN_QUERY.includes(endpoint);
  const params = { path, query: isInQuery ? { ...query, reason } : query };
  const hasBody = body !== undefined || (reason !== undefined && !isInQuery);
  const request = client.request as (...sent: unknown[]) => ReturnType<typeof send<E>>;
  return request(method.toLowerCase(), url, {
    params,
    ...options,
    ...(hasBody && { body: isInQuery ? body : { ...body, reason } }),
  });
}
