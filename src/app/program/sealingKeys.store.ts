/** Records the keys with which running processes seal blocks and secrets, for the replacement of keys. */

import { GONE_AFTER_S } from '../../engine/upgrade/processes.store.js';
import type { Sql } from '../../postgres/connection.js';

/** Ids of the sealing keys; undefined if nothing is sealed. */
export interface SealingKeys {
  readonly seeds: string | undefined;
  readonly secrets: string | undefined;
}

export interface OtherSealer extends SealingKeys {
  /** Version, roles and host of the process. */
  readonly name: string;
}

/** @returns running processes that seal with other keys */
export async function noteSealingKeys(
  sql: Sql,
  processId: string,
  keys: SealingKeys,
): Promise<OtherSealer[]> {
  const [seeds, secrets] = [keys.seeds ?? '', keys.secrets ?? ''];
  await sql`
    UPDATE processes SET seeds_key = ${seeds}, secrets_key = ${secrets}
    WHERE process_id = ${processId}::uuid
      AND (seeds_key IS DISTINCT FROM ${seeds}::text OR secrets_key IS DISTINCT FROM ${secrets}::text)`;
  const rows = await sql<
    { version: string; roles: string; host: string; seedsKey: string; secretsKey: string }[]
  >`
    SELECT version, roles, host, seeds_key, secrets_key FROM processes
    WHERE process_id <> ${processId}::uuid AND seen_at > now() - ${GONE_AFTER_S} * interval '1 second'
      AND (seeds_key <> ${seeds} OR secrets_key <> ${secrets}) ORDER BY started_at, process_id`;
  return rows.map((row) => ({
    name: `${row.version} ${row.roles} on ${row.host}`,
    seeds: row.seedsKey || undefined,
    secrets: row.secretsKey || undefined,
  }));
}
