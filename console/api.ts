/** The operator API as the pages call it: typed by its OpenAPI document, with the session's CSRF token on every change. */
import createClient from 'openapi-fetch';
import type { components, paths } from '../src/api/client/operator.v1.js';

export type Schemas = components['schemas'];

/** An answer that is none of success. */
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

/** @param onLost called once the service no longer knows the session */
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

/** The body of an answer. @throws ApiFault where the service refuses, or does not answer */
export async function bodyOf<Body>(asked: Promise<Answered<Body>>): Promise<Body> {
  let answered: Answered<Body>;
  try {
    answered = await asked;
  } catch {
    throw new ApiFault(0, '', 'The service does not answer');
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

/** Begins a session with an operator's key. @throws ApiFault */
export function signIn(key: string): Promise<Schemas['Session']> {
  return bodyOf(api.POST('/session', { headers: { 'X-API-Key': key } }));
}
