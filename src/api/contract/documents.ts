/**
 * Builds the OpenAPI 3.1 documents from the endpoints. The documents contain the same schemas that validate
 * requests.
 */
import type { TSchema } from '#typebox';
import { ERRORS, type ErrorEntry } from '../../domain/errors.js';
import { PATH, PLAYER_IN_QUERY } from '../../domain/schema.js';
import { EVENTS } from '../../domain/webhookEvents.js';
import { ENDPOINTS } from '../index.js';
import { API_VERSION, BASES, BODY_LIMIT, type Scope, TAGS } from './apis.js';
import { CSV_TYPE } from './csv.js';
import { EVENT_REFERENCES } from './deliveredEvents.js';
import { type Endpoint, takesRequestId } from './endpoint.js';
import { bodyTooLargeExample, errorExamples, requiredOf } from './errorExamples.js';
import { ErrorResponse } from './errorResponse.js';
import { SchemaReferences, sorted } from './schemaReferences.js';

const METHODS: readonly Endpoint['method'][] = ['get', 'post', 'put', 'patch', 'delete'];
const INTRODUCTION: Readonly<Record<Scope, string>> = {
  partner:
    'The API for partners: PAR sheets, games, spins, players, settlement reports and webhooks. Amounts are in USD with at most 6 decimals. Spins are idempotent by `requestId`: if no response shows the result of a spin, send the request again with the same `requestId`.',
  play: 'The API for blackjack rounds. It accepts the API keys of partners. Deals are idempotent by `requestId`, actions by `seq`: if no response shows the result, send the same request again. Every response follows the commit of its ledger entry.',
  operator:
    'The API for operators of the service: partners and their keys, games, raffles, adjustments and the audit log. Amounts are in USD with at most 6 decimals.',
};

/** A variable part of a path, with the part before it. */
const PATH_PARAMETER = /[^/]+\/\{(\w+)\}/g;

const OF_PARTNERS: readonly ErrorEntry[] = [
  ERRORS.missingApiKey,
  ERRORS.invalidApiKey,
  ERRORS.revokedApiKey,
  ERRORS.expiredApiKey,
  ERRORS.partnerDeactivated,
  ERRORS.tooManyFailedLogins,
  ERRORS.authenticationFailed,
  ERRORS.unavailable,
];

/** Errors that every operation of a scope can return. */
const COMMON: Readonly<Record<Scope, readonly ErrorEntry[]>> = {
  partner: [...OF_PARTNERS, ERRORS.apiVersionGone],
  play: OF_PARTNERS,
  operator: [
    ERRORS.missingApiKey,
    ERRORS.invalidApiKey,
    ERRORS.revokedApiKey,
    ERRORS.expiredApiKey,
    ERRORS.notPermitted,
    ERRORS.unsupportedInterfaceVersion,
    ERRORS.tooManyFailedLogins,
    ERRORS.authenticationFailed,
    ERRORS.unavailable,
  ],
};

/** Errors of an id in the path that the caller doesn't have. Default: ERRORS.notFound. */
const OF_IDS: Readonly<Record<string, readonly ErrorEntry[]>> = {
  'partners/{id}': [ERRORS.partnerNotFound],
  'keys/{keyId}': [ERRORS.keyNotFound, ERRORS.keyForeign],
  'operators/{name}': [ERRORS.keyNotFound],
  'games/{id}': [ERRORS.gameNotFound],
  'partner games/{id}': [ERRORS.gameNotRegistered],
  'raffles/{id}': [ERRORS.gameNotFound],
  'par-sheets/{id}': [ERRORS.parSheetNotFound],
  'webhooks/{id}': [ERRORS.webhookNotFound, ERRORS.webhookForeign],
  'rounds/{roundId}': [ERRORS.roundNotFound],
  'settlements/{date}': [ERRORS.invalidDate, ERRORS.reportNotFound],
  // Operations on players list playerNotFound themselves, because an adjustment creates the player.
  'players/{playerId}': [],
};

const errorsOfIds = ({ scope, path }: Endpoint): ErrorEntry[] =>
  (path.match(PATH_PARAMETER) ?? []).flatMap(
    (part) => OF_IDS[`${scope} ${part}`] ?? OF_IDS[part] ?? [ERRORS.notFound],
  );

