/** Reads the resource usage of a server from its INFO reply. */
import type { RedisClient } from './redisClient.js';

export interface RedisUse {
  readonly memoryBytes: number;
  /** Memory limit of the server in bytes; 0 if only the machine limits it. */
  readonly maxMemoryBytes: number;
  readonly clients: number;
  /** CPU time of the thread that executes commands, since the server's start. */
  readonly busySeconds: number;
  /**
   * Total time in scripts since the server's start, in seconds. `scriptCalls` is the number of script calls
   * in that time.
   */
  readonly scriptSeconds: number;
  readonly scriptCalls: number;
  readonly logBytes: number;
  /** Number of writes that waited for the disk because the sync before them had not completed. */
  readonly delayedSyncs: number;
  /** True if the newest write to the append-only file failed. */
  readonly isLogFailing: boolean;
}

/** Reads the usage with a single INFO command, which takes some tens of microseconds of the server's time. */
export async function readUse(redis: RedisClient): Promise<RedisUse> {
  const info = String(
    await redis.call('INFO', 'memory', 'clients', 'cpu', 'persistence', 'stats', 'commandstats'),
  );
  const text = (name: string): string | undefined => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1];
  const number = (name: string): number => Number(text(name) ?? 0);
  const scripts = text('cmdstat_evalsha') ?? '';
  const ofScripts = (name: string): number =>
    Number(new RegExp(`\\b${name}=([\\d.]+)`).exec(scripts)?.[1] ?? 0);
  return {
    memoryBytes: number('used_memory'),
    maxMemoryBytes: number('maxmemory'),
    clients: number('connected_clients'),
    busySeconds: number('used_cpu_user_main_thread') + number('used_cpu_sys_main_thread'),
    scriptSeconds: ofScripts('usec') / 1e6,
    scriptCalls: ofScripts('calls'),
    logBytes: number('aof_current_size'),
    delayedSyncs: number('aof_delayed_fsync'),
    isLogFailing: text('aof_last_write_status') === 'err',
  };
}

/** Adds up the usage of several nodes. `maxMemoryBytes` of the sum is 0 if any node has no limit. */
export function sumOfUses(uses: readonly RedisUse[]): RedisUse {
  const sum = (value: (use: RedisUse) => number): number => uses.reduce((all, use) => all + value(use), 0);
  return {
    memoryBytes: sum((use) => use.memoryBytes),
    maxMemoryBytes: uses.some((use) => use.maxMemoryBytes === 0) ? 0 : sum((use) => use.maxMemoryBytes),
    clients: sum((use) => use.clients),
    busySeconds: sum((use) => use.busySeconds),
    scriptSeconds: sum((use) => use.scriptSeconds),
    scriptCalls: sum((use) => use.scriptCalls),
    logBytes: sum((use) => use.logBytes),
    delayedSyncs: sum((use) => use.delayedSyncs),
    isLogFailing: uses.some((use) => use.isLogFailing),
  };
}
