/**
 * Checks acknowledged spins that the ledger lacks. With ACK=redis each of them must be recorded in
 * `lost_spins`.
 */
import postgres from 'postgres';
import { until } from '../support/wait.js';
import { spinIdsOf } from './books.js';
import { nameOf, type SpinRecord } from './records.js';

/**
 * Maximum wait for the records in `lost_spins`, in ms. A front end looks for lost spins every half second
 * once it knows the new epoch.
 */
const WRITTEN_WITHIN_MS = 15_000;

/**
 * Waits for a limited time until all lost spins are recorded.
 * @returns lost spins without a record, and records of spins that are not lost
 */
export async function judgeLost(databaseUrl: string, lost: readonly SpinRecord[]): Promise<string[]> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  try {
    const spinIds = await spinIdsOf(sql);
    let missing: SpinRecord[] = [...lost];
    const look = async (): Promise<boolean> => {
      const rows = await sql<{ entry_id: string; partner_id: number; player_id: string }[]>`
        SELECT entry_id, partner_id, player_id FROM lost_spins`;
      const written = new Set(
        rows.map((row) => `${row.player_id} ${spinIds.encodeOne(BigInt(row.entry_id), row.partner_id)}`),
      );
      missing = lost.filter(({ playerId, dealt }) => !written.has(`${playerId} ${dealt!.spinId}`));
      return missing.length === 0;
    };
    await until(look, 'every lost spin is written down', WRITTEN_WITHIN_MS).catch(() => {});
    const notLost = await sql<{ entry_id: string }[]>`
      SELECT entry_id FROM lost_spins s JOIN ledger l USING (entry_id, partner_id, player_id, game_id, outcome_code)
      WHERE l.balance_micros = s.balance_micros`;
    return [
      ...missing.map((record) => `${nameOf(record)} is lost and not written down`),
      ...notLost.map((row) => `entry ${row.entry_id} is written down as lost, and booked`),
    ];
  } finally {
    await sql.end();
  }
}

export async function countLost(databaseUrl: string): Promise<number> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  try {
    const [row] = await sql<{ rows: number }[]>`SELECT count(*)::int AS rows FROM lost_spins`;
    return row!.rows;
  } finally {
    await sql.end();
  }
}