export function errorsOf(endpoint: Endpoint): ErrorEntry[] {
  const own = [...errorsOfIds(endpoint), ...endpoint.errors, endpoint.failure];
  const errors = new Set<ErrorEntry>([...COMMON[endpoint.scope], ...own]);
  if (endpoint.scope !== 'operator') {
    errors.add(endpoint.window === 'spin' ? ERRORS.spinRateExceeded : ERRORS.apiRateExceeded);
  }
  // A variable part of the path can also be invalid, because it may not be percent-encoded UTF-8.
  if (endpoint.body !== undefined || endpoint.query !== undefined || endpoint.path.includes('{')) {
    errors.add(ERRORS.validationFailed);
  }
  if (requiredOf(endpoint).length > 0 && endpoint.ownCheck !== true) errors.add(ERRORS.fieldMissing);
  return [...errors].sort((a, b) => (a.code < b.code ? -1 : 1));
}

const HEADERS: Readonly<Record<string, object>> = {
  'X-Request-Id': { description: 'Id of this request in the logs', schema: { type: 'string' } },
  'X-RateLimit-Limit': { description: 'Number of requests allowed in a window', schema: { type: 'integer' } },
  'X-RateLimit-Remaining': {
    description: 'Number of requests left in the window',
    schema: { type: 'integer' },
  },
  'X-RateLimit-Reset': { description: 'Unix time at which the window ends', schema: { type: 'integer' } },
  'Retry-After': { description: 'Seconds to wait before the next attempt', schema: { type: 'integer' } },
  Deprecation: {
    description:
      'Time from which this version of the API is deprecated (RFC 9745). Sent once the end of the version is announced.',
    schema: { type: 'string' },
  },
  Sunset: {
    description:
      'Time from which this version of the API answers with status 410 (RFC 8594). Sent together with Deprecation.',
    schema: { type: 'string' },
  },
  Link: {
    description:
      'Links with `rel="deprecation"` and `rel="successor-version"`, if the announcement has them. Sent together with Deprecation.',
    schema: { type: 'string' },
  },
  'Idempotent-Replayed': {
    description: '`true` if the response repeats the original response to the same request',
    schema: { type: 'string', enum: ['true'] },
  },
};

const RATE_LIMIT_HEADERS = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'];
const VERSION_HEADERS = ['Deprecation', 'Sunset', 'Link'];

