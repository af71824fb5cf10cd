/**
 * Typed clients of both APIs over Node's own HTTP, for the `spindle` command, tests, chaos runs and bench.
 * The back end of a partner uses the package in clients/typescript, which provides the calls and errors of
 * the partner client here.
 */
import createClient, { type Client } from 'openapi-fetch';
import {
  type PartnerApi,
  partnerApi,
  type Schemas,
  type Send,
  transportOf,
} from '../../../clients/typescript/src/api.js';
import type { paths as OperatorPaths, components as operatorComponents } from './operator.v1.js';
import { RawRequest, send, sendReadsAgain } from './transport.js';

export { bodyOf } from '../../../clients/typescript/src/api.js';
export { NoAnswerError, SpindleError } from '../../../clients/typescript/src/errors.js';
export { namedPlayer } from '../../../clients/typescript/src/playerNames.js';

export type PartnerClient = PartnerApi;
/** The path of the OpenAPI document, which the document itself does not describe. */
interface DocumentPath {
  '/openapi.json': { get: { responses: { 200: { content: { 'application/json': object } } } } };
}
type Paths = OperatorPaths & DocumentPath;
export type OperatorClient = Client<Paths>;
export type PartnerSchemas = Schemas;
export type OperatorSchemas = operatorComponents['schemas'];

const OPERATOR_BASE = '/api/operator/v1';
const INTERFACE_VERSION = '1.0.0';
const TIMEOUT_MS = 30_000;

/** Replaces the standard `Request` class. openapi-fetch needs nothing beyond this replacement. */
const raw = { Request: RawRequest as unknown as typeof Request };
const sendRaw = send as unknown as Send;
const sendRawReadsAgain = sendReadsAgain as unknown as Send;

/**
 * Creates a client of the partner API. Calls resolve with `data` or `error`. They throw NoAnswerError if no
 * service answers.
 * @param address URL of the service: http:// or https://
 */
export const partnerClient = (address: string, apiKey: string): PartnerClient =>
  partnerApi({ baseUrl: address, apiKey, timeoutMs: TIMEOUT_MS, fetch: sendRaw, ...raw });

/**
 * Creates a client of the operator API. Calls resolve and throw like the calls of {@link partnerClient}.
 * @param readsAgain true: repeats a read that the service refuses temporarily (503)
 */
export const operatorClient = (
  address: string,
  apiKey: string,
  { readsAgain = false }: { readonly readsAgain?: boolean } = {},
): OperatorClient =>
  createClient<Paths>({
    ...transportOf(address, TIMEOUT_MS, readsAgain ? sendRawReadsAgain : sendRaw),
    ...raw,
    baseUrl: address.replace(/\/+$/, '') + OPERATOR_BASE,
    headers: { 'X-API-Key': apiKey, interface_version: INTERFACE_VERSION },
  });
