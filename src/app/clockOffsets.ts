/** Measures the clock offsets between the stores and this process, every 10 s. */

import type { RedisNodes } from '../engine/redis/nodes.js';
import { PeriodicService } from '../platform/runtime/periodicService.js';
import { databaseTimeMs } from '../postgres/clock.js';
import type { Sql } from '../postgres/connection.js';

const TURN_MS = 10_000;

/**
 * Returns the difference between a server's clock and the local clock at the middle of the round trip that
 * reads it. The error is at most half of the round trip.
 * @param now returns the local time in ms since the epoch
 * @returns offset in seconds, positive if the server's clock is ahead. Errors of the read are passed on.
 */
async function clockOffset(readMs: () => Promise<number>, now: () => number): Promise<number> {
  const before = now();
  const serverMs = await readMs();
  return (serverMs - (before + now()) / 2) / 1000;
}

export class ClockOffsets extends PeriodicService {
  readonly name = 'clock offsets';
  #newest: ReadonlyMap<string, number> = new Map();

  constructor(
    private readonly sql: Sql,
    private readonly nodes: RedisNodes,
    private readonly now: () => number,
  ) {
    super({ everyMs: TURN_MS, firstAfterMs: 0 });
  }

  /**
   * Clock offsets in seconds, keyed by `redis:<host:port>` and `postgres`. A server that did not answer is
   * omitted.
   */
  get newest(): ReadonlyMap<string, number> {
    return this.#newest;
  }

  protected async turn(): Promise<void> {
    const reads: [of: string, readMs: () => Promise<number>][] = [
      ['postgres', () => databaseTimeMs(this.sql)],
      ...this.nodes.all.map((node): [string, () => Promise<number>] => [
        `redis:${node.address}`,
        () => node.timeMs(),
      ]),
    ];
    const found = await Promise.allSettled(
      reads.map(async ([of, readMs]) => [of, await clockOffset(readMs, this.now)] as const),
    );
    this.#newest = new Map(found.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : [])));
  }

  /** The measurement never rejects, because an unavailable server is simply omitted from the offsets. */
  protected onTurnFailed(): void {}
}
