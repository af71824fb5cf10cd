/** What operators find things by: names, numbers and lists across partners. Every answer is bounded. */

import type { Static } from '#typebox';
import { soughtPrefix } from '../../domain/apiKey.js';
import type { RoundStatus } from '../../domain/games/round.js';
import type { ParSheet } from '../../domain/par.js';
import type { Page as PageSchema } from '../../domain/schema.js';
import { type TrafficHour, trafficHours } from '../../engine/ledger/trafficHours.store.js';
import type { Sql } from '../../postgres/connection.js';
import { raw, safe } from '../../postgres/statements.js';
import type { OperatorRoundsQuery as OperatorRoundsQuerySchema } from '../blackjack/contract.js';
import type { OperatorParSheet as OperatorParSheetSchema } from '../games/contract.js';
import { type ParSheetStatus, SUMMARY, type SummaryRow, summaryOf } from '../games/parSheets.store.js';
import type { TrafficDay } from '../overview/overviewReads.store.js';
import type { Found as FoundSchema } from './contract.js';

/** Of each kind that a search finds. */
const FOUND_MAX = 10;
/** Partners that are asked whether they have a player. */
const PLAYER_PARTNERS_MAX = 50;
/** A list counts no further. */
const COUNTED_MAX = 10_000;
const PROGRESSIVES_MAX = 200;

export type FoundNames = Readonly<Omit<Static<typeof FoundSchema>, 'players' | 'plays'>>;

export interface ListedRound {
  readonly dealId: bigint;
  readonly partnerId: number;
  readonly gameId: number;
  readonly gameName: string;
  readonly playerId: string;
  readonly status: RoundStatus;
  readonly wageredMicros: bigint;
  readonly payoutMicros: bigint | null;
}

export type RoundsSought = Readonly<
  Omit<Static<typeof OperatorRoundsQuerySchema>, keyof Static<typeof PageSchema>>
>;

export type ListedSheet = Readonly<Static<typeof OperatorParSheetSchema>>;

export interface Progressive {
  readonly gameConfigId: number;
  readonly partnerId: number;
  readonly displayName: string;
  readonly isEnabled: boolean;
  readonly budgetMicros: bigint;
  readonly paidMicros: bigint;
}

export class SearchReads {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Partners, games, keys and operators whose name has the text, whatever its case, whose number it is, or whose key begins so. */
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

