/**
 * Starts services in order and stops them in reverse order. Each stop has a timeout, and a failing stop does
 * not prevent the stops of other services.
 */
import { HEALTHY, type Health, type Service, STOP_TIMEOUT_MS, unhealthy } from './service.js';
import { withTimeout } from './withTimeout.js';

/** The part of pino's logger interface that is used here. */
export interface ErrorLog {
  error(fields: object, message: string): void;
}

/**
 * `in-reverse`: one after the other, starting with the service that was started last. `together`: all at
 * once, for services that don't depend on each other.
 */
export type StopOrder = 'in-reverse' | 'together';

export class ServiceGroup implements Service {
  /** Services that are not started yet. */
  readonly #planned: Service[];
  readonly #started: Service[] = [];
  #stopping: Promise<void> = Promise.resolve();
  /** Services whose stop is under way. */
  readonly #ending = new Set<Service>();

  constructor(
    readonly name: string,
    private readonly log: ErrorLog,
    services: readonly Service[] = [],
    private readonly stopOrder: StopOrder = 'in-reverse',
  ) {
    this.#planned = [...services];
  }

  /** Timeout of the group's stop, in ms. It is long enough for each service to use its own timeout. */
  get stopTimeoutMs(): number {
    const timeouts = [...this.#planned, ...this.#started].map(timeoutOf);
    return this.stopOrder === 'together'
      ? Math.max(0, ...timeouts)
      : timeouts.reduce((sum, timeoutMs) => sum + timeoutMs, 0);
  }

  /**
   * Starts the services in order.
   * @throws the error of a failed start, after the started services are stopped
   */
  async start(): Promise<void> {
    for (const service of this.#planned.splice(0)) await this.add(service);
  }

  /**
   * Starts one more service, which can only be created after the others have started.
   * @throws like {@link start}
   */
  async add<S extends Service>(service: S): Promise<S> {
    this.#started.push(service);
    try {
      await service.start();
    } catch (error) {
      await this.stop();
      throw error;
    }
    return service;
  }

  /**
   * The promise never rejects, because failures and timeouts are logged. A second call waits for the first.
   */
  stop(): Promise<void> {
    this.#stopping = this.#stopping.then(() => this.#stopAll());
    return this.#stopping;
  }

  /** Names of the services whose stop is under way, including those within nested groups. */
  get waitsFor(): readonly string[] {
    return [...this.#ending].flatMap((service) =>
      service instanceof ServiceGroup && service.waitsFor.length > 0 ? service.waitsFor : [service.name],
    );
  }

  health(): Health {
    const problems = this.#started.flatMap((service) => {
      const { isHealthy, problem } = service.health();
      return isHealthy ? [] : [`${service.name}: ${problem}`];
    });
    return problems.length === 0 ? HEALTHY : unhealthy(problems.join('; '));
  }

  async #stopAll(): Promise<void> {
    const services = this.#started.splice(0).reverse();
    if (this.stopOrder === 'together') await Promise.all(services.map((service) => this.#end(service)));
    else for (const service of services) await this.#end(service);
  }

  async #end(service: Service): Promise<void> {
    this.#ending.add(service);
    try {
      await withTimeout(service.stop(), timeoutOf(service));
    } catch (error) {
      this.log.error({ err: error, service: service.name }, 'service did not stop cleanly');
    } finally {
      this.#ending.delete(service);
    }
  }
}

const timeoutOf = ({ stopTimeoutMs }: Service): number => stopTimeoutMs ?? STOP_TIMEOUT_MS;
