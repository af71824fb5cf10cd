/**
 * Sends any request to the service, including invalid requests that the typed client refuses. Creates
 * partners and games with the typed client.
 */
import { randomBytes } from 'node:crypto';
import { Agent } from 'undici';
import { Api, OPERATOR_KEY, type TestPartner } from './api.js';

export { OPERATOR_KEY, type TestPartner } from './api.js';

export interface Answer<T = Record<string, unknown>> {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: T;
}

type Json = Record<string, unknown>;

/**
 * A call through this HTTP agent costs a third of a call through `fetch`, which matters for the duration of
 * all tests.
 */
const CONNECTIONS = new Agent({ headersTimeout: 0, bodyTimeout: 0 });

function headersOf(raw: Record<string, string | string[] | undefined>): Headers {
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(raw)) {
    for (const value of [values].flat()) headers.append(name, value);
  }
  return headers;
}

export class Client {
  /** The typed clients of the service. */
  readonly api: Api;

  constructor(readonly base: string) {
    this.api = new Api(base);
  }

  async request<T = Json>(
    method: string,
    path: string,
    options: { key?: string; body?: unknown; headers?: Record<string, string> } = {},
  ): Promise<Answer<T>> {
    const { key, body, headers } = options;
    const response = await CONNECTIONS.request({
      origin: this.base,
      path,
      method: method as 'GET',
      headers: {
        ...(key === undefined ? {} : { 'X-API-Key': key }),
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      body:
        body === undefined || typeof body === 'string' || body instanceof Uint8Array
          ? body
          : JSON.stringify(body),
    });
    const text = await response.body.text();
    let parsed: unknown;
    try {
      parsed = text === '' ? undefined : JSON.parse(text);
    } catch {
      parsed = undefined;
    }
    return { status: response.statusCode, headers: headersOf(response.headers), text, body: parsed as T };
  }

  partner<T = Json>(method: string, path: string, key: string, body?: unknown): Promise<Answer<T>> {
    return this.request<T>(method, `/api/partner/v1${path}`, { key, body });
  }

  operator<T = Json>(method: string, path: string, body?: unknown): Promise<Answer<T>> {
    return this.request<T>(method, `/api/operator/v1${path}`, { key: OPERATOR_KEY, body });
  }

  spin<T = Json>(key: string, body: unknown): Promise<Answer<T>> {
    return this.partner<T>('POST', '/spin', key, body);
  }

  /** Creates a partner with a key. The partner has no rate limits unless the settings say otherwise. */
  newPartner(settings: Parameters<Api['newPartner']>[1] = {}): Promise<TestPartner> {
    return this.api.newPartner(`p-${randomBytes(6).toString('hex')}`, settings);
  }

  /** Uploads a PAR sheet, registers a game with it, and waits until the game can be spun. */
  newGame(key: string, sheet: object, outcomes?: number): Promise<number> {
    return this.api.newGame(key, `g-${randomBytes(6).toString('hex')}`, sheet, outcomes);
  }
}
