/** The typed clients of both APIs, made of the files in openapi/: for the `spindle` command, tests, chaos runs and bench. */
import createClient, { type Client, type ClientOptions } from 'openapi-fetch';
import type { paths as OperatorPaths, components as operatorComponents } from './operator.v1.js';
import type { paths as PartnerPaths, components as partnerComponents } from './partner.v1.js';
import { RawRequest, send } from './transport.js';

export { NoAnswerError } from './transport.js';

export type PartnerClient = Client<PartnerPaths>;
export type OperatorClient = Client<OperatorPaths>;
/** The named schemas of each document. */
export type PartnerSchemas = partnerComponents['schemas'];
export type OperatorSchemas = operatorComponents['schemas'];

const PARTNER_BASE = '/api/partner/v1';
const OPERATOR_BASE = '/api/operator/v1';
const INTERFACE_VERSION = '1.0.0';
const TIMEOUT_MS = 30_000;

/** The service answered with an error of its catalogue (docs/errors.md). */
export class RefusedError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly details: readonly { readonly path: string; readonly message: string }[],
    /** Names the request in the service's log. */
    readonly requestId: string | undefined,
    readonly status: number,
  ) {
    super(message);
  }
}

/**
 * A client of the partner API. Its calls resolve with `data` or `error`; they throw NoAnswerError where no service
 * answers.
 * @param address of the service: http:// or https://
 * @param apiKey a key of the partner
 */
export const partnerClient = (address: string, apiKey: string): PartnerClient =>
  createClient<PartnerPaths>(optionsOf(address, PARTNER_BASE, { 'X-API-Key': apiKey }));

/** A client of the operator API, likewise. @param apiKey the operator's */
export const operatorClient = (address: string, apiKey: string): OperatorClient =>
  createClient<OperatorPaths>(
    optionsOf(address, OPERATOR_BASE, { 'X-API-Key': apiKey, interface_version: INTERFACE_VERSION }),
  );

function optionsOf(address: string, base: string, headers: Record<string, string>): ClientOptions {
  const home = address.replace(/\/+$/, '');
  return {
    baseUrl: home + base,
    headers,
    // Stands in for the standard class, of which openapi-fetch needs no more than this.
    Request: RawRequest as unknown as typeof Request,
    fetch: (request) => send(request as unknown as RawRequest, home, TIMEOUT_MS),
  };
}

/** What a call of a client resolves with. */
interface Answered<Body> {
  readonly data?: Body;
  readonly error?: unknown;
  readonly response: Response;
}

/**
 * The body of a success: `await bodyOf(client.GET('/partners'))`.
 * @throws RefusedError where the service answered with an error, NoAnswerError where it did not answer
 */
export async function bodyOf<Body>(call: Promise<Answered<Body>>): Promise<Body> {
  const { data, error, response } = await call;
  if (response.ok) return data as Body;
  const { errorCode, message, details } = error as PartnerSchemas['ErrorResponse'];
  const requestId = response.headers.get('X-Request-Id') ?? undefined;
  throw new RefusedError(errorCode, message, details ?? [], requestId, response.status);
}
