/** Searches the names, numbers and key prefixes of all partners. The number of results is bounded. */

import type { Static } from '#typebox';
import { soughtPrefix } from '../../domain/apiKey.js';
import type { Sql } from '../../postgres/connection.js';
import type { Found as FoundSchema } from './contract.js';

/** Maximum number of results of each kind. */
const FOUND_MAX = 10;
const PLAYER_PARTNERS_MAX = 50;

export type FoundNames = Readonly<Omit<Static<typeof FoundSchema>, 'players' | 'plays'>>;

export class SearchReads {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /**
   * Finds partners, games, keys and operators whose name contains the text (case-insensitive), whose number
   * equals it, or whose key starts with it.
   */
  async byName(text: string): Promise<FoundNames> {
    const number = /^[1-9]\d{0,8}$/.test(text) ? Number(text) : 0;
    const wanted = text.toLowerCase();
    const prefix = soughtPrefix(text) ?? null;
    const [partners, games, keys, operators] = await Promise.all([
      this.#sql<{ partner_id: number; slug: string; name: string }[]>`
        SELECT partner_id, slug, name FROM partners
        WHERE partner_id = ${number} OR strpos(slug, ${wanted}) > 0 OR strpos(lower(name), ${wanted}) > 0
        ORDER BY partner_id <> ${number}, slug <> ${wanted}, partner_id LIMIT ${FOUND_MAX}`,
      this.#sql<
        {
          game_id: number;
          partner_id: number;
          display_name: string;
          config_name: string;
          game_type: string;
        }[]
      >`
        SELECT game_id, partner_id, display_name, config_name, game_type FROM games
        WHERE game_id = ${number} OR strpos(lower(display_name), ${wanted}) > 0 OR strpos(lower(config_name), ${wanted}) > 0
        ORDER BY game_id <> ${number}, game_id DESC LIMIT ${FOUND_MAX}`,
      this.#sql<{ partner_id: number; key_id: number; name: string | null; prefix: string | null }[]>`
        SELECT partner_id, key_id, name, prefix FROM api_keys
        WHERE strpos(lower(name), ${wanted}) > 0 OR starts_with(prefix, ${prefix})
        ORDER BY key_id DESC LIMIT ${FOUND_MAX}`,
      this.#sql<{ name: string; prefix: string | null }[]>`
        SELECT name, prefix FROM operators WHERE strpos(lower(name), ${wanted}) > 0 OR starts_with(prefix, ${prefix})
        ORDER BY name LIMIT ${FOUND_MAX}`,
    ]);
    return {
      partners: partners.map((row) => ({ partnerId: row.partner_id, slug: row.slug, name: row.name })),
      games: games.map((row) => ({
        gameConfigId: row.game_id,
        partnerId: row.partner_id,
        displayName: row.display_name,
        configName: row.config_name,
        gameType: row.game_type,
      })),
      keys: keys.map((row) => ({
        partnerId: row.partner_id,
        keyId: row.key_id,
        name: row.name,
        prefix: row.prefix,
      })),
      operators,
    };
  }

  /**
   * Returns the ids of the partners to search for a player.
   *
   * @param slug slug of the partner to search; undefined: the newest partners
   */
  async partnersToAsk(slug: string | undefined): Promise<number[]> {
    const rows = await this.#sql<{ partner_id: number }[]>`
      SELECT partner_id FROM partners WHERE ${slug ?? null}::text IS NULL OR slug = ${slug ?? null}
      ORDER BY partner_id DESC LIMIT ${PLAYER_PARTNERS_MAX}`;
    return rows.map((row) => row.partner_id);
  }
}
