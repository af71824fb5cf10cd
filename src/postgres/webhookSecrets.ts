/** Encrypts the secrets of webhooks that are plain, or encrypted with a key that was replaced. */
import type { SecretBox } from '../domain/secretBox.js';
import type { Sql } from './client.js';

const ROWS_MAX = 500;

/**
 * Seals all secrets with the newest key, those of deleted webhooks too; repeatable, by several processes at once. Where there
 * is no key nothing is changed, and what is sealed can't be used.
 * @throws UnknownKeyError where a secret is sealed with a key that the box lacks
 */
export async function sealSecrets(sql: Sql, box: SecretBox): Promise<void> {
  const like = `${box.prefix ?? 'whsec'}%`;
  while ((await sealSome(sql, box, like)) === ROWS_MAX);
}

/** @returns how many webhooks were sealed */
async function sealSome(sql: Sql, box: SecretBox, like: string): Promise<number> {
  return sql.begin(async (tx) => {
    const rows = await tx<{ webhook_id: number; secret: string; previous_secret: string | null }[]>`
      SELECT webhook_id, secret, previous_secret FROM webhooks
      WHERE secret NOT LIKE ${like} OR previous_secret NOT LIKE ${like}
      ORDER BY webhook_id LIMIT ${ROWS_MAX} FOR UPDATE`;
    const sealed = rows.map((row) => ({
      id: row.webhook_id,
      secret: box.seal(box.open(row.secret)),
      previous: row.previous_secret === null ? null : box.seal(box.open(row.previous_secret)),
    }));
    await tx`
      UPDATE webhooks w SET secret = r.secret, previous_secret = r.previous
      FROM json_to_recordset(${JSON.stringify(sealed)}::json) AS r(id int, secret text, previous text)
      WHERE w.webhook_id = r.id`;
    return rows.length;
  });
}
