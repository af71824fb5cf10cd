/**
 * Indexes of tables that may be large when they come: made after the migrations, outside of a transaction, so that nobody waits for them.
 * A migration would hold its lock of the table until the last one has ended.
 */
import type { Client } from 'pg';

/** By name. Each is only for speed: what they serve works without them. */
const INDEXES: Readonly<Record<string, string>> = {
  // Few blocks are in either.
  blocks_not_exhausted: 'blocks (game_id, to_index) WHERE exhausted_at IS NULL',
  blocks_with_outcomes: 'blocks (exhausted_at) WHERE exhausted_at IS NOT NULL AND octet_length(outcomes) > 0',
  // Few rounds are open or voided, of many that were settled.
  rounds_unsettled: "rounds (status, deal_id) WHERE status <> 'SETTLED'",
};

/** No two processes make them at a time. */
const INDEX_LOCK = 7_310_018;
/** One that takes longer, such as behind a transaction of hours, is given up and made at the next start. */
const MADE_WITHIN_MS = 120_000;

/** Makes what is missing or was left half made. What can't be made now is said, and left to the next start. @param client a session that ends after it */
export async function makeIndexes(client: Client, log: (line: string) => void): Promise<void> {
  // Whoever waited for the lock would hold a snapshot, which making an index waits for.
  const { rows } = await client.query(`SELECT pg_try_advisory_lock(${INDEX_LOCK}) AS ours`);
  if (rows[0].ours !== true) return;
  await client.query(`SET statement_timeout = ${MADE_WITHIN_MS}`);
  for (const [name, definition] of Object.entries(INDEXES)) await makeIndex(client, name, definition, log);
}

async function makeIndex(
  client: Client,
  name: string,
  definition: string,
  log: (line: string) => void,
): Promise<void> {
  const { rows } = await client.query(
    `SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('${name}')`,
  );
  if (rows[0]?.indisvalid === true) return;
  try {
    if (rows.length > 0) await client.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
    await client.query(`CREATE INDEX CONCURRENTLY ${name} ON ${definition}`);
    log(`made the index ${name}`);
  } catch (error) {
    log(`the index ${name} is left to the next start: ${(error as Error).message}`);
  }
}
