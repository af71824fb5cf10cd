/** Reads ledger entries by their id, or by the request id of a ticket or adjustment. */
import type { EntryRow, LedgerEntry } from '../../domain/ledgerColumns.js';
import type { Sql } from '../../postgres/connection.js';
import { SharedLookUps } from '../../postgres/sharedLookUps.js';
import { arrayOf, raw } from '../../postgres/statements.js';
import { allColumnsSql, entryOfRow } from './ledgerRow.store.js';

const COLUMNS = raw(allColumnsSql());

export class LedgerEntries {
  readonly #byId: SharedLookUps<LedgerEntry>;
  constructor(private readonly sql: Sql) {
    this.#byId = new SharedLookUps((ids) => findEntries(sql, ids));
  }

  find(entryId: bigint): Promise<LedgerEntry | undefined> {
    return this.#byId.find(entryId);
  }

  /**
   * Finds the entry of a raffle ticket that was sold under a requestId. Undefined if no ticket was sold under
   * it.
   */
  async findTicket(gameId: number, requestId: string): Promise<LedgerEntry | undefined> {
    const [row] = await this.sql<{ entryId: bigint }[]>`
      SELECT entry_id FROM ticket_requests WHERE game_id = ${gameId} AND request_id = ${requestId}`;
    // The entry is read by a separate statement, because with a known id Postgres reads only the partition of
    // its day.
    return row === undefined ? undefined : this.find(row.entryId);
  }

  async findAdjustment(partnerId: number, requestId: string): Promise<LedgerEntry | undefined> {
    const [row] = await this.sql<{ entryId: bigint | null }[]>`
      SELECT entry_id FROM adjustments WHERE partner_id = ${partnerId} AND request_id = ${requestId}`;
    return row === undefined || row.entryId === null ? undefined : this.find(row.entryId);
  }
}

export const findEntry = async (sql: Sql, entryId: bigint): Promise<LedgerEntry | undefined> =>
  (await findEntries(sql, [entryId])).get(entryId);

/** Postgres plans for and locks only the partitions of the entries' days. */
export async function findEntries(sql: Sql, ids: readonly bigint[]): Promise<Map<bigint, LedgerEntry>> {
  const rows = await sql<EntryRow[]>`
    SELECT ${COLUMNS} FROM ledger WHERE entry_id = ANY(${arrayOf(ids)}::bigint[])`;
  const found = new Map(rows.map((row) => [row.entryId, entryOfRow(row)]));
  const missing = ids.filter((id) => !found.has(id));
  if (missing.length === 0) return found;
  const kept = await sql<EntryRow[]>`
    SELECT ${COLUMNS} FROM kept_entries WHERE entry_id = ANY(${arrayOf(missing)}::bigint[])`;
  for (const row of kept) found.set(row.entryId, entryOfRow(row));
  return found;
}