function headersOf(endpoint: Endpoint, status: number): Record<string, object> {
  const names = ['X-Request-Id'];
  if (endpoint.scope !== 'operator' && status !== 410) names.push(...RATE_LIMIT_HEADERS);
  if (endpoint.scope === 'partner') names.push(...VERSION_HEADERS);
  if (status === 429 || status === 503) names.push('Retry-After');
  if (endpoint.replays && status === endpoint.status) names.push('Idempotent-Replayed');
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** @param examples property `example` or `examples` of the OpenAPI Media Type Object */
const json = (schema: object, examples: object) => ({ 'application/json': { schema, ...examples } });
const NAME_OF_ERROR = new Map<ErrorEntry, string>(
  Object.entries(ERRORS).map(([name, entry]) => [entry, name]),
);

/**
 * Maximum number of errors under one status in a shared error response. An operation with more errors
 * describes them itself.
 */
const SHARED_ERRORS_MAX = 2;

/**
 * Returns the name of a shared error response, built from the names of its errors. Returns undefined if the
 * response is not shared.
 */
function sharedName(status: number, entries: readonly ErrorEntry[]): string | undefined {
  if (status === 401) return 'unauthorized';
  if (status === 413) return 'bodyTooLarge';
  // The examples of a validation error name members of the operation's own body, so the response cannot be
  // shared.
  if (entries.includes(ERRORS.validationFailed)) return undefined;
  if (entries.length > SHARED_ERRORS_MAX) return undefined;
  const [first, ...others] = entries.map((entry) => NAME_OF_ERROR.get(entry)!);
  return first + others.map((name) => `Or${name.charAt(0).toUpperCase()}${name.slice(1)}`).join('');
}

class DocumentBuilder {
  readonly #schemas = new SchemaReferences();
  readonly #responses: Record<string, object> = {};

  operation(endpoint: Endpoint): object {
    const { body } = endpoint;
    return {
      operationId: endpoint.operationId,
      tags: [endpoint.tag],
      summary: endpoint.summary,
      description: endpoint.description,
      parameters: this.#parameters(endpoint),
      ...(body === undefined
        ? {}
        : {
            requestBody: {
              required: endpoint.isBodyOptional !== true,
              description: `Body of at most ${endpoint.bodyLimit ?? BODY_LIMIT} bytes`,
              content: json(this.#schemas.of(body), exampleOf(endpoint.bodyExample)),
            },
          }),
      responses: {
        [endpoint.status]: this.#success(endpoint),
        ...this.#pending(endpoint),
        ...this.#errors(endpoint),
      },
    };
  }

  /**
   * Returns the webhooks section: the events that partners receive.
   *
   * @param brand brand that is part of the header names
   */
  webhooks(brand: string): Record<string, object> {
    const parameters = eventHeaders(brand);
    return Object.fromEntries(
      Object.entries(EVENTS).map(([event, schema]) => [
        event,
        {
          post: {
            operationId: `on_${event.replaceAll('.', '_')}`,
            tags: ['Webhooks'],
            summary: `Receive the event ${event}`,
            description: EVENT_REFERENCES[event]?.description,
            security: [],
            parameters,
            requestBody: {
              required: true,
              content: json(this.#schemas.of(schema), exampleOf(EVENT_REFERENCES[event]?.body)),
            },
            responses: {
              '2XX': {
                description:
                  'The event was received. After any other status the delivery is attempted again.',
              },
            },
          },
        },
      ]),
    );
  }

  /** Returns the components that the operations have referred to. */
  components(scope: Scope): object {
    const headers = Object.entries(HEADERS).filter(
      ([name]) =>
        scope === 'partner' ||
        name === 'X-Request-Id' ||
        name === 'Retry-After' ||
        (scope === 'play' && !VERSION_HEADERS.includes(name)),
    );
    return {
      headers: sorted(Object.fromEntries(headers)),
      responses: sorted(this.#responses),
      schemas: this.#schemas.named(),
      securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' } },
    };
  }

  #parameters(endpoint: Endpoint): object[] {
    const inPath = [...endpoint.path.matchAll(PATH_PARAMETER)].map(([part, name]) => {
      const schema = PATH[part];
      if (schema === undefined) throw new Error(`${endpoint.operationId} has no schema for ${part}`);
      return { name, in: 'path', required: true, ...this.#described(schema) };
    });
    const properties = {
      ...(endpoint.query as (TSchema & { properties: Record<string, TSchema> }) | undefined)?.properties,
      ...(endpoint.path.includes('{playerId}') ? { playerId: PLAYER_IN_QUERY } : {}),
    };
    const inQuery = Object.entries(properties).map(([name, schema]) => ({
      name,
      in: 'query',
      ...this.#described(schema),
    }));
    return [...inPath, ...inQuery, ...(takesRequestId(endpoint.body) ? [IDEMPOTENCY_KEY] : [])];
  }

  /** Moves the description out of the schema, because a parameter's description belongs beside its schema. */
  #described(schema: TSchema): { description?: string; schema: object } {
    const { description, ...rest } = this.#schemas.of(schema) as { description?: string };
    return { ...(description === undefined ? {} : { description }), schema: rest };
  }

  #success(endpoint: Endpoint): object {
    const { response, status } = endpoint;
    const csvContent = { schema: { type: 'string' }, example: endpoint.csvExample };
    return {
      description: endpoint.summary,
      headers: headersOf(endpoint, status),
      ...(response === undefined
        ? {}
        : {
            content: {
              ...json(this.#schemas.of(response), exampleOf(endpoint.example, endpoint.examples)),
              ...(endpoint.csvExample === undefined ? {} : { [CSV_TYPE.split(';')[0]!]: csvContent }),
            },
          }),
    };
  }

  #pending(endpoint: Endpoint): Record<number, object> {
    const { response, mayBePending } = endpoint;
    if (mayBePending === undefined) return {};
    const headers = headersOf(endpoint, 202);
    const content = json(this.#schemas.of(response!), exampleOf(endpoint.pendingExample));
    return { 202: { description: mayBePending, headers, content } };
  }

  #errors(endpoint: Endpoint): Record<string, object> {
    const byStatus = new Map<number, ErrorEntry[]>();
    const add = (status: number, entry: ErrorEntry): void => {
      byStatus.set(status, [...(byStatus.get(status) ?? []), entry]);
    };
    for (const entry of errorsOf(endpoint)) add(entry.status, entry);
    if (endpoint.body !== undefined) add(413, ERRORS.validationFailed);
    const responses: Record<string, object> = {};
    for (const [status, entries] of byStatus) {
      const response = this.#error(endpoint, status, entries);
      const name = sharedName(status, entries);
      if (name !== undefined) this.#responses[name] = response;
      responses[status] = name === undefined ? response : { $ref: `#/components/responses/${name}` };
    }
    return responses;
  }

  #error(endpoint: Endpoint, status: number, entries: readonly ErrorEntry[]): object {
    const examples = status === 413 ? bodyTooLargeExample() : errorExamples(entries, endpoint);
    return {
      description: entries.map((entry) => `${entry.code}: ${entry.message}`).join('\n\n'),
      headers: headersOf(endpoint, status),
      content: json(this.#schemas.of(ErrorResponse), { examples }),
    };
  }
}

/**
 * Returns the example of a Media Type Object, or its examples by name. Returns an empty object if an
 * operation has no example; a test reports such operations.
 */
function exampleOf(example: unknown, examples?: Readonly<Record<string, unknown>>): object {
  if (examples !== undefined) {
    const named = Object.entries(examples).map(([name, value]) => [name, { value }]);
    return { examples: Object.fromEntries(named) };
  }
  return example === undefined ? {} : { example };
}

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'The `requestId`, if the body has none: 1 to 128 printable ASCII characters, with or without quotation marks. If the body has a `requestId`, both must be equal.',
  schema: { type: 'string' },
};

/**
 * The first address is relative, so it is that of the service that serves the document. The document does not
 * repeat the Host header of its request, because a cache could then give one client an address that another
 * client chose.
 */
const serversOf = (scope: Scope): object[] => [
  { url: BASES[scope], description: 'The service that serves this document' },
  {
    url: `https://{host}${BASES[scope]}`,
    description: 'A service by its host name, for a tool that reads this document from a file',
    variables: {
      host: {
        default: 'spindle.example.com',
        description: 'Host name of the service, with the port if it is not 443',
      },
    },
  },
];

function eventHeaders(brand: string): object[] {
  const header = (name: string, description: string) => ({
    name,
    in: 'header',
    required: true,
    description,
    schema: { type: 'string' },
  });
  return [
    header(
      `X-${brand}-Signature`,
      '`sha256=` and the hexadecimal HMAC-SHA256 of the body, keyed with the secret of the webhook',
    ),
    header(`X-${brand}-Event`, 'Type of the event'),
    header(`X-${brand}-Delivery-Id`, 'Id of the delivery, which is the same in every attempt'),
    header(`X-${brand}-Attempt`, 'Number of the attempt, starting at 1'),
    header('webhook-id', 'Id of the event, as in Standard Webhooks'),
    header('webhook-timestamp', 'Unix time of the attempt, as in Standard Webhooks'),
    header(
      'webhook-signature',
      'Signature as in Standard Webhooks: `v1,` and the base64 HMAC-SHA256 of `id.timestamp.body`',
    ),
  ];
}

/**
 * The same endpoints give the same document, in the same order.
 * @param version semantic version of the API
 */
function documentOf(scope: Scope, endpoints: readonly Endpoint[], brand: string, version: string): object {
  const own = endpoints
    .filter((endpoint) => endpoint.scope === scope)
    .sort((a, b) => METHODS.indexOf(a.method) - METHODS.indexOf(b.method));
  const builder = new DocumentBuilder();
  const paths: Record<string, Record<string, object>> = {};
  for (const endpoint of own) {
    paths[endpoint.path] = { ...paths[endpoint.path], [endpoint.method]: builder.operation(endpoint) };
  }
  const webhooks = scope === 'partner' ? { webhooks: builder.webhooks(brand) } : {};
  return {
    openapi: '3.1.0',
    info: {
      title: `${brand} ${scope} API`,
      version,
      description: INTRODUCTION[scope],
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: serversOf(scope),
    security: [{ apiKey: [] }],
    tags: Object.entries(TAGS)
      .filter(([name]) => own.some((endpoint) => endpoint.tag === name))
      .map(([name, description]) => ({ name, description })),
    paths: sorted(paths),
    ...webhooks,
    components: builder.components(scope),
  };
}

/** @param brand brand that is part of the titles and of the names of webhook headers */
export const openApiDocument = (scope: Scope, brand: string): object =>
  documentOf(scope, ENDPOINTS, brand, API_VERSION);

export const openApiDocuments = (brand: string): Readonly<Record<Scope, object>> => ({
  partner: openApiDocument('partner', brand),
  operator: openApiDocument('operator', brand),
  play: openApiDocument('play', brand),
});
