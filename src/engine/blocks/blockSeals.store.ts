/**
 * Encrypts the seed, nonce and outcomes of blocks in Postgres.
 *
 * Each block has a data key of 32 random bytes. It encrypts the three columns by AES-256 in counter mode,
 * each column from a counter of its own. So the columns keep their lengths, and a part of a column can be
 * decrypted alone.
 *
 * `blocks.sealed` has the data key, sealed with a key that is not in the database (domain/secretBox.ts). To
 * replace that key, only this column is rewritten. A null means that the block is not encrypted, because the
 * service that wrote it had no key.
 *
 * Nobody can exchange a column undetected, because its commitment is in the public log.
 *
 * The keys belong to the process and are set once when it starts.
 */
import { createCipheriv, randomBytes } from 'node:crypto';
import { SecretBox, UnknownKeyError } from '../../domain/secretBox.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import type { CopyRow } from '../../postgres/copy.js';

const COLUMNS = { seed: 1, nonce: 2, outcomes: 3 } as const;
export type SealedColumn = keyof typeof COLUMNS;

let box = new SecretBox([]);

/** Thrown when a block is sealed with a key that this process does not have. */
export class SeedKeyError extends Error {
  constructor(readonly keyId: string) {
    super(`SEEDS_KEY lacks the key ${keyId}, with which blocks in this database are encrypted`);
  }
}

/**
 * Sets the keys of this process. New blocks are sealed with the first key; every key of the list can open
 * blocks.
 */
export function useSeedKeys(keys: readonly string[]): SecretBox {
  box = new SecretBox(keys);
  return box;
}

export async function blocksSealedWith(sql: Sql, keyId: string): Promise<number> {
  const [row] = await sql<[{ blocks: number }]>`
    SELECT count(*)::int AS blocks FROM blocks WHERE sealed LIKE ${`v1.${keyId}.%`}`;
  return row.blocks;
}

/** Returns whether this process encrypts new blocks, because it has a key. */
export const sealsBlocks = (): boolean => box.prefix !== undefined;

interface Secrets {
  readonly seed: Uint8Array;
  readonly nonce: Uint8Array;
  readonly outcomes: Uint8Array;
}

/** Returns the values to store for a block: encrypted if this process has a key, otherwise unchanged. */
export function sealBlock({ seed, nonce, outcomes }: Secrets): Secrets & { readonly sealed: string | null } {
  if (!sealsBlocks()) return { seed, nonce, outcomes, sealed: null };
  const key = randomBytes(32);
  return {
    seed: turned(key, 'seed', seed, 0),
    nonce: turned(key, 'nonce', nonce, 0),
    outcomes: turned(key, 'outcomes', outcomes, 0),
    sealed: box.seal(key.toString('base64')),
  };
}

/**
 * Decrypts a column of a block, or a part of the column.
 * @param from offset of the given bytes in the column
 */
export function openColumn(sealed: string | null, column: SealedColumn, bytes: Buffer, from = 0): Buffer {
  return sealed === null || bytes.length === 0 ? bytes : turned(keyOf(sealed), column, bytes, from);
}

/** Decrypts like {@link openColumn}; a null stays null. */
export const openNullable = (
  sealed: string | null,
  column: SealedColumn,
  bytes: Buffer | null,
): Buffer | null => (bytes === null ? null : openColumn(sealed, column, bytes));

/**
 * Decrypts some fields of a COPY row in place, and reads the row only once.
 * @param from offset of the fields' bytes in their columns
 */
export function openFields(
  row: CopyRow,
  sealedField: number,
  fields: Partial<Record<SealedColumn, number>>,
  from = 0,
): void {
  if (row.isNull(sealedField)) return;
  const key = keyOf(row.text(sealedField));
  for (const [column, field] of Object.entries(fields)) {
    if (row.isNull(field)) continue;
    const bytes = row.bytes(field);
    bytes.set(turned(key, column as SealedColumn, bytes, from));
  }
}

