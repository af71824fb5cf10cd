/**
 * State of the public log's witnesses, which all workers use: the right to ask the witnesses, and their
 * newest responses.
 */
import { vkeyOf } from '../../domain/publicLog/notes.js';
import { Policy } from '../../domain/publicLog/policy.js';
import type { Sql } from '../../postgres/connection.js';
import { safe, textArrayOf } from '../../postgres/statements.js';

export interface KnownWitness {
  readonly vkey: string;
  /** Size of the witness's newest known checkpoint; 0 if none. */
  readonly size: number;
  /** True if the witness has cosigned the newest checkpoint so recently that it need not be asked again. */
  readonly hasCosigned: boolean;
  /** True if the witness may be asked now. */
  readonly isDue: boolean;
}

export interface SignedCheckpoint {
  readonly logId: number;
  readonly size: number;
  readonly note: string;
}

/** Age of a witness's newest cosignature, and whether the witness's newest response was a refusal. */
export interface WitnessAge {
  readonly vkey: string;
  /** Seconds since the newest cosignature; null if the witness has never cosigned. */
  readonly cosignedSeconds: number | null;
  /** Seconds since the witness was first recorded. */
  readonly knownSeconds: number;
  readonly isRefusing: boolean;
}

/**
 * Records the current witnesses and the published policy.
 * @param rules text of the policy; null if there is none
 */
export async function noteWitnesses(sql: Sql, vkeys: readonly string[], rules: string | null): Promise<void> {
  await sql.begin(async (tx) => {
    const [log] = await tx<{ logId: number }[]>`SELECT log_id FROM logs ORDER BY log_id DESC LIMIT 1`;
    const { logId } = log!;
    await tx`UPDATE logs SET policy = ${rules} WHERE log_id = ${logId} AND policy IS DISTINCT FROM ${rules}`;
    await tx`
      INSERT INTO log_witnesses (log_id, vkey) SELECT ${logId}, unnest(${textArrayOf(vkeys)}::text[]) ON CONFLICT DO NOTHING`;
  });
}

/** State of the published tree and of all witnesses, read in one query. */
export interface WitnessLook {
  /** Number of records in the newest published tree; 0 if none is published. */
  readonly published: number;
  readonly ages: readonly WitnessAge[];
}

export async function lookAtWitnesses(sql: Sql): Promise<WitnessLook> {
  const [row] = await sql<
    {
      published: bigint;
      vkeys: string[];
      cosigned: (number | null)[];
      known: number[];
      refusing: boolean[];
    }[]
  >`
    WITH newest AS (SELECT log_id FROM logs ORDER BY log_id DESC LIMIT 1),
      known AS (SELECT vkey, CASE WHEN cosigned_at IS NOT NULL THEN greatest(extract(epoch FROM now() - cosigned_at), 0)::float8 END AS cosigned,
        greatest(extract(epoch FROM now() - known_at), 0)::float8 AS known,
        refusal IS NOT NULL AS refusing FROM log_witnesses JOIN newest USING (log_id))
    SELECT coalesce((SELECT max(size) FROM log_checkpoints JOIN newest USING (log_id) WHERE published_at IS NOT NULL), 0) AS published,
      coalesce(array_agg(vkey), '{}') AS vkeys,
      coalesce(array_agg(cosigned), '{}') AS cosigned,
      coalesce(array_agg(known), '{}') AS known, coalesce(array_agg(refusing), '{}') AS refusing
    FROM known`;
  const { published, vkeys, cosigned, known, refusing } = row!;
  const ages = vkeys.map((vkey, at) => ({
    vkey,
    cosignedSeconds: cosigned[at]!,
    knownSeconds: known[at]!,
    isRefusing: refusing[at]!,
  }));
  return { published: safe(published), ages };
}

/**
 * Time, in seconds, after which a checkpoint without enough cosignatures counts as waiting for its quorum.
 */
const QUORUM_WITHIN_SECONDS = 10;

/**
 * Returns the names of the witnesses whose cosignatures a checkpoint lacks while it waits for the policy's
 * quorum. Newer blocks can't be dealt until the checkpoint is published.
 */
export async function missingWitnesses(sql: Sql): Promise<string[]> {
  const rows = await sql<{ policy: string; vkey: string }[]>`
    WITH newest AS (SELECT log_id, policy FROM logs ORDER BY log_id DESC LIMIT 1),
      waiting AS (SELECT log_id, min(size) AS size FROM log_checkpoints JOIN newest USING (log_id)
        WHERE signed_at < now() - ${QUORUM_WITHIN_SECONDS} * interval '1 second' AND size > (
          SELECT coalesce(max(size), -1) FROM log_checkpoints JOIN newest USING (log_id) WHERE published_at IS NOT NULL)
        GROUP BY log_id)
    SELECT policy, vkey FROM newest JOIN waiting USING (log_id) JOIN log_witnesses w USING (log_id)
    WHERE policy IS NOT NULL AND w.size < waiting.size`;
  if (rows.length === 0) return [];
  const missing = new Set(rows.map(({ vkey }) => vkey));
  const { hasNoQuorum, witnesses } = new Policy(rows[0]!.policy);
  return hasNoQuorum ? [] : witnesses.filter((each) => missing.has(vkeyOf(each))).map(({ label }) => label);
}

