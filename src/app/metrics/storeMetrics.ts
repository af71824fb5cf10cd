/** Metrics of a worker about the stores, read at each scrape. */

import { openReviews } from '../../books/returns/rtp.store.js';
import { PROBLEM_NAMES, type Problems } from '../../engine/problems.js';
import type { RedisNodes } from '../../engine/redis/nodes.js';
import type { RedisUse } from '../../engine/redis/use.js';
import type { PostgresPools, Sql } from '../../postgres/connection.js';
import { pendingDeliveries } from '../../webhooks/deliveries.store.js';
import type { Metrics } from './metrics.js';
import { singleFlight } from './scraped.js';

export function registerStoreMetrics(metrics: Metrics, sql: Sql, nodes: RedisNodes): void {
  const use = singleFlight(() => nodes.use());
  const ofRedis = (
    type: 'gauge' | 'counter',
    name: string,
    help: string,
    value: (use: RedisUse) => number,
  ): void => metrics.asked(type, name, help, async () => value(await use()));
  ofRedis('gauge', 'spindle_redis_memory_bytes', 'Memory used by Redis, in bytes', (u) => u.memoryBytes);
  ofRedis(
    'gauge',
    'spindle_redis_memory_max_bytes',
    'Setting maxmemory of Redis, in bytes; 0 means no limit',
    (u) => u.maxMemoryBytes,
  );
  ofRedis('gauge', 'spindle_redis_clients', 'Number of connections to Redis', (u) => u.clients);
  ofRedis(
    'counter',
    'spindle_redis_busy_seconds_total',
    'CPU time of the Redis thread that runs commands, in seconds',
    (u) => u.busySeconds,
  );
  ofRedis(
    'counter',
    'spindle_redis_script_seconds_total',
    'Total time of Redis in scripts, in seconds',
    (u) => u.scriptSeconds,
  );
  ofRedis('counter', 'spindle_redis_script_calls_total', 'Scripts called', (u) => u.scriptCalls);
  ofRedis(
    'gauge',
    'spindle_redis_aof_bytes',
    'Size of the append-only file of Redis, in bytes',
    (u) => u.logBytes,
  );
  ofRedis(
    'counter',
    'spindle_redis_aof_delayed_fsyncs_total',
    'Writes that waited for an unfinished sync of the append-only file',
    (u) => u.delayedSyncs,
  );
  ofRedis(
    'gauge',
    'spindle_redis_aof_failing',
    "1 while Redis can't write the append-only file, otherwise 0",
    (u) => (u.isLogFailing ? 1 : 0),
  );
  const reviews = singleFlight(() => openReviews(sql));
  metrics.asked(
    'gauge',
    'spindle_rtp_reviews_open',
    'Number of open RTP reviews (docs/reports.md)',
    async () => (await reviews()).open,
  );
  metrics.asked(
    'gauge',
    'spindle_rtp_review_oldest_seconds',
    'Time since the oldest open RTP review was opened, in seconds; 0 without open reviews',
    async () => (await reviews()).oldestSeconds,
  );
  metrics.asked(
    'gauge',
    'spindle_rtp_rolling_alerts',
    'Number of games with an open RTP review whose last 30 days contradict the PAR sheet',
    async () => (await reviews()).alertsOf30Days,
  );
  const deliveries = singleFlight(() => pendingDeliveries(sql));
  metrics.gaugeBy(
    'spindle_webhook_deliveries',
    'Number of webhook deliveries that wait',
    'state',
    async () => [['pending', (await deliveries()).pending]],
  );
  metrics.gaugeBy(
    'spindle_webhook_oldest_due_seconds',
    'Time for which the oldest due webhook delivery has waited, in seconds, by the limit of concurrent attempts that holds the deliveries of its webhook back',
    'limited_by',
    async () => Object.entries((await deliveries()).oldestDueSeconds),
  );
}

/**
 * Registers metrics about the integrity of the program's files, with the result of the newest check that this
 * process made.
 */
export function registerProgramMetrics(
  metrics: Metrics,
  program: {
    readonly identity: { readonly version: string; readonly manifest: string | null };
    readonly verified: number;
  },
): void {
  metrics.gauge(
    'spindle_program_verified',
    '1 if all files of the program match the list made by its build, 0 if some differ, -1 without a list',
    () => program.verified,
  );
  metrics.gauges(
    'spindle_program_info',
    'Version of the program, and SHA-256 of the list of its files',
    () => {
      const { version, manifest } = program.identity;
      return [{ labels: { version, manifest: manifest ?? '' }, value: 1 }];
    },
  );
}

export function registerClockMetrics(metrics: Metrics, offsets: () => ReadonlyMap<string, number>): void {
  metrics.gauges(
    'spindle_clock_offset_seconds',
    'Time by which the clock of a store is ahead of the clock of this process, in seconds. Alert SpindleClockOffset above 0.5 for long',
    () => [...offsets()].map(([of, value]) => ({ labels: { of }, value })),
  );
}

export function registerPoolMetrics(metrics: Metrics, pools: PostgresPools): void {
  metrics.gauges(
    'spindle_postgres_connections',
    'Number of connections of a pool by state; the state waiting counts statements that wait for a connection',
    () =>
      [...Object.entries(pools)].flatMap(
        ([
          pool,
          {
            pool: { total, idle, waiting },
          },
        ]) => [
          { labels: { pool, state: 'busy' }, value: total - idle },
          { labels: { pool, state: 'idle' }, value: idle },
          { labels: { pool, state: 'waiting' }, value: waiting },
        ],
      ),
  );
}

export function registerProblemMetrics(metrics: Metrics, problems: Pick<Problems, 'list'>): void {
  metrics.gaugeBy(
    'spindle_problem',
    '1 while this process has the problem that /statusz lists by this name, otherwise 0',
    'problem',
    async () => {
      const present = new Set((await problems.list()).map(({ name }) => name));
      return PROBLEM_NAMES.map((name) => [name, present.has(name) ? 1 : 0]);
    },
  );
}