  /** Partners that may have a player. @param slug of the one that is meant; undefined: the newest */
  async partnersToAsk(slug: string | undefined): Promise<number[]> {
    const rows = await this.#sql<{ partner_id: number }[]>`
      SELECT partner_id FROM partners WHERE ${slug ?? null}::text IS NULL OR slug = ${slug ?? null}
      ORDER BY partner_id DESC LIMIT ${PLAYER_PARTNERS_MAX}`;
    return rows.map((row) => row.partner_id);
  }

  /** A page of rounds, the newest first. @param of absent members: all */
  async rounds(
    of: RoundsSought,
    page: number,
    limit: number,
  ): Promise<{ rounds: ListedRound[]; total: number }> {
    const partnerId = of.partnerId ?? null;
    const gameId = of.gameId ?? null;
    const status = of.status ?? null;
    // A game deals its shoes in their order, by which its rounds are kept.
    const newestFirst = raw(gameId === null ? 'deal_id DESC' : 'shoe_index DESC');
    const rows = await this.#sql<
      {
        deal_id: bigint;
        partner_id: number;
        game_id: number;
        display_name: string;
        player_id: string;
        status: RoundStatus;
        wagered: bigint;
        payout_micros: bigint | null;
      }[]
    >`
      SELECT deal_id, r.partner_id, game_id, display_name, player_id, r.status, payout_micros,
        (SELECT sum(w) FROM unnest(wagers_micros) AS w WHERE w > 0) AS wagered
      FROM rounds r JOIN games USING (game_id)
      WHERE (${partnerId}::int IS NULL OR r.partner_id = ${partnerId})
        AND (${gameId}::int IS NULL OR game_id = ${gameId}) AND (${status}::text IS NULL OR r.status = ${status})
      ORDER BY ${newestFirst} LIMIT ${limit} OFFSET ${Math.min((page - 1) * limit, COUNTED_MAX)}`;
    const [count] = await this.#sql<{ total: bigint }[]>`
      SELECT count(*) AS total FROM (
        SELECT 1 FROM rounds WHERE (${partnerId}::int IS NULL OR partner_id = ${partnerId})
          AND (${gameId}::int IS NULL OR game_id = ${gameId}) AND (${status}::text IS NULL OR status = ${status})
        LIMIT ${COUNTED_MAX}) c`;
    return {
      rounds: rows.map((row) => ({
        dealId: row.deal_id,
        partnerId: row.partner_id,
        gameId: row.game_id,
        gameName: row.display_name,
        playerId: row.player_id,
        status: row.status,
        wageredMicros: row.wagered,
        payoutMicros: row.payout_micros,
      })),
      total: safe(count!.total),
    };
  }

  /** A page of PAR sheets, retired ones too, the newest first. @param partnerId undefined: of all partners */
  async parSheets(
    partnerId: number | undefined,
    page: number,
    limit: number,
  ): Promise<{ parSheets: ListedSheet[]; total: number }> {
    const of = partnerId ?? null;
    const rows = await this.#sql<SheetRow[]>`
      SELECT partner_id, status, ${SUMMARY} FROM par_sheets WHERE ${of}::int IS NULL OR partner_id = ${of}
      ORDER BY par_sheet_id DESC LIMIT ${limit} OFFSET ${Math.min((page - 1) * limit, COUNTED_MAX)}`;
    const [count] = await this.#sql<{ total: bigint }[]>`
      SELECT count(*) AS total FROM (
        SELECT 1 FROM par_sheets WHERE ${of}::int IS NULL OR partner_id = ${of} LIMIT ${COUNTED_MAX}) c`;
    return { parSheets: rows.map(sheetOf), total: safe(count!.total) };
  }

  /** A sheet as it was uploaded; undefined where there is none. */
  async parSheet(parSheetId: number): Promise<(ListedSheet & { sheet: ParSheet }) | undefined> {
    const [row] = await this.#sql<(SheetRow & { sheet: ParSheet })[]>`
      SELECT partner_id, status, ${SUMMARY}, sheet FROM par_sheets WHERE par_sheet_id = ${parSheetId}`;
    return row === undefined ? undefined : { ...sheetOf(row), sheet: row.sheet };
  }

  /** Games that have a communal progressive, with its newest rules, the newest games first. */
  async progressives(): Promise<Progressive[]> {
    const rows = await this.#sql<
      {
        game_id: number;
        partner_id: number;
        display_name: string;
        enabled: boolean;
        budget: bigint | null;
        paid: bigint | null;
      }[]
    >`
      SELECT game_id, partner_id, display_name, coalesce((rules->>'enabled')::boolean, false) AS enabled,
        budget_micros AS budget,
        (SELECT sum(paid_micros) FROM communal_days d WHERE d.game_id = r.game_id) AS paid
      FROM (SELECT DISTINCT ON (game_id) game_id, rules FROM communal_rules ORDER BY game_id DESC, version DESC
            LIMIT ${PROGRESSIVES_MAX}) r
        JOIN games USING (game_id) LEFT JOIN communal_pots USING (game_id)
      ORDER BY game_id DESC`;
    return rows.map((row) => ({
      gameConfigId: row.game_id,
      partnerId: row.partner_id,
      displayName: row.display_name,
      isEnabled: row.enabled,
      budgetMicros: row.budget ?? 0n,
      paidMicros: row.paid ?? 0n,
    }));
  }

  /** Each of the last UTC days with what was played on it, oldest first. @param partnerId undefined: of all partners */
  async trafficDays(days: number, partnerId: number | undefined): Promise<TrafficDay[]> {
    const of = partnerId ?? null;
    const rows = await this.#sql<{ day: string; spins: bigint; wagered: bigint; paid: bigint }[]>`
      SELECT d.day::text AS day, coalesce(sum(spins), 0) AS spins,
        coalesce(sum(wagered_micros), 0) AS wagered, coalesce(sum(paid_micros), 0) AS paid
      FROM (SELECT (now() AT TIME ZONE 'UTC')::date - i AS day FROM generate_series(0, ${days}::int - 1) AS i) d
        LEFT JOIN game_days g ON g.day = d.day AND (${of}::int IS NULL OR partner_id = ${of})
      GROUP BY d.day ORDER BY d.day`;
    return rows.map((row) => ({
      day: row.day,
      spins: row.spins,
      wageredMicros: row.wagered,
      paidMicros: row.paid,
    }));
  }

  /** @param partnerId undefined: of all partners */
  trafficHours(hours: number, partnerId: number | undefined): Promise<TrafficHour[]> {
    return trafficHours(this.#sql, hours, partnerId);
  }
}

interface SheetRow extends SummaryRow {
  partner_id: number;
  status: ParSheetStatus;
}

const sheetOf = (row: SheetRow): ListedSheet => ({
  ...summaryOf(row),
  partnerId: row.partner_id,
  status: row.status,
});
