/** The one shape of everything that runs for as long as the process does: connections, loops, servers. */

export interface Health {
  readonly isHealthy: boolean;
  /** One sentence for an engineer; absent while it is healthy. */
  readonly problem?: string;
}

export const HEALTHY: Health = { isHealthy: true };
export const unhealthy = (problem: string): Health => ({ isHealthy: false, problem });

export interface Service {
  /** As the log calls it. */
  readonly name: string;
  /** Whoever stops the service goes on without it after this time; {@link STOP_TIMEOUT_MS} where it is absent. */
  readonly stopTimeoutMs?: number;
  /** Resolves once the service runs. Called once. @throws where it can't run. */
  start(): Promise<void>;
  /** Ends the service, or what a failed start left of it; resolves once it has ended. */
  stop(): Promise<void>;
  health(): Health;
}

export const STOP_TIMEOUT_MS = 5000;

/** Something that runs already and only has to be closed: a connection, a lock, a thread pool. */
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
