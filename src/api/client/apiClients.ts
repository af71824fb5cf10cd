/**
 * The typed clients of both APIs over Node's own HTTP: for the `spindle` command, tests, chaos runs and bench. A partner's back
 * end uses the package in clients/typescript, whose calls and errors these are.
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
/** What the document does not describe: the request for itself. */
interface DocumentPath {
  '/openapi.json': { get: { responses: { 200: { content: { 'application/json': object } } } } };
}
type Paths = OperatorPaths & DocumentPath;
export type OperatorClient = Client<Paths>;
/** The named schemas of each document. */
export type PartnerSchemas = Schemas;
export type OperatorSchemas = operatorComponents['schemas'];

const OPERATOR_BASE = '/api/operator/v1';
const INTERFACE_VERSION = '1.0.0';
const TIMEOUT_MS = 30_000;

/** Stands in for the standard class, of which openapi-fetch needs no more than this. */
const raw = { Request: RawRequest as unknown as typeof Request };
const sendRaw = send as unknown as Send;
const sendRawReadsAgain = sendReadsAgain as unknown as Send;

/**
 * A client of the partner API. Its calls resolve with `data` or `error`; they throw NoAnswerError where no service
 * answers.
 * @param address of the service: http:// or https://
 * @param apiKey a key of the partner
 */
export const partnerClient = (address: string, apiKey: string): PartnerClient =>
  partnerApi({ baseUrl: address, apiKey, timeoutMs: TIMEOUT_MS, fetch: sendRaw, ...raw });

/**
 * A client of the operator API, likewise.
 * @param apiKey the operator's
 * @param readsAgain a read that the service refuses for the moment is sent again
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
