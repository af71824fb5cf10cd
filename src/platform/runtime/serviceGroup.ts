/** Starts services in order and stops them in reverse; each stop has a deadline, and a failing one holds up no other. */
import { HEALTHY, type Health, type Service, STOP_TIMEOUT_MS, unhealthy } from './service.js';
import { withTimeout } from './withTimeout.js';

/** As pino's logger has it. */
export interface ErrorLog {
  error(fields: object, message: string): void;
}

/** `in-reverse`: one after the other, the newest first. `together`: all at once, for those that need nothing of each other. */
export type StopOrder = 'in-reverse' | 'together';

export class ServiceGroup implements Service {
  readonly name: string;
  readonly #log: ErrorLog;
  readonly #stopOrder: StopOrder;
  /** Not started yet. */
  readonly #planned: Service[];
  readonly #started: Service[] = [];
  #stopping: Promise<void> = Promise.resolve();
  /** Services whose stop is under way. */
  readonly #ending = new Set<Service>();

  constructor(
    name: string,
    log: ErrorLog,
    services: readonly Service[] = [],
    stopOrder: StopOrder = 'in-reverse',
  ) {
    this.name = name;
    this.#log = log;
    this.#planned = [...services];
    this.#stopOrder = stopOrder;
  }

  /** Long enough for every service to use up its own. */
  get stopTimeoutMs(): number {
    const timeouts = [...this.#planned, ...this.#started].map(timeoutOf);
    return this.#stopOrder === 'together'
      ? Math.max(0, ...timeouts)
      : timeouts.reduce((sum, timeoutMs) => sum + timeoutMs, 0);
  }

  /** Starts the services in order. @throws what a start throws, once those that were started are stopped. */
  async start(): Promise<void> {
    for (const service of this.#planned.splice(0)) await this.add(service);
  }

  /** Starts one more, which can only be made once others run. @throws as `start` does. */
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

  /** Never rejects: what fails or takes too long is in the log. A second call waits for the first. */
  stop(): Promise<void> {
    this.#stopping = this.#stopping.then(() => this.#stopAll());
    return this.#stopping;
  }

  /** Names of the services whose stop is under way, those of groups within, too. */
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
    if (this.#stopOrder === 'together') await Promise.all(services.map((service) => this.#end(service)));
    else for (const service of services) await this.#end(service);
  }

  async #end(service: Service): Promise<void> {
    this.#ending.add(service);
    try {
      await withTimeout(service.stop(), timeoutOf(service));
    } catch (error) {
      this.#log.error({ err: error, service: service.name }, 'a service did not stop cleanly');
    } finally {
      this.#ending.delete(service);
    }
  }
}

const timeoutOf = ({ stopTimeoutMs }: Service): number => stopTimeoutMs ?? STOP_TIMEOUT_MS;
