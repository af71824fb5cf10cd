/**
 * Indexes of tables that may already be large. They are created after the migrations and outside a
 * transaction, so that no other statement waits for their creation. A migration would keep its lock of the
 * table until the last migration has ended.
 */
import type { Client } from 'pg';

/** Indexes by name. They only improve speed; the queries that use them also work without them. */
const INDEXES: Readonly<Record<string, string>> = {
  // Few blocks match the condition of either index, so both indexes stay small.
  blocks_not_exhausted: 'blocks (game_id, to_index) WHERE exhausted_at IS NULL',
  blocks_with_outcomes: 'blocks (exhausted_at) WHERE exhausted_at IS NOT NULL AND octet_length(outcomes) > 0',
  // The feed of a partner's adjustments is read in this order.
  adjustments_by_entry: 'adjustments (partner_id, entry_id)',
  // Who changed the status of a player or a game, and why.
  audit_log_by_subject: 'audit_log (subject, audit_id)',
  // Few rounds are open or voided, because most are settled, so the index stays small.
  rounds_unsettled: "rounds (status, deal_id) WHERE status <> 'SETTLED'",
};

/** Advisory lock that lets only one process create the indexes. */
const INDEX_LOCK = 7_310_018;
/**
 * Maximum time for creating an index, in ms. If that time passes, for example because a transaction
 * lasts for hours, the index is left to the next start.
 */
const MADE_WITHIN_MS = 120_000;

/**
 * Creates missing indexes, and creates indexes again whose creation was interrupted. A failure is logged, and
 * the index is left to the next start.
 * @param client a session that is closed afterwards
 */
export async function makeIndexes(client: Client, log: (line: string) => void): Promise<void> {
  // If another process has the lock, this process does not wait for the lock. A waiting process would hold a
  // snapshot, and creating an index waits for all snapshots.
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
    log(`created the index ${name}`);
  } catch (error) {
    log(`the index ${name} was not created, will retry at the next start: ${(error as Error).message}`);
  }
}
