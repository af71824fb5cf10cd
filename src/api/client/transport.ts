/**
 * Sends the requests of the command and the tests by Node's HTTP, with the path exactly as written. `fetch`
 * would normalize the URL, so a request for the player with the name `..` would go to another path.
 */
import * as http from 'node:http';
import * as https from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * The request that openapi-fetch hands to the transport. It replaces the standard `Request`, which would
 * normalize the URL.
 */
export class RawRequest {
  readonly method: string;
  readonly headers: Headers;
  readonly body: string | undefined;

  /** @param url http:// or https:// URL with a percent-encoded path */
  constructor(
    readonly url: string,
    init: {
      readonly method: string;
      readonly headers?: ConstructorParameters<typeof Headers>[0];
      readonly body?: string;
    },
  ) {
    this.method = init.method;
    this.headers = new Headers(init.headers);
    this.body = init.body;
  }
}

/** Rejects if no answer comes. */
export function send(
  { url, method, headers, body }: RawRequest,
  { signal }: { signal: AbortSignal },
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const { protocol, origin } = new URL(url);
    const { request } = protocol === 'https:' ? https : http;
    const sending = request(origin, {
      method,
      path: url.slice(url.indexOf('/', url.indexOf('//') + 2)),
      headers: Object.fromEntries(headers),
      signal,
    });
    sending.on('error', reject);
    sending.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const status = response.statusCode ?? 0;
        const text = status === 204 ? null : Buffer.concat(chunks).toString('utf8');
        resolve(new Response(text, { status, headers: response.headers as Record<string, string> }));
      });
    });
    sending.end(body);
  });
}

const READ_ATTEMPTS = 4;
const FIRST_WAIT_MS = 250;

/** Repeats a read that the service refuses temporarily (503) up to three times within two seconds. */
export async function sendReadsAgain(
  request: RawRequest,
  options: { readonly signal: AbortSignal },
): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    const response = await send(request, options);
    if (request.method !== 'GET' || response.status !== 503 || attempt === READ_ATTEMPTS) return response;
    await delay(FIRST_WAIT_MS * 2 ** (attempt - 1), undefined, options);
  }
}
