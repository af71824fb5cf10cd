/** How far the clocks of the stores are from that of this process, looked at each 10 s. */

import type { RedisNodes } from '../engine/redis/nodes.js';
import { PeriodicService } from '../platform/runtime/periodicService.js';
import { databaseTimeMs } from '../postgres/clock.js';
import type { Sql } from '../postgres/connection.js';

const TURN_MS = 10_000;

/**
 * A server's clock minus ours at the middle of the round trip that reads it: wrong by half of the round trip at the most.
 * @param now milliseconds since the epoch
 * @returns seconds; above 0: the server's clock is ahead. @throws what the read throws
 */
async function clockOffset(readMs: () => Promise<number>, now: () => number): Promise<number> {
  const before = now();
  const serverMs = await readMs();
  return (serverMs - (before + now()) / 2) / 1000;
}

export class ClockOffsets extends PeriodicService {
  readonly name = 'clock offsets';
  readonly #sql: Sql;
  readonly #nodes: RedisNodes;
  readonly #now: () => number;
  #newest: ReadonlyMap<string, number> = new Map();

  constructor(sql: Sql, nodes: RedisNodes, now: () => number) {
    super({ everyMs: TURN_MS, firstAfterMs: 0 });
    this.#sql = sql;
    this.#nodes = nodes;
    this.#now = now;
  }

  /** Seconds, by `redis:<host:port>` and `postgres`; a server that did not answer is left out. */
  get newest(): ReadonlyMap<string, number> {
    return this.#newest;
  }

  protected async turn(): Promise<void> {
    const reads: [of: string, readMs: () => Promise<number>][] = [
      ['postgres', () => databaseTimeMs(this.#sql)],
      ...this.#nodes.all.map((node): [string, () => Promise<number>] => [
        `redis:${node.address}`,
        () => node.timeMs(),
      ]),
    ];
    const found = await Promise.allSettled(
      reads.map(async ([of, readMs]) => [of, await clockOffset(readMs, this.#now)] as const),
    );
    this.#newest = new Map(found.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : [])));
  }

  /** Nothing throws: a server that is away has no offset. */
  protected onTurnFailed(): void {}
}
