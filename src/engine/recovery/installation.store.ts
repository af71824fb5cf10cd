/**
 * Stores what stays constant during the life of a database: its identity, its secrets, and the number of
 * cells.
 */
import { randomBytes } from 'node:crypto';
import { assertReads, FORMATS } from '../../domain/formats.js';
import type { Sql, Transaction } from '../../postgres/connection.js';

export interface Installation {
  readonly datasetId: string;
  /** Key with which spin ids are encrypted, 16 bytes. */
  readonly spinIdKey: Buffer;
  /** Key from which user ids are derived, 32 bytes. */
  readonly playerIdKey: Buffer;
  readonly cells: number;
  /** Number of the data format that all processes write (domain/formats.ts). */
  readonly format: number;
}

/**
 * Creates the installation at the first start, with its number of cells. A new installation uses the newest
 * data format from its first entry on.
 */
export async function install(
  sql: Sql,
  first: { cells: number; idempotencyTtlSeconds: number },
): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`
      INSERT INTO installation (spin_id_key, player_id_key, cells, idempotency_seconds, format)
      VALUES (${randomBytes(16)}, ${randomBytes(32)}, ${first.cells}, ${first.idempotencyTtlSeconds}, ${FORMATS.newest})
      ON CONFLICT DO NOTHING`;
    await tx`
      INSERT INTO request_id_times (since_ms, seconds)
      SELECT 0, idempotency_seconds FROM installation WHERE NOT EXISTS (SELECT 1 FROM request_id_times)`;
    await tx`
      INSERT INTO cells (cell) SELECT generate_series(0, cells - 1) FROM installation ON CONFLICT DO NOTHING`;
  });
}

/**
 * @throws Error if the service was never started on this database; FormatError if this build does not support
 * the database's format
 */
export async function installation(sql: Sql | Transaction): Promise<Installation> {
  const [row] = await sql<
    {
      datasetId: string;
      spinIdKey: Buffer;
      playerIdKey: Buffer;
      cells: number;
      format: number;
    }[]
  >`SELECT dataset_id, spin_id_key, player_id_key, cells, format FROM installation`;
  if (row === undefined) throw new Error('The service was never started on this database. Start it once.');
  assertReads(FORMATS, row.format);
  return {
    datasetId: row.datasetId,
    spinIdKey: row.spinIdKey,
    playerIdKey: row.playerIdKey,
    cells: row.cells,
    format: row.format,
  };
}

/**
 * Returns the key of the spin ids, 16 bytes, whatever the database's format is.
 * @throws Error if the service was never started on this database
 */
export async function spinIdKey(sql: Sql): Promise<Buffer> {
  const [row] = await sql<{ spinIdKey: Buffer }[]>`SELECT spin_id_key FROM installation`;
  if (row === undefined) throw new Error('The service was never started on this database. Start it once.');
  return row.spinIdKey;
}