function keyOf(sealed: string): Buffer {
  try {
    return Buffer.from(box.open(sealed), 'base64');
  } catch (error) {
    throw error instanceof UnknownKeyError ? new SeedKeyError(error.keyId) : error;
  }
}

const CIPHER_BLOCK = 16;

/**
 * Encrypts plain bytes or decrypts encrypted ones. Counter mode uses the same operation for both directions.
 */
function turned(key: Buffer, column: SealedColumn, bytes: Uint8Array, from: number): Buffer {
  const counter = Buffer.alloc(CIPHER_BLOCK);
  counter[0] = COLUMNS[column];
  counter.writeUInt32BE(Math.floor(from / CIPHER_BLOCK), 12);
  const cipher = createCipheriv('aes-256-ctr', key, counter);
  cipher.update(Buffer.alloc(from % CIPHER_BLOCK));
  return cipher.update(bytes);
}

const RESEALED_AT_ONCE = 500;
const TAKEN_OVER_AT_ONCE = 4;

/**
 * Encrypts the unencrypted blocks that still have outcomes to deal or an open round, and reseals every data
 * key that is not sealed with the newest key. Several processes may run this at once, repeatedly.
 * @throws SeedKeyError where a block is sealed with a key that this process lacks
 */
export async function sealBlocks(sql: Sql): Promise<void> {
  if (!sealsBlocks()) {
    const [sealed] = await sql<
      { sealed: string }[]
    >`SELECT sealed FROM blocks WHERE sealed IS NOT NULL LIMIT 1`;
    if (sealed !== undefined) keyOf(sealed.sealed);
    return;
  }
  while ((await sql.begin(resealSome)) === RESEALED_AT_ONCE);
  while ((await sql.begin(takeOverSome)) === TAKEN_OVER_AT_ONCE);
}

async function resealSome(tx: Transaction): Promise<number> {
  const rows = await tx<{ gameId: number; fromIndex: bigint; sealed: string }[]>`
    SELECT game_id, from_index, sealed FROM blocks WHERE sealed IS NOT NULL AND sealed NOT LIKE ${`${box.prefix}%`}
    ORDER BY game_id, from_index LIMIT ${RESEALED_AT_ONCE} FOR UPDATE`;
  if (rows.length === 0) return 0;
  const renewed = rows.map((row) => ({
    game: row.gameId,
    first: String(row.fromIndex),
    sealed: box.seal(keyOf(row.sealed).toString('base64')),
  }));
  await tx`
    UPDATE blocks b SET sealed = r.sealed
    FROM json_to_recordset(${JSON.stringify(renewed)}::json) AS r(game int, first bigint, sealed text)
    WHERE b.game_id = r.game AND b.from_index = r.first`;
  return rows.length;
}

/**
 * Encrypts some of those blocks that were written without a key and still have outcomes to deal or an open
 * round.
 */
async function takeOverSome(tx: Transaction): Promise<number> {
  const rows = await tx<
    { gameId: number; fromIndex: bigint; seed: Buffer; nonce: Buffer; outcomes: Buffer }[]
  >`
    SELECT b.game_id, b.from_index, seed, nonce, outcomes FROM blocks b
    WHERE sealed IS NULL AND (
      to_index > coalesce((SELECT next_index FROM game_progress p WHERE p.game_id = b.game_id), 0)
      OR EXISTS (SELECT 1 FROM rounds r WHERE r.game_id = b.game_id AND r.status = 'OPEN'
        AND r.shoe_index >= b.from_index AND r.shoe_index < b.to_index))
    ORDER BY b.game_id, b.from_index LIMIT ${TAKEN_OVER_AT_ONCE} FOR UPDATE OF b`;
  for (const row of rows) {
    const { seed, nonce, outcomes, sealed } = sealBlock(row);
    await tx`
      UPDATE blocks SET seed = ${seed as Buffer}, nonce = ${nonce as Buffer}, outcomes = ${outcomes as Buffer}, sealed = ${sealed}
      WHERE game_id = ${row.gameId} AND from_index = ${row.fromIndex}`;
  }
  return rows.length;
}
