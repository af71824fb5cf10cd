/** Entries of the ledger, read back by what names them: an id, a ticket's or an adjustment's request id. */
import type { EntryRow, LedgerEntry } from '../../domain/ledgerColumns.js';
import type { Sql } from '../../postgres/connection.js';
import { SharedLookUps } from '../../postgres/sharedLookUps.js';
import { arrayOf, raw } from '../../postgres/statements.js';
import { allColumnsSql, entryOfRow } from './ledgerRow.store.js';

const COLUMNS = raw(allColumnsSql());

/** Entries of the ledger by what names them. */
export class LedgerEntries {
  readonly #sql: Sql;
  readonly #byId: SharedLookUps<LedgerEntry>;
  constructor(sql: Sql) {
    this.#sql = sql;
    this.#byId = new SharedLookUps((ids) => findEntries(sql, ids));
  }

  find(entryId: bigint): Promise<LedgerEntry | undefined> {
    return this.#byId.find(entryId);
  }

  /** The entry of the ticket of a raffle that was sold under a requestId; undefined: none was. */
  async findTicket(gameId: number, requestId: string): Promise<LedgerEntry | undefined> {
    const [row] = await this.#sql<{ entry_id: bigint }[]>`
      SELECT entry_id FROM ticket_requests WHERE game_id = ${gameId} AND request_id = ${requestId}`;
    // A statement of its own: with the id known, only the partition of its day is looked at.
    return row === undefined ? undefined : this.find(row.entry_id);
  }

  /** The adjustment that a partner's requestId stands for, where it is booked. */
  async findAdjustment(partnerId: number, requestId: string): Promise<LedgerEntry | undefined> {
    const [row] = await this.#sql<{ entry_id: bigint | null }[]>`
      SELECT entry_id FROM adjustments WHERE partner_id = ${partnerId} AND request_id = ${requestId}`;
    return row === undefined || row.entry_id === null ? undefined : this.find(row.entry_id);
  }
}

export const findEntry = async (sql: Sql, entryId: bigint): Promise<LedgerEntry | undefined> =>
  (await findEntries(sql, [entryId])).get(entryId);

/** Entries by their ids: the partitions of their days alone are planned and locked. */
async function findEntries(sql: Sql, ids: readonly bigint[]): Promise<Map<bigint, LedgerEntry>> {
  const rows = await sql<EntryRow[]>`
    SELECT ${COLUMNS} FROM ledger WHERE entry_id = ANY(${arrayOf(ids)}::bigint[])`;
  const found = new Map(rows.map((row) => [row.entry_id, entryOfRow(row)]));
  const missing = ids.filter((id) => !found.has(id));
  if (missing.length === 0) return found;
  const kept = await sql<EntryRow[]>`
    SELECT ${COLUMNS} FROM kept_entries WHERE entry_id = ANY(${arrayOf(missing)}::bigint[])`;
  for (const row of kept) found.set(row.entry_id, entryOfRow(row));
  return found;
}
