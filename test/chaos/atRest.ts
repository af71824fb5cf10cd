/** Waits until a chaos run is at rest, which means that every dealt entry is committed. */
import postgres from 'postgres';
import { outboxKey } from '../../src/engine/redis/keys.js';
import type { OwnStores } from '../support/stores.js';
import { until } from '../support/wait.js';
import { withRedis } from './faults.js';

const AT_REST_WITHIN_MS = 45_000;

/** Waits until the ledger has every entry of the outboxes. */
export async function atRest(stores: OwnStores): Promise<void> {
  const sql = postgres(stores.postgres.url, { max: 1, onnotice: () => {}, connect_timeout: 10 });
  try {
    await withRedis(stores, async (redis) => {
      const isBooked = async (cell: number, cursor: bigint): Promise<boolean> => {
        const [newest] = await redis.xrevrange(outboxKey(cell), '+', '-', 'COUNT', 1);
        if (newest === undefined) return true;
        const [ms, sequence] = newest[0].split('-') as [string, string];
        return ((BigInt(ms) << 22n) | (BigInt(cell) << 14n) | BigInt(sequence)) <= cursor;
      };
      await until(
        async () => {
          const cells = await sql<{ cell: number; cursor_id: string }[]>`SELECT cell, cursor_id FROM cells`;
          const booked = cells.map(({ cell, cursor_id }) => isBooked(cell, BigInt(cursor_id)));
          return (await Promise.all(booked)).every(Boolean);
        },
        'the ledger has all that the outboxes have',
        AT_REST_WITHIN_MS,
      );
    });
  } finally {
    await sql.end();
  }
}
