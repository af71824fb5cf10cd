/** Serves GET /metrics, /healthz, /readyz and /statusz for monitoring on a separate port. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { INSTALLATION_HEADER } from '../../api/server/portHolder.js';
import { type Problems, readyAnswer, statusAnswer } from '../../engine/problems.js';
import { HEALTHY, type Health, type Service } from '../../platform/runtime/service.js';
import type { Metrics } from './metrics.js';

export interface Address {
  readonly host: string;
  /** Port number; 0 selects a free port. */
  readonly port: number;
  /**
   * Token that a request for the metrics must send as `Authorization: Bearer`; undefined if no token is
   * required.
   */
  readonly token: string | undefined;
}

const CHECKS = new Map([
  ['/readyz', readyAnswer],
  ['/statusz', statusAnswer],
]);

const hashOf = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Normalizes the scheme of an Authorization header, which is case-insensitive (RFC 9110, 11.1). */
const withScheme = (authorization: string): string => authorization.replace(/^bearer +/i, 'Bearer ');

export class MetricsServer implements Service {
  readonly name = 'metrics server';
  readonly #host: string;
  readonly #port: number;
  readonly #server;

  /** @param installation header line of /healthz, the same for all processes on one database */
  constructor(
    metrics: Metrics,
    { host, port, token }: Address,
    problems: Pick<Problems, 'list'>,
    installation: string,
  ) {
    this.#host = host;
    this.#port = port;
    const expected = token === undefined ? undefined : hashOf(`Bearer ${token}`);
    this.#server = createServer((request, response) => {
      // The liveness check also works in a process without the API.
      if (request.url === '/healthz') {
        response
          .writeHead(200, { 'Content-Type': 'application/json', [INSTALLATION_HEADER]: installation })
          .end('{"status":"ok"}');
        return;
      }
      const answerOf = CHECKS.get(request.url ?? '');
      if (answerOf !== undefined) {
        problems.list().then(
          (found) => {
            const { status, body } = answerOf(found);
            response.writeHead(status, { 'Content-Type': 'application/json' }).end(body);
          },
          (error: unknown) => response.writeHead(500).end(String(error)),
        );
        return;
      }
      if (request.url !== '/metrics') {
        response.writeHead(404).end();
        return;
      }
      if (
        expected !== undefined &&
        !timingSafeEqual(hashOf(withScheme(request.headers.authorization ?? '')), expected)
      ) {
        response.writeHead(401, { 'WWW-Authenticate': 'Bearer' }).end();
        return;
      }
      metrics.text().then(
        (text) => response.writeHead(200, { 'Content-Type': metrics.registry.contentType }).end(text),
        (error: unknown) => response.writeHead(500).end(String(error)),
      );
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo | null)?.port ?? this.#port;
  }

  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', () =>
        reject(
          new Error(
            `Cannot listen on port ${this.#port} of ${this.#host} (METRICS_HOST, METRICS_PORT). The port may be in use.`,
          ),
        ),
      );
      this.#server.listen(this.#port, this.#host, () => resolve());
    });
  }

  stop(): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  health(): Health {
    return HEALTHY;
  }
}
