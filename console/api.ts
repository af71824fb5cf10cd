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
 * Returns the body of a successful response.
 *
 * @throws ApiFault if the service refuses the request or does not respond
 */
export async function bodyOf<Body>(asked: Promise<Answered<Body>>): Promise<Body> {
  let answered: Answered<Body>;
  try {
    answered = await asked;
  } catch {
    throw new ApiFault(0, '', 'The service is not responding');
  }
  const { data, error, response } = answered;
  if (response.ok) return data as Body;
  if (response.status === 401) session.onLost();
  const {
    errorCode = '',
    message = response.statusText,
    details = [],
  } = (error ?? {}) as Partial<Schemas['ErrorResponse']>;
  throw new ApiFault(response.status, errorCode, message, details);
}

/**
 * Starts a session with an operator's key.
 *
 * @throws ApiFault if the service refuses the key or does not respond
 */
export function signIn(key: string): Promise<Schemas['Session']> {
  return bodyOf(api.POST('/session', { headers: { 'X-API-Key': key } }));
}
