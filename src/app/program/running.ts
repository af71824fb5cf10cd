/** Handle of the running service. */
import type { Demo } from '../demoSeed.js';

export interface Running {
  /** Port of the API; undefined without the http role. */
  readonly port: number | undefined;
  readonly metricsPort: number;
  readonly operatorKey: string;
  /** True if the operator key was created by this start. */
  readonly isNewOperatorKey: boolean;
  readonly redisUrl: string;
  readonly databaseUrl: string;
  readonly demo: (Demo & { readonly apiKey: string }) | undefined;
  /** Returns the names of the services that a stop is waiting for. */
  readonly waitsFor: () => readonly string[];
  stop(): Promise<void>;
}
