/**
 * Common interface of all components that run as long as the process does, such as connections, loops and
 * servers.
 */

export interface Health {
  readonly isHealthy: boolean;
  /**
   * Description of the service's problem, one sentence for an engineer. Absent while the service is healthy.
   */
  readonly problem?: string;
}

export const HEALTHY: Health = { isHealthy: true };
export const unhealthy = (problem: string): Health => ({ isHealthy: false, problem });

export interface Service {
  readonly name: string;
  /** Time after which a stop of the service is abandoned, in ms. The default is {@link STOP_TIMEOUT_MS}. */
  readonly stopTimeoutMs?: number;
  /**
   * Starts the service and resolves once it runs. It is called only once.
   * @throws if the service can't run
   */
  start(): Promise<void>;
  /** Stops the service, or cleans up after a failed start, and resolves once this is done. */
  stop(): Promise<void>;
  health(): Health;
}

export const STOP_TIMEOUT_MS = 5000;

/**
 * Makes a service from a resource that is already running and only needs to be closed: a connection, a lock,
 * a thread pool.
 */
export function closing(
  name: string,
  close: () => Promise<unknown> | unknown,
  stopTimeoutMs = STOP_TIMEOUT_MS,
): Service {
  return {
    name,
    stopTimeoutMs,
    start: async () => {},
    stop: async () => void (await close()),
    health: () => HEALTHY,
  };
}
