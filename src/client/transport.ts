/**
 * How requests of the client reach a service: HTTP by Node, with the path exactly as it was written. `fetch` tidies
 * addresses: it would ask for another player than the one named `..`.
 */
import * as http from 'node:http';
import * as https from 'node:https';

/** The service did not answer: whether the request changed anything is unknown. */
export class NoAnswerError extends Error {}

/** What openapi-fetch hands to the transport in place of a `Request`, which would tidy the address. */
export class RawRequest {
  readonly method: string;
  readonly headers: Headers;
  readonly body: string | undefined;

  /** @param url http:// or https://, its path percent-encoded */
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

/**
 * Sends a request to a service. Any answer of the service resolves, an error of its catalogue too.
 * @param address of the service, for messages
 * @throws NoAnswerError where there is no answer within the timeout, or one that is not a Spindle service's
 */
export async function send(request: RawRequest, address: string, timeoutMs: number): Promise<Response> {
  const answer = await exchange(request, timeoutMs).catch((error: Error & { code?: string }) => {
    const reason = error.name === 'TimeoutError' ? `no answer in ${timeoutMs / 1000} s` : error.message;
    throw new NoAnswerError(
      `The service at ${address} does not answer: ${reason || (error.code ?? error.name)}`,
    );
  });
  const strange = strangeness(answer);
  if (strange !== undefined) throw new NoAnswerError(`${address} answers with ${strange}`);
  return new Response(answer.status === 204 ? null : answer.text, answer);
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Why an answer is not a service's: something else listens there. Undefined where it is one. */
function strangeness({ status, headers, text }: Answer): string | undefined {
  if (status === 204) return undefined;
  const isSuccess = status >= 200 && status < 300;
  if (isSuccess && headers.get('Content-Type')?.startsWith('text/csv')) return undefined;
  let body: { errorCode?: unknown } | null;
  try {
    body = JSON.parse(text);
  } catch {
    return `HTTP ${status}, and with no JSON`;
  }
  return isSuccess || typeof body?.errorCode === 'string'
    ? undefined
    : `HTTP ${status}, and not as the service does`;
}

function exchange({ url, method, headers, body }: RawRequest, timeoutMs: number): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { protocol, origin } = new URL(url);
    const { request } = protocol === 'https:' ? https : http;
    const sending = request(origin, {
      method,
      path: url.slice(url.indexOf('/', url.indexOf('//') + 2)),
      headers: Object.fromEntries(headers),
      signal: AbortSignal.timeout(timeoutMs),
    });
    sending.on('error', (error) => reject(error.name === 'AbortError' ? (error.cause ?? error) : error));
    sending.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        resolve({
          status: response.statusCode ?? 0,
          headers: new Headers(response.headers as Record<string, string>),
          text: Buffer.concat(chunks).toString('utf8'),
        });
      });
    });
    sending.end(body);
  });
}
