/** Samples values that must not grow under load: memory of processes and stores, and queues. */
import { type Processes, residentBytes, treeBytes } from './measure.js';
import type { Service } from './service.js';
import type { Bound, Samples } from './trend.js';

interface Watched {
  readonly name: string;
  readonly unit: string;
  /** Maximum growth of the value. Undefined: the value is printed but not checked. */
  readonly bound: Bound | undefined;
  /** Returns the current value from the scraped metrics, or undefined if it is unknown. */
  read(scraped: ReadonlyMap<string, number>): number | undefined;
}

const MB = 1_048_576;
const MEMORY: Bound = { rise: 8, share: 0.05 };
const SAMPLE_MS = 5000;

/** Scraped metrics with the maximum growth of each. All time series of a metric are summed. */
const QUEUES: readonly { process: string; metric: string; rise: number }[] = [
  { process: 'server', metric: 'spindle_batch_pending', rise: 64 },
  { process: 'server', metric: 'spindle_http_open_requests', rise: 64 },
  { process: 'worker', metric: 'spindle_block_pool_queue', rise: 4 },
  { process: 'worker', metric: 'spindle_webhook_deliveries', rise: 200 },
  { process: 'worker', metric: 'spindle_webhook_under_way', rise: 16 },
  { process: 'server', metric: 'nodejs_active_handles_total', rise: 8 },
  { process: 'worker', metric: 'nodejs_active_handles_total', rise: 8 },
  { process: 'server', metric: 'process_open_fds', rise: 8 },
  { process: 'worker', metric: 'process_open_fds', rise: 8 },
];

/**
 * Metrics that grow by design, or that explain the growth of other values. Filters grow with the released
 * request ids, up to REQUEST_FILTERS_MAX_MB. A heap that has not been garbage-collected yet is not a leak.
 */
const FILTERS = 'spindle_request_filter_bytes';
const SHOWN: readonly { process: string; metric: string }[] = [
  { process: 'server', metric: FILTERS },
  ...['server', 'worker'].flatMap((process) =>
    ['nodejs_heap_size_used_bytes', 'nodejs_heap_size_total_bytes', 'nodejs_external_memory_bytes'].map(
      (metric) => ({ process, metric }),
    ),
  ),
];

export class Sampler {
  readonly #watched: readonly Watched[];
  readonly #taken = new Map<string, Samples>();
  readonly #startedMs = performance.now();
  #timer: NodeJS.Timeout | undefined;
  #sampling: Promise<void> = Promise.resolve();

  /** @param outboxRise number of entries by which the outbox may grow */
  constructor(
    private readonly service: Service,
    outboxRise: number,
  ) {
    this.#watched = [
      ...memoryOf(service.processes),
      {
        name: 'outbox',
        unit: 'entries',
        bound: { rise: outboxRise, share: 0 },
        read: (scraped) => scraped.get('worker spindle_outbox_entries'),
      },
      ...QUEUES.map(({ process, metric, rise }) => ({
        name: `${process} ${metric}`,
        unit: 'in queues, open, under way',
        bound: { rise, share: 0 },
        read: (scraped: ReadonlyMap<string, number>) => scraped.get(`${process} ${metric}`),
      })),
      ...SHOWN.map(({ process, metric }) => ({
        name: `${process} ${metric}`,
        unit: 'MB',
        bound: undefined,
        read: (scraped: ReadonlyMap<string, number>) => megabytes(scraped.get(`${process} ${metric}`)),
      })),
    ];
  }

  start(): void {
    const turn = async (): Promise<void> => {
      await this.#sample().catch((error: unknown) => console.error(error));
      if (this.#timer !== undefined) this.#timer = setTimeout(next, SAMPLE_MS);
    };
    const next = (): void => {
      this.#sampling = turn();
    };
    this.#timer = setTimeout(next, 0);
  }

  /** Stops sampling. Returns the samples of each value, and the maximum growth of each checked value. */
  async stop(): Promise<{ samples: Samples; bound: Bound | undefined }[]> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#sampling;
    return this.#watched.map(({ name, unit, bound }) => ({
      samples: this.#taken.get(name) ?? { name, unit, samples: [] },
      bound,
    }));
  }

  async #sample(): Promise<void> {
    const scraped = await scrape(this.service.metrics);
    const seconds = (performance.now() - this.#startedMs) / 1000;
    for (const { name, unit, read } of this.#watched) {
      const value = read(scraped);
      if (value === undefined) continue;
      const samples = this.#taken.get(name) ?? { name, unit, samples: [] };
      samples.samples.push([seconds, value]);
      this.#taken.set(name, samples);
    }
  }
}

const megabytes = (bytes: number | undefined): number | undefined =>
  bytes === undefined ? undefined : bytes / MB;

function memoryOf(processes: Processes): Watched[] {
  const { server, postgres, ...others } = processes;
  const resident = (pids: readonly number[]): number => sumOf(pids, residentBytes) / MB;
  const memory = (name: string, read: Watched['read']): Watched => ({
    name: `memory of ${name}`,
    unit: 'MB',
    bound: MEMORY,
    read,
  });
  return [
    memory('server without its filters', (scraped) => {
      const filters = megabytes(scraped.get(`server ${FILTERS}`));
      return filters === undefined ? undefined : resident(server!) - filters;
    }),
    ...Object.entries(others).map(([name, pids]) => memory(name, () => resident(pids))),
    memory('postgres without shared buffers', () => sumOf(postgres!, (pid) => treeBytes(pid).own) / MB),
    {
      ...memory('postgres, shared buffers', () => sumOf(postgres!, (pid) => treeBytes(pid).shared) / MB),
      bound: undefined,
    },
  ];
}

const sumOf = (pids: readonly number[], read: (pid: number) => number): number =>
  pids.reduce((sum, pid) => sum + read(pid), 0);

/** Returns the sum of the time series of each metric, by `<process> <metric>`. */
async function scrape(endpoints: Service['metrics']): Promise<Map<string, number>> {
  const sums = new Map<string, number>();
  for (const { name, url } of endpoints) {
    const text = await (await fetch(url)).text();
    for (const [, metric, value] of text.matchAll(/^([a-z_]+)(?:\{[^}]*\})? (\S+)$/gm)) {
      const key = `${name} ${metric}`;
      sums.set(key, (sums.get(key) ?? 0) + Number(value));
    }
  }
  return sums;
}

/** Returns the cumulative counts of a histogram of all processes, by the upper bound of the bucket. */
export async function scrapeBuckets(
  endpoints: Service['metrics'],
  metric: string,
): Promise<Map<number, number>> {
  const sums = new Map<number, number>();
  const line = new RegExp(`^${metric}_bucket\\{.*le="([^"]+)".*\\} (\\S+)$`, 'gm');
  for (const { url } of endpoints) {
    for (const [, bound, count] of (await (await fetch(url)).text()).matchAll(line)) {
      const key = bound === '+Inf' ? Number.POSITIVE_INFINITY : Number(bound);
      sums.set(key, (sums.get(key) ?? 0) + Number(count));
    }
  }
  return sums;
}
