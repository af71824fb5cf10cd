/** Entries of the ledger, read back by what names them: an id, a ticket's or an adjustment's request id. */
import { type EntryKind, entryOfCode } from '../domain/ledgerEntry.js';
import { arrayOf, type Sql, safe } from './client.js';
import { SharedLookUps } from './sharedLookUps.js';

export interface LedgerEntry {
  kind: EntryKind;
  id: bigint;
  previousId: bigint;
  partnerId: number;
  playerId: string;
  entryNumber: number;
  gameId: number;
  outcomeIndex: number;
  outcomeCode: number;
  wagerMicros: number;
  creditMicros: number;
  balanceMicros: number;
  requestId: string | null;
}

export interface EntryRow {
  entry_id: bigint;
  previous_id: bigint;
  wager_micros: bigint;
  credit_micros: bigint;
  balance_micros: bigint;
  outcome_index: bigint;
  partner_id: number;
  game_id: number;
  entry_number: number;
  outcome_code: number;
  kind: number;
  player_id: string;
  request_id: string | null;
}

export const entryOfRow = (row: EntryRow): LedgerEntry => ({
  kind: entryOfCode(row.kind).kind,
  id: row.entry_id,
  previousId: row.previous_id,
  partnerId: row.partner_id,
  playerId: row.player_id,
  entryNumber: row.entry_number,
  gameId: row.game_id,
  outcomeIndex: safe(row.outcome_index),
  outcomeCode: row.outcome_code,
  wagerMicros: safe(row.wager_micros),
  creditMicros: safe(row.credit_micros),
  balanceMicros: safe(row.balance_micros),
  requestId: row.request_id,
});

/** Entries of the ledger by what names them. */
export class Ledger {
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
  const rows = await sql<EntryRow[]>`SELECT * FROM ledger WHERE entry_id = ANY(${arrayOf(ids)}::bigint[])`;
  const found = new Map(rows.map((row) => [row.entry_id, entryOfRow(row)]));
  const missing = ids.filter((id) => !found.has(id));
  if (missing.length === 0) return found;
  const kept = await sql<EntryRow[]>`
    SELECT * FROM kept_entries WHERE entry_id = ANY(${arrayOf(missing)}::bigint[])`;
  for (const row of kept) found.set(row.entry_id, entryOfRow(row));
  return found;
}
