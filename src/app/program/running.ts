/** The running service, as whoever started it holds it. */
import type { Demo } from '../demoSeed.js';

export interface Running {
  /** Undefined without the http role. */
  readonly port: number | undefined;
  readonly metricsPort: number;
  readonly operatorKey: string;
  /** It was made just now. */
  readonly isNewOperatorKey: boolean;
  readonly redisUrl: string;
  readonly databaseUrl: string;
  readonly demo: (Demo & { readonly apiKey: string }) | undefined;
  /** What a stop waits for now, by name. */
  readonly waitsFor: () => readonly string[];
  stop(): Promise<void>;
}
