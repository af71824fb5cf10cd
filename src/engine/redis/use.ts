/** How much of its resources the server uses, as it says itself. */
import type { RedisClient } from './redisClient.js';

export interface RedisUse {
  readonly memoryBytes: number;
  /** 0: no bound but the machine's. */
  readonly maxMemoryBytes: number;
  readonly clients: number;
  /** CPU time of the thread that runs commands, since the server was started. */
  readonly busySeconds: number;
  /** Time in scripts, and how many were called. */
  readonly scriptSeconds: number;
  readonly scriptCalls: number;
  readonly logBytes: number;
  /** Writes that waited for the disk because the sync before them was not done. */
  readonly delayedSyncs: number;
  /** The newest write of the append-only file failed. */
  readonly isLogFailing: boolean;
}

/** One INFO, some tens of microseconds of the server. */
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

/** @param uses of one node each; `maxMemoryBytes` of the sum is 0 where one node has no bound. */
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
