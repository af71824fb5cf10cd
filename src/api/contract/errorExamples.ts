/** Examples of the errors in the OpenAPI documents: the catalogue's own words, with the details that an operation would give. */
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

/** By code, an example of each error that one status of an operation stands for. */
export function errorExamples(entries: readonly ErrorEntry[], endpoint: Endpoint): Record<string, Example> {
  return Object.fromEntries(entries.map((entry) => [entry.code, example(entry, detailsOf(entry, endpoint))]));
}

/** The example of a body that is over its limit (413). */
export function bodyTooLargeExample(): Record<string, Example> {
  const entry = ERRORS.validationFailed;
  const message = `The body is over the limit of ${BODY_LIMIT} bytes`;
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

/** Faults that this operation could find; undefined for an error that gives none. */
function detailsOf(entry: ErrorEntry, endpoint: Endpoint): readonly Fault[] | undefined {
  if (entry === ERRORS.fieldMissing) return [{ path: `/${requiredOf(endpoint)[0]}`, message: 'is required' }];
  if (entry === ERRORS.invalidParSheet) {
    return [{ path: '/tiers', message: 'the probabilities sum to 0.99, not to 1' }];
  }
  if (entry !== ERRORS.validationFailed) return undefined;
  const [name, schema] = Object.entries(propertiesOf(endpoint.body ?? endpoint.query))[0] ?? [];
  if (name === undefined) {
    return [{ path: '', message: 'The path part «%ff» is not percent-encoded UTF-8' }];
  }
  const { type } = schema as { type?: string };
  return [{ path: `/${name}`, message: type === undefined ? 'is not valid' : typeMessage(type) }];
}

const requiredOf = ({ body }: Endpoint): readonly string[] =>
  (body as { required?: readonly string[] } | undefined)?.required ?? [];

const propertiesOf = (schema: TSchema | undefined): Record<string, TSchema> =>
  (schema as { properties?: Record<string, TSchema> } | undefined)?.properties ?? {};
