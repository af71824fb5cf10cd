/**
 * Builds the error examples of the OpenAPI documents: the text of the error catalog, with the details that an
 * operation would return.
 */
import type { TSchema } from '#typebox';
import { docUrlOf, ERRORS, type ErrorEntry, type Fault } from '../../domain/errors.js';
import { typeMessage } from '../../domain/validation.js';
import { BODY_LIMIT } from './apis.js';
import type { Endpoint } from './endpoint.js';

interface Example {
  readonly summary: string;
  readonly value: object;
}

const RETRY_AFTER_SECONDS = 42;

export function errorExamples(entries: readonly ErrorEntry[], endpoint: Endpoint): Record<string, Example> {
  return Object.fromEntries(entries.map((entry) => [entry.code, example(entry, detailsOf(entry, endpoint))]));
}

export function bodyTooLargeExample(): Record<string, Example> {
  const entry = ERRORS.validationFailed;
  const message = `The body must have at most ${BODY_LIMIT} bytes`;
  return { [entry.code]: example(entry, [{ path: '', message }]) };
}

function example(entry: ErrorEntry, details: readonly Fault[] | undefined): Example {
  const { code: errorCode, status, message } = entry;
  return {
    summary: message,
    value: {
      status: 'error',
      errorCode,
      message,
      docUrl: docUrlOf(entry),
      ...(status === 429 ? { retryAfter: RETRY_AFTER_SECONDS } : {}),
      ...(details === undefined ? {} : { details }),
    },
  };
}

/**
 * Returns example faults that this operation could report. Returns undefined for an error without details.
 */
function detailsOf(entry: ErrorEntry, endpoint: Endpoint): readonly Fault[] | undefined {
  if (entry === ERRORS.fieldMissing) return [{ path: `/${requiredOf(endpoint)[0]}`, message: 'is required' }];
  if (entry === ERRORS.invalidParSheet) {
    return [{ path: '/tiers', message: 'the probabilities sum to 0.99, not to 1' }];
  }
  if (entry !== ERRORS.validationFailed) return undefined;
  const [name, schema] = Object.entries(propertiesOf(endpoint.body ?? endpoint.query))[0] ?? [];
  if (name === undefined) {
    return [{ path: '', message: 'The path segment «%ff» must be percent-encoded UTF-8' }];
  }
  const { type } = schema as { type?: string };
  return [{ path: `/${name}`, message: type === undefined ? 'is not valid' : typeMessage(type) }];
}

/** Returns the members that a request must have in its body, or else in its query. */
export function requiredOf({ body, query }: Endpoint): readonly string[] {
  const schema = body ?? query;
  const { required = [] } = (schema ?? {}) as { required?: readonly string[] };
  return required.filter((name) => !('default' in propertiesOf(schema)[name]!));
}

const propertiesOf = (schema: TSchema | undefined): Record<string, TSchema> =>
  (schema as { properties?: Record<string, TSchema> } | undefined)?.properties ?? {};
