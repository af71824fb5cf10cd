/** Speaks to a running service as its operator does: over HTTP, with the operator key. */
import * as http from 'node:http';
import * as https from 'node:https';

const OPERATOR_BASE = '/api/operator/v1';
const INTERFACE_VERSION = '1.0.0';
const ANSWER_WITHIN_MS = 30_000;

/** The service answered with an error of its catalogue. */
export class RefusedError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly details: readonly { path: string; message: string }[],
    /** By which the log names the request. */
    readonly requestId: string | undefined,
    readonly status: number,
  ) {
    super(message);
  }
}

/** There was no answer of a service: whether the request did something is not known. */
export class NoAnswerError extends Error {}

export interface Reply<Body> {
  /** As it was sent; empty for 204. */
  readonly text: string;
  readonly body: Body;
}

export class OperatorClient {
  /** Where the service is, without a slash at the end. */
  readonly address: string;
  readonly #key: string;

  /** @param address http:// or https:// */
  constructor(address: string, key: string) {
    this.address = address.replace(/\/+$/, '');
    this.#key = key;
  }

  /**
   * @param path below the base of the operator API, percent-encoded; it is sent as it is, so that a part may be `..`
   * @param body a value, or JSON text
   * @throws RefusedError, NoAnswerError
   */
  async request<Body>(method: string, path: string, body?: object | string): Promise<Reply<Body>> {
    const sent = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const answer = await this.#exchange(method, path, sent).catch((error: Error & { code?: string }) => {
      const reason =
        error.name === 'TimeoutError' ? `no answer in ${ANSWER_WITHIN_MS / 1000} s` : error.message;
      throw new NoAnswerError(
        `The service at ${this.address} does not answer: ${reason || (error.code ?? error.name)}`,
      );
    });
    const { status, text, requestId } = answer;
    if (status === 204) return { text, body: undefined as Body };
    let parsed: Body & Partial<{ errorCode: string; message: string; details: RefusedError['details'] }>;
    try {
      parsed = JSON.parse(text);
      if (status >= 200 && status < 300) return { text, body: parsed };
    } catch {
      throw new NoAnswerError(`${this.address} answers with HTTP ${status}, and with no JSON`);
    }
    const { errorCode, message, details } = parsed ?? {};
    if (errorCode === undefined) {
      throw new NoAnswerError(`${this.address} answers with HTTP ${status}, and not as the service does`);
    }
    throw new RefusedError(errorCode, message ?? '', details ?? [], requestId, status);
  }

  #exchange(
    method: string,
    path: string,
    body: string | undefined,
  ): Promise<{ status: number; text: string; requestId: string | undefined }> {
    return new Promise((resolve, reject) => {
      const url = new URL(this.address);
      const { request } = url.protocol === 'https:' ? https : http;
      const sending = request(url, {
        method,
        path: url.pathname.replace(/\/+$/, '') + OPERATOR_BASE + path,
        headers: {
          'X-API-Key': this.#key,
          interface_version: INTERFACE_VERSION,
          ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        },
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
      });
      sending.on('error', (error) => reject(error.name === 'AbortError' ? (error.cause ?? error) : error));
      sending.on('response', (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const requestId = response.headers['x-request-id'];
          resolve({
            status: response.statusCode ?? 0,
            text: Buffer.concat(chunks).toString('utf8'),
            requestId: Array.isArray(requestId) ? requestId[0] : requestId,
          });
        });
      });
      sending.end(body);
    });
  }
}
