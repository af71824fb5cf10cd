/** PAR sheets as they were uploaded and found right. */
import type { ParSheet } from '../domain/par.js';
import { audit } from './changes.js';
import type { Sql } from './client.js';

export type ParSheetStatus = 'ACTIVE' | 'RETIRED';

export interface ParSheetRow {
  parSheetId: number;
  partnerId: number;
  status: ParSheetStatus;
  sheet: ParSheet;
  createdAt: Date;
}

interface Row {
  par_sheet_id: number;
  partner_id: number;
  status: ParSheetStatus;
  sheet: ParSheet;
  created_at: Date;
}

const fromRow = (row: Row): ParSheetRow => ({
  parSheetId: row.par_sheet_id,
  partnerId: row.partner_id,
  status: row.status,
  sheet: row.sheet,
  createdAt: row.created_at,
});

export async function storeParSheet(sql: Sql, partnerId: number, sheet: ParSheet): Promise<number> {
  const [row] = await sql<{ par_sheet_id: number }[]>`
    INSERT INTO par_sheets (partner_id, sheet) VALUES (${partnerId}, ${JSON.stringify(sheet)})
    RETURNING par_sheet_id`;
  return row!.par_sheet_id;
}

export async function listActiveParSheets(sql: Sql, partnerId: number): Promise<ParSheetRow[]> {
  const rows = await sql<Row[]>`
    SELECT par_sheet_id, partner_id, status, sheet, created_at FROM par_sheets
    WHERE partner_id = ${partnerId} AND status = 'ACTIVE' ORDER BY par_sheet_id`;
  return rows.map(fromRow);
}

/** A sheet by its number, whoever's it is. */
export async function findParSheet(sql: Sql, parSheetId: number): Promise<ParSheetRow | undefined> {
  const [row] = await sql<Row[]>`
    SELECT par_sheet_id, partner_id, status, sheet, created_at FROM par_sheets WHERE par_sheet_id = ${parSheetId}`;
  return row === undefined ? undefined : fromRow(row);
}

/** Sets the status; undefined where there is no such sheet. */
export async function setParSheetStatus(
  sql: Sql,
  actor: string,
  parSheetId: number,
  status: ParSheetStatus,
): Promise<ParSheetRow | undefined> {
  return sql.begin(async (tx) => {
    const [before] = await tx<{ status: ParSheetStatus }[]>`
      SELECT status FROM par_sheets WHERE par_sheet_id = ${parSheetId} FOR UPDATE`;
    if (before === undefined) return undefined;
    const [row] = await tx<Row[]>`
      UPDATE par_sheets SET status = ${status} WHERE par_sheet_id = ${parSheetId}
      RETURNING par_sheet_id, partner_id, status, sheet, created_at`;
    await audit(tx, {
      actor,
      action: 'par-sheet.update',
      subject: `par-sheet:${parSheetId}`,
      before,
      after: { status },
    });
    return fromRow(row!);
  });
}
