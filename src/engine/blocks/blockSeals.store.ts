/**
 * What a block will deal is sealed in Postgres: seed, nonce and outcomes.
 *
 * Each block has a data key of 32 random bytes. The three columns are encrypted with it by AES-256 in counter mode, each from a counter
 * of its own; so they keep their lengths, and a part of a column can be read alone. `blocks.sealed` has the data key, itself sealed with a
 * key that is not in the database (domain/secretBox.ts): to replace that key, only this column is written. Null: the block is not sealed, as
 * a service without a key writes it. Nobody can exchange a column unseen: the public log has its commitment.
 *
 * The keys are those of the process, set once when it starts.
 */
import { createCipheriv, randomBytes } from 'node:crypto';
import { SecretBox, UnknownKeyError } from '../../domain/secretBox.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import type { CopyRow } from '../../postgres/copy.js';

const COLUMNS = { seed: 1, nonce: 2, outcomes: 3 } as const;
export type SealedColumn = keyof typeof COLUMNS;

let box = new SecretBox([]);

/** A block is sealed with a key that this process was not given. */
export class SeedKeyError extends Error {
  constructor(readonly keyId: string) {
    super(`SEEDS_KEY lacks the key ${keyId}, with which blocks in this database are sealed`);
  }
}

/** Sets the keys of this process: the first one seals, all of them open. */
export function useSeedKeys(keys: readonly string[]): SecretBox {
  box = new SecretBox(keys);
  return box;
}

/** Blocks whose data keys are sealed with a key. */
export async function blocksSealedWith(sql: Sql, keyId: string): Promise<number> {
  const [row] = await sql<[{ blocks: number }]>`
    SELECT count(*)::int AS blocks FROM blocks WHERE sealed LIKE ${`v1.${keyId}.%`}`;
  return row.blocks;
}

/** Whether blocks are sealed from now on. */
export const sealsBlocks = (): boolean => box.prefix !== undefined;

interface Secrets {
  readonly seed: Uint8Array;
  readonly nonce: Uint8Array;
  readonly outcomes: Uint8Array;
}

/** What of a block is written; as it is where there is no key. */
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
 * A column of a block, or a part of it, as it was before it was sealed.
 * @param from where in the column the bytes begin
 * @throws SeedKeyError
 */
export function openColumn(sealed: string | null, column: SealedColumn, bytes: Buffer, from = 0): Buffer {
  return sealed === null || bytes.length === 0 ? bytes : turned(keyOf(sealed), column, bytes, from);
}

/** The same of a column that may be null. */
export const openNullable = (
  sealed: string | null,
  column: SealedColumn,
  bytes: Buffer | null,
): Buffer | null => (bytes === null ? null : openColumn(sealed, column, bytes));

/** Opens fields of a row that is read once, where they lie. @param from where in their column the fields begin */
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

/** Encrypts what is plain, and the other way round. */
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
 * Seals what is still to be dealt and lies open, and every data key that is not sealed with the newest key; repeatable, by several
 * processes at once.
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
  const rows = await tx<{ game_id: number; from_index: bigint; sealed: string }[]>`
    SELECT game_id, from_index, sealed FROM blocks WHERE sealed IS NOT NULL AND sealed NOT LIKE ${`${box.prefix}%`}
    ORDER BY game_id, from_index LIMIT ${RESEALED_AT_ONCE} FOR UPDATE`;
  if (rows.length === 0) return 0;
  const renewed = rows.map((row) => ({
    game: row.game_id,
    first: String(row.from_index),
    sealed: box.seal(keyOf(row.sealed).toString('base64')),
  }));
  await tx`
    UPDATE blocks b SET sealed = r.sealed
    FROM json_to_recordset(${JSON.stringify(renewed)}::json) AS r(game int, first bigint, sealed text)
    WHERE b.game_id = r.game AND b.from_index = r.first`;
  return rows.length;
}

/** Blocks of a time without a key of which something is still to be dealt or a round is open. */
async function takeOverSome(tx: Transaction): Promise<number> {
  const rows = await tx<
    { game_id: number; from_index: bigint; seed: Buffer; nonce: Buffer; outcomes: Buffer }[]
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
      WHERE game_id = ${row.game_id} AND from_index = ${row.from_index}`;
  }
  return rows.length;
}