/**
 * Takes the exclusive right to ask the witnesses, unless another worker holds it or the last round was too
 * recent.
 * @param holder id of this process
 * @param roundMs time after which the right expires, in ms
 * @param againSeconds time after which an unchanged tree is cosigned again, in seconds
 * @returns the newest signed checkpoint and the state of the witnesses; undefined if this worker may not
 * start a round
 */
export async function beginRound(
  sql: Sql,
  {
    holder,
    roundMs,
    againSeconds,
  }: { readonly holder: string; readonly roundMs: number; readonly againSeconds: number },
): Promise<{ readonly newest: SignedCheckpoint; readonly witnesses: readonly KnownWitness[] } | undefined> {
  const [newest] = await sql<{ logId: number; size: bigint; note: string }[]>`
    WITH taken AS (
      INSERT INTO log_rounds AS r (log_id, holder, until)
      SELECT log_id, ${holder}, now() + ${roundMs} * interval '1 millisecond' FROM logs ORDER BY log_id DESC LIMIT 1
      ON CONFLICT (log_id) DO UPDATE SET holder = excluded.holder, until = excluded.until WHERE r.until <= now()
      RETURNING log_id)
    SELECT c.log_id, size, note FROM log_checkpoints c JOIN taken USING (log_id) ORDER BY size DESC LIMIT 1`;
  if (newest === undefined) return undefined;
  const size = safe(newest.size);
  const rows = await sql<{ vkey: string; size: bigint; hasCosigned: boolean; isDue: boolean }[]>`
    SELECT vkey, size, not_before <= now() AS is_due,
      size >= ${size} AND coalesce(cosigned_at > now() - ${againSeconds} * interval '1 second', false) AS has_cosigned
    FROM log_witnesses WHERE log_id = ${newest.logId}`;
  return {
    newest: { logId: newest.logId, size, note: newest.note },
    witnesses: rows.map((row) => ({ ...row, size: safe(row.size) })),
  };
}

/**
 * Ends a round of requests to the witnesses, which {@link beginRound} started.
 * @param nextMs minimum time until the next round, in ms
 */
export async function endRound(sql: Sql, holder: string, nextMs: number): Promise<void> {
  await sql`
    UPDATE log_rounds SET until = now() + ${nextMs} * interval '1 millisecond' WHERE holder = ${holder} AND until > now()`;
}

export interface WitnessAnswer {
  readonly logId: number;
  readonly vkey: string;
  /** Size of the witness's newest checkpoint; undefined if the witness did not report it. */
  readonly size: number | undefined;
  /** Time of the cosignature in Unix seconds; undefined if the witness did not cosign. */
  readonly cosignedAt: number | undefined;
  readonly refusal: string | undefined;
  /** Minimum time until the witness is asked again, in ms. */
  readonly restMs: number;
}

export async function noteAnswer(sql: Sql, answer: WitnessAnswer): Promise<void> {
  const { logId, vkey, size = null, cosignedAt = null, refusal = null, restMs } = answer;
  await sql`
    UPDATE log_witnesses SET size = coalesce(${size}::bigint, size), refusal = ${refusal},
      cosigned_at = coalesce(to_timestamp(${cosignedAt}::float8), cosigned_at), not_before = now() + ${restMs} * interval '1 millisecond'
    WHERE log_id = ${logId} AND vkey = ${vkey}`;
}

/**
 * Adds cosignatures to a stored checkpoint, and publishes it if they suffice.
 * @param add returns the note with the new cosignatures, their number, and whether they satisfy the quorum
 * @returns whether the checkpoint is now published
 */
export async function storeCosignatures(
  sql: Sql,
  { logId, size }: Pick<SignedCheckpoint, 'logId' | 'size'>,
  add: (note: string) => { readonly note: string; readonly cosignatures: number; readonly isEnough: boolean },
): Promise<boolean> {
  return sql.begin(async (tx) => {
    const [row] = await tx<{ note: string; isPublished: boolean }[]>`
      SELECT note, published_at IS NOT NULL AS is_published FROM log_checkpoints WHERE log_id = ${logId} AND size = ${size} FOR UPDATE`;
    if (row === undefined) return false;
    const { note, cosignatures, isEnough } = add(row.note);
    await tx`
      UPDATE log_checkpoints SET note = ${note}, cosignatures = ${cosignatures},
        published_at = coalesce(published_at, CASE WHEN ${isEnough}::boolean THEN now() END)
      WHERE log_id = ${logId} AND size = ${size}`;
    return row.isPublished || isEnough;
  });
}
