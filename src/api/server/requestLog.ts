/** Records each answer in metrics and the log, and logs each defect of the service. */
import type { Logger } from 'pino';
import type { ErrorEntry } from '../../domain/errors.js';
import type { Exchange } from './exchange.js';

/** Operations that answer 503 with the state of the process, which is not an error. */
const HEALTH_CHECKS = new Set(['readyz', 'statusz']);

export class RequestLog {
  /** True if debug logging is on. Evaluated once instead of for each answer. */
  readonly #isDebugging: boolean;

  constructor(
    private readonly log: Logger,
    private readonly metrics: {
      /** @param seconds time from the arrival of the request to its answer */
      request(
        operation: string,
        seconds: number,
        status: number,
        errorCode: string | undefined,
        partnerId: number | undefined,
      ): void;
      readonly faults: { inc(labels: { readonly operation: string }): void };
    },
  ) {
    this.#isDebugging = log.isLevelEnabled('debug');
  }

  readonly answered = (exchange: Exchange, status: number, errorCode: string | undefined): void => {
    const seconds = (performance.now() - exchange.startedMs) / 1000;
    this.metrics.request(exchange.operation, seconds, status, errorCode, exchange.partnerId);
    if (status >= 500 && !HEALTH_CHECKS.has(exchange.operation)) {
      this.log.warn(fieldsOf(exchange, status, errorCode), 'request answered with an error');
    } else if (this.#isDebugging) {
      this.log.debug(fieldsOf(exchange, status, errorCode), 'answered');
    }
  };

  readonly failed = (exchange: Exchange, operation: string, error: unknown, { code }: ErrorEntry): void => {
    this.metrics.faults.inc({ operation });
    const { id: requestId, partnerId } = exchange;
    this.log.error({ err: error, requestId, operation, errorCode: code, partnerId }, 'request failed');
  };
}

const fieldsOf = (exchange: Exchange, status: number, errorCode: string | undefined): object => ({
  requestId: exchange.id,
  operation: exchange.operation,
  status,
  errorCode,
  partnerId: exchange.partnerId,
  ms: Math.round((performance.now() - exchange.startedMs) * 1000) / 1000,
});
