/**
 * The operator API for the pages of the console. Its calls are typed by the OpenAPI document, and every
 * change carries the session's CSRF token.
 */
import createClient from 'openapi-fetch';
import type { components, paths } from '../src/api/client/operator.v1.js';

export type Schemas = components['schemas'];

/** An error response of the service, or the lack of a response. */
export class ApiFault extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: readonly { readonly path: string; readonly message: string }[] = [],
  ) {
    super(message);
  }
}

const session = { csrfToken: '', onLost: (): void => {} };

/**
 * Sets the CSRF token of the session.
 *
 * @param onLost called when the service no longer accepts the session
 */
export function useToken(csrfToken: string, onLost: () => void): void {
  Object.assign(session, { csrfToken, onLost });
}

export const api = createClient<paths>({ baseUrl: '/api/operator/v1', credentials: 'same-origin' });
api.use({
  onRequest({ request }) {
    if (request.method !== 'GET') request.headers.set('X-CSRF-Token', session.csrfToken);
    return request;
  },
});

interface Answered<Body> {
  readonly data?: Body;
  readonly error?: unknown;
  readonly response: Response;
}

/**
 * Returns the body of a successful response, whatever becomes of the session.
 *
 * @throws ApiFault if the service refuses the request or does not respond
 */
async function answerOf<Body>(asked: Promise<Answered<Body>>): Promise<Body> {
  let answered: Answered<Body>;
  try {
    answered = await asked;
  } catch {
    throw new ApiFault(0, '', 'The service is not responding');
  }
  const { data, error, response } = answered;
  if (response.ok) return data as Body;
  const {
    errorCode = '',
    message = response.statusText,
    details = [],
  } = (error ?? {}) as Partial<Schemas['ErrorResponse']>;
  throw new ApiFault(response.status, errorCode, message, details);
}

/**
 * Returns the body of a successful response. Asks the operator to sign in again if the session has ended.
 *
 * @throws ApiFault if the service refuses the request or does not respond
 */
export async function bodyOf<Body>(asked: Promise<Answered<Body>>): Promise<Body> {
  const { csrfToken } = session;
  try {
    return await answerOf(asked);
  } catch (fault) {
    if (!(fault instanceof ApiFault) || fault.status !== 401) throw fault;
    // A late answer to a request of an ended session must not end the session that followed it.
    if (csrfToken === session.csrfToken) session.onLost();
    throw new ApiFault(fault.status, '', 'Your session had ended, so this was not done');
  }
}

/**
 * Starts a session with an operator's key.
 *
 * @throws ApiFault if the service refuses the key or does not respond
 */
export function signIn(key: string): Promise<Schemas['Session']> {
  return answerOf(api.POST('/session', { headers: { 'X-API-Key': key } }));
}
