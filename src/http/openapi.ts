/** The OpenAPI 3.1 documents, made of the route table: the schemas that validate are the ones that are shown. */
import type { TSchema } from '#typebox';
import { ERRORS, type ErrorEntry } from '../domain/errors.js';
import { ErrorResponse, EVENTS, SpinBody } from '../domain/requests.js';
import { BODY_LIMIT, CSV_TYPE, OPERATOR_BASE, PARTNER_BASE, type Route } from './route.js';

/** What any request of a scope can be answered with. */
const COMMON: Readonly<Record<Route['scope'], readonly ErrorEntry[]>> = {
  partner: [
    ERRORS.missingApiKey,
    ERRORS.invalidApiKey,
    ERRORS.revokedApiKey,
    ERRORS.expiredApiKey,
    ERRORS.partnerDeactivated,
    ERRORS.tooManyFailedLogins,
    ERRORS.authenticationFailed,
    ERRORS.unavailable,
  ],
  operator: [
    ERRORS.missingApiKey,
    ERRORS.invalidApiKey,
    ERRORS.unsupportedInterfaceVersion,
    ERRORS.tooManyFailedLogins,
  ],
};

/** Every error that a route can answer with. */
export function errorsOf(route: Route): ErrorEntry[] {
  const errors = new Set<ErrorEntry>([...COMMON[route.scope], ...route.errors, route.failure]);
  if (route.scope === 'partner') {
    errors.add(route.body === SpinBody ? ERRORS.spinRateExceeded : ERRORS.apiRateExceeded);
  }
  // A part of the path may be no percent-encoded UTF-8.
  if (route.body !== undefined || route.query !== undefined || route.path.includes('{')) {
    errors.add(ERRORS.validationFailed);
  }
  const required = (route.body as { required?: readonly string[] } | undefined)?.required ?? [];
  if (required.length > 0 && route.ownCheck !== true) errors.add(ERRORS.fieldMissing);
  return [...errors].sort((a, b) => (a.code < b.code ? -1 : 1));
}

const RATE_HEADERS = {
  'X-RateLimit-Limit': 'Requests in the window at the most',
  'X-RateLimit-Remaining': 'Requests left in the window',
  'X-RateLimit-Reset': 'Unix time at which the window ends',
};

function headersOf(route: Route, status: number): Record<string, object> {
  const headers: Record<string, object> = {
    'X-Request-Id': { description: 'Id of this request in the logs', schema: { type: 'string' } },
  };
  if (route.scope === 'partner') {
    for (const [name, description] of Object.entries(RATE_HEADERS)) {
      headers[name] = { description, schema: { type: 'integer' } };
    }
  }
  if (status === 429 || status === 503) {
    headers['Retry-After'] = { description: 'Seconds to wait', schema: { type: 'integer' } };
  }
  if (route.body === SpinBody && status === 200) {
    headers['Idempotent-Replayed'] = {
      description: '`true` where the original answer of this requestId is given again',
      schema: { type: 'string' },
    };
  }
  return headers;
}

const csv = (route: Route) =>
  route.csv === undefined ? {} : { [CSV_TYPE.split(';')[0]!]: { schema: { type: 'string' } } };
const json = (schema: object) => ({ 'application/json': { schema } });

function responsesOf(route: Route): Record<string, object> {
  const responses: Record<string, object> = {
    [route.status]: {
      description: route.summary,
      headers: headersOf(route, route.status),
      ...(route.response === undefined ? {} : { content: { ...json(route.response), ...csv(route) } }),
    },
  };
  const byStatus = new Map<number, ErrorEntry[]>();
  const add = (status: number, entry: ErrorEntry): void => {
    byStatus.set(status, [...(byStatus.get(status) ?? []), entry]);
  };
  for (const entry of errorsOf(route)) add(entry.status, entry);
  if (route.body !== undefined) add(413, ERRORS.validationFailed);
  for (const [status, entries] of byStatus) {
    responses[status] = {
      description: entries.map((entry) => `${entry.code}: ${entry.message}`).join('\n\n'),
      headers: headersOf(route, status),
      content: json({
        allOf: [
          { $ref: '#/components/schemas/Error' },
          { type: 'object', properties: { errorCode: { enum: entries.map((entry) => entry.code) } } },
        ],
      }),
    };
  }
  return responses;
}

function parametersOf(route: Route): object[] {
  const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map((match) => ({
    name: match[1],
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const properties =
    (route.query as (TSchema & { properties: Record<string, TSchema> }) | undefined)?.properties ?? {};
  const inQuery = Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', schema }));
  return [...inPath, ...inQuery];
}

/** What partners are sent, rather than what they ask for. @param brand stands in the names of the headers */
function webhooksOf(brand: string): Record<string, object> {
  const header = (name: string, description: string) => ({
    name,
    in: 'header',
    required: true,
    description,
    schema: { type: 'string' },
  });
  const parameters = [
    header(
      `X-${brand}-Signature`,
      '`sha256=` and the hexadecimal HMAC-SHA256 of the body, keyed with the secret',
    ),
    header(`X-${brand}-Event`, 'Type of the event'),
    header(`X-${brand}-Delivery-Id`, 'The same in every attempt of a delivery'),
    header(`X-${brand}-Attempt`, '1 for the first attempt'),
    header('webhook-id', 'Standard Webhooks: id of the event'),
    header('webhook-timestamp', 'Standard Webhooks: Unix time of the attempt'),
    header('webhook-signature', 'Standard Webhooks: `v1,` and the base64 HMAC-SHA256 of `id.timestamp.body`'),
  ];
  return Object.fromEntries(
    Object.entries(EVENTS).map(([event, schema]) => [
      event,
      {
        post: {
          operationId: `on_${event.replaceAll('.', '_')}`,
          summary: `The event ${event}`,
          security: [],
          parameters,
          requestBody: { required: true, content: json(schema) },
          responses: { '2XX': { description: 'Received; anything else is tried again' } },
        },
      },
    ]),
  );
}

/** @param version semver of the API */
export function openApiDocument(
  scope: Route['scope'],
  routes: readonly Route[],
  service: { name: string; version: string },
): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    if (route.scope !== scope) continue;
    const path = paths[route.path] ?? {};
    paths[route.path] = path;
    path[route.method] = {
      operationId: route.operationId,
      summary: route.summary,
      parameters: parametersOf(route),
      ...(route.body === undefined
        ? {}
        : {
            requestBody: {
              required: true,
              description: `At most ${route.bodyLimit ?? BODY_LIMIT} bytes`,
              content: json(route.body),
            },
          }),
      responses: responsesOf(route),
    };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: `${service.name} ${scope} API`,
      version: service.version,
      license: { name: 'Apache-2.0' },
    },
    servers: [{ url: scope === 'partner' ? PARTNER_BASE : OPERATOR_BASE }],
    security: [{ apiKey: [] }],
    paths,
    ...(scope === 'partner' ? { webhooks: webhooksOf(service.name) } : {}),
    components: {
      securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' } },
      schemas: { Error: ErrorResponse },
    },
  };
}
