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
  constructor(private readonly sql: Sql) {}

  /**
   * Finds partners, games, keys and operators whose name contains the text (case-insensitive), whose number
   * equals it, or whose key starts with it.
   */
  async byName(text: string): Promise<FoundNames> {
    const number = /^[1-9]\d{0,8}$/.test(text) ? Number(text) : 0;
    const wanted = text.toLowerCase();
    const prefix = soughtPrefix(text) ?? null;
    const [partners, games, keys, operators] = await Promise.all([
      this.sql<FoundNames['partners']>`
        SELECT partner_id, slug, name FROM partners
        WHERE partner_id = ${number} OR strpos(slug, ${wanted}) > 0 OR strpos(lower(name), ${wanted}) > 0
        ORDER BY partner_id <> ${number}, slug <> ${wanted}, partner_id LIMIT ${FOUND_MAX}`,
      this.sql<FoundNames['games']>`
        SELECT game_id AS game_config_id, partner_id, display_name, config_name, game_type FROM games
        WHERE game_id = ${number} OR strpos(lower(display_name), ${wanted}) > 0 OR strpos(lower(config_name), ${wanted}) > 0
        ORDER BY game_id <> ${number}, game_id DESC LIMIT ${FOUND_MAX}`,
      this.sql<FoundNames['keys']>`
        SELECT partner_id, key_id, name, prefix FROM api_keys
        WHERE strpos(lower(name), ${wanted}) > 0 OR starts_with(prefix, ${prefix})
        ORDER BY key_id DESC LIMIT ${FOUND_MAX}`,
      this.sql<FoundNames['operators']>`
        SELECT name, prefix FROM operators WHERE strpos(lower(name), ${wanted}) > 0 OR starts_with(prefix, ${prefix})
        ORDER BY name LIMIT ${FOUND_MAX}`,
    ]);
    return { partners, games, keys, operators };
  }

  /**
   * Returns the ids of the partners to search for a player.
   *
   * @param slug slug of the partner to search; undefined: the newest partners
   */
  async partnersToAsk(slug: string | undefined): Promise<number[]> {
    const rows = await this.sql<{ partnerId: number }[]>`
      SELECT partner_id FROM partners WHERE ${slug ?? null}::text IS NULL OR slug = ${slug ?? null}
      ORDER BY partner_id DESC LIMIT ${PLAYER_PARTNERS_MAX}`;
    return rows.map((row) => row.partnerId);
  }
}
