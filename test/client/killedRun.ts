/**
 * Spins with the client while the service is killed and restarted, and compares the client's record with the
 * ledger.
 */
import { randomInt } from 'node:crypto';
import postgres from 'postgres';
import { Spindle } from '../../clients/typescript/src/index.js';
import { freePort } from '../../src/app/embedded/index.js';
import { booksHold } from '../support/books.js';
import { environment, spawnService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import type { StoreUrls } from '../support/stores.js';
import { until } from '../support/wait.js';

export interface KilledRun {
  readonly spins: number;
  readonly kills: number;
  /** Number of concurrent spins. */
  readonly lanes?: number;
}

export interface KilledResult {
  readonly spins: number;
  /** Attempts beyond the first one of each spin. */
  readonly repeats: number;
  /**
   * Spins that only the client or only the ledger has, and spins that are in the ledger twice or with other
   * values.
   */
  readonly differences: readonly string[];
  readonly durationMs: number;
}

interface Row {
  readonly request_id: string;
  readonly player_id: string;
  readonly credit_micros: bigint;
}

const ALL_BOOKED_WITHIN_MS = 60_000;

/** Runs the built service on these stores, which must be empty. */
export async function spinWhileKilled(
  stores: StoreUrls,
  { spins, kills, lanes = 32 }: KilledRun,
): Promise<KilledResult> {
  const began = performance.now();
  const port = await freePort();
  const start = () => spawnService(environment(stores, { PORT: String(port), SPIN_DEADLINE_MS: '1000' }));
  let service = await start();
  const sql = postgres(stores.databaseUrl, { max: 2, types: { bigint: postgres.BigInt } });
  try {
    const { key } = await service.client.newPartner();
    const gameId = await service.client.newGame(key, parSheet('classic-3-reel'));
    const client = new Spindle({ baseUrl: service.base!, apiKey: key, timeoutMs: 2000, deadlineMs: 120_000 });
    // The data that a partner would store: the requestId of each spin that happened, its player and its
    // payout.
    const record = new Map<string, { playerId: string; payoutUsd: number }>();
    let begun = 0;
    let attempts = 0;
    const lane = async (): Promise<void> => {
      while (begun < spins) {
        const playerId = `player-${begun++ % 10}`;
        const onAttempt = (): void => void attempts++;
        const spin = await client.spin({ gameId, playerId, wagerUsd: 0.25 }, { onAttempt });
        record.set(spin.requestId, { playerId, payoutUsd: spin.outcome.payoutUsd });
      }
    };
    const killer = async (): Promise<void> => {
      for (let kill = 1; kill <= kills; kill++) {
        const at = Math.floor((spins * kill) / (kills + 1)) + randomInt(50);
        await until(() => record.size >= at, `${at} spins are answered`, ALL_BOOKED_WITHIN_MS);
        await service.end('SIGKILL');
        service = await start();
      }
    };
    await Promise.all([killer(), ...Array.from({ length: lanes }, lane)]);
    // The cells of the killed process stay leased for a while, so its entries are committed later.
    const isBooked = async (): Promise<boolean> => {
      const [row] = await sql<{ spins: bigint }[]>`SELECT count(*) AS spins FROM ledger WHERE kind = 1`;
      return row!.spins >= BigInt(record.size);
    };
    await until(isBooked, 'the ledger has as many spins as the client', ALL_BOOKED_WITHIN_MS);
    // The service commits all entries in Redis before it ends, including spins that only the ledger has.
    await service.stop();
    const rows = await sql<Row[]>`SELECT request_id, player_id, credit_micros FROM ledger WHERE kind = 1`;
    await booksHold(sql);
    return {
      spins: record.size,
      repeats: attempts - record.size,
      differences: differencesOf(record, rows),
      durationMs: Math.round(performance.now() - began),
    };
  } finally {
    await sql.end();
    await service.stop();
  }
}

function differencesOf(
  record: ReadonlyMap<string, { playerId: string; payoutUsd: number }>,
  rows: readonly Row[],
): string[] {
  const wrong: string[] = [];
  const missing = new Set(record.keys());
  for (const { request_id: id, player_id: playerId, credit_micros: credit } of rows) {
    const spin = record.get(id);
    if (spin === undefined) wrong.push(`${id}: only in the ledger`);
    else if (!missing.delete(id)) wrong.push(`${id}: twice in the ledger`);
    else if (spin.playerId !== playerId || BigInt(Math.round(spin.payoutUsd * 1e6)) !== credit) {
      wrong.push(`${id}: ${playerId} ${credit} in the ledger, ${spin.playerId} ${spin.payoutUsd} told`);
    }
  }
  return [...wrong, ...[...missing].map((id) => `${id}: not in the ledger`)];
}
