/**
 * Reports on time intervals, and the liability of partners to their players. All figures are sums of daily
 * totals, which each flush writes in the transaction of its entries. The ledger itself is not read, so
 * dropped days are included. Each report is one statement, so its figures are consistent.
 */

import { DAY_MS, startOf } from '../../domain/days.js';
import { firstIdAt, idsIn } from '../../domain/entryId.js';
import { kindOfGame } from '../../domain/games/index.js';
import type { GameStatus, GameType } from '../../domain/games/kindOfGame.js';
import type { PrizeTableUsd } from '../../domain/games/prizeTable.js';
import { REFUND_PREFIX } from '../../domain/refund.js';
import type { Sql } from '../../postgres/connection.js';
import { columnOf, raw } from '../../postgres/statements.js';
import { FIRST_DAY, unsettledDays } from '../settlement/settledDays.store.js';

const ID_END = 2n ** 63n - 1n;
/** Upper bound of the duration of a round, as a difference of entry ids. */
const ROUND_LONGEST = idsIn(31 * DAY_MS);

export interface Sums {
  readonly spins: bigint;
  readonly wageredMicros: bigint;
  readonly paidMicros: bigint;
  readonly communityBonusMicros: bigint;
  /** Number of sealed outcomes that were voided. */
  readonly voidedOutcomes: bigint;
  /** Number of blackjack rounds open at the end of the interval, and the total stake on them. */
  readonly openRounds: bigint;
  readonly openWageredMicros: bigint;
  /** Sum of the committed refunds of voided raffles. */
  readonly refundedMicros: bigint;
}

export interface GameReportRow extends Sums {
  readonly partnerId: number;
  readonly gameId: number;
  readonly configName: string;
  readonly displayName: string;
  readonly gameType: GameType;
  readonly status: GameStatus;
  readonly certifiedRtp: number | null;
}

export interface GamesWanted {
  /**
   * First and last UTC day of the report's interval, both inclusive. If `from` is undefined, the interval
   * starts with the partner's first day.
   */
  readonly from: string | undefined;
  readonly to: string;
  /** True if the interval ends now, false if it ends with the day `to`. */
  readonly isToNow: boolean;
  readonly partnerId: number | undefined;
  readonly gameId: number | undefined;
}

export interface LiabilityRow {
  readonly partnerId: number;
  readonly slug: string;
  readonly players: bigint;
  readonly balancesMicros: bigint;
  /** Sums of the positive and of the negative balances; null for a day in the past. */
  readonly positiveMicros: bigint | null;
  readonly negativeMicros: bigint | null;
  readonly openRounds: bigint;
  readonly openWageredMicros: bigint;
  readonly communalBudgetMicros: bigint;
}

const SUMS = [
  'spins',
  'wageredMicros',
  'paidMicros',
  'communityBonusMicros',
  'voidedOutcomes',
  'openRounds',
  'openWageredMicros',
  'refundedMicros',
] as const satisfies (keyof Sums)[];
const ALL_SUMS = SUMS.map((name) => `'${name}', coalesce(sum(${columnOf(name)}), 0)::text`).join(', ');

/** Returns the first entry id at a time: 0 before the epoch, and the largest id after the last one. */
function idAt(ms: number): bigint {
  const id = firstIdAt(Math.max(0, ms));
  return id < ID_END ? id : ID_END;
}

const idAfter = (day: string): bigint => idAt(startOf(day) + DAY_MS);

/**
 * Query for the rounds that were open before an entry id, by game, with the stake on them up to that entry.
 */
const openRoundsBefore = (before: bigint) =>
  raw(`
  SELECT game_id, partner_id, count(*) AS open_rounds, sum((SELECT sum(wager) FROM unnest(entry_ids, wagers_micros) AS u(id, wager)
      WHERE id < ${before})) AS open_wagered
  FROM (SELECT game_id, partner_id, entry_ids, wagers_micros FROM rounds WHERE status = 'OPEN' AND deal_id < ${before}
        UNION ALL
        SELECT game_id, partner_id, entry_ids, wagers_micros FROM rounds WHERE status <> 'OPEN' AND deal_id < ${before}
          AND deal_id >= ${before - ROUND_LONGEST} AND entry_ids[cardinality(entry_ids)] >= ${before}) r
  GROUP BY game_id, partner_id`);

export class Reports {
  constructor(private readonly sql: Sql) {}

  /**
   * Returns the first day of one partner, or the earliest of all partners; undefined if there is no partner.
   */
  async firstDay(partnerId: number | undefined): Promise<string | undefined> {
    const of = partnerId ?? null;
    const [row] = await this.sql<{ day: string | null }[]>`
      SELECT min(${FIRST_DAY})::text AS day FROM partners p WHERE ${of}::int IS NULL OR partner_id = ${of}`;
    return row?.day ?? undefined;
  }

  /**
   * Returns the days without a complete settlement report of the partner (or, for all partners, of any of
   * them), oldest first.
   */
  async unsettledDays(partnerId: number | undefined, from: string, through: string): Promise<string[]> {
    const days = await unsettledDays(this.sql, from, through);
    return days
      .filter((day) => partnerId === undefined || day.partnerId === partnerId)
      .map(({ date }) => date);
  }

  /**
   * Returns wagers and payouts of the games of one partner or of all partners in an interval, ordered by game
   * id. A game without spins has zeros.
   * @param after lists only games with a higher id; the totals cover all games
   */
  async games(
    wanted: GamesWanted,
    after: number,
    limit: number,
  ): Promise<{ rows: GameReportRow[]; totals: Sums }> {
    const { from, to, partnerId, gameId, isToNow } = wanted;
    const [first, partner, game] = [from ?? '-infinity', partnerId ?? null, gameId ?? null];
    const before = isToNow ? ID_END : idAfter(to);
    const since = from === undefined ? 0n : idAt(startOf(from));
    const own = raw(
      [
        partner === null ? '' : `AND partner_id = ${partner}`,
        game === null ? '' : `AND game_id = ${game}`,
      ].join(' '),
    );
    type Columns = Sums & {
      all: Record<keyof Sums, string>;
      gameId: number | null;
      partnerId: number;
      configName: string;
      displayName: string;
      gameType: GameType;
      gameStatus: string;
      sealedAt: Date | null;
      closedAt: Date | null;
      sheetRtp: number | null;
      prizeTable: PrizeTableUsd | null;
    };
    const rows = await this.sql<Columns[]>`
      WITH d AS (SELECT game_id, sum(spins) AS spins, sum(wagered_micros) AS wagered, sum(paid_micros) AS paid FROM game_days
                 WHERE day BETWEEN ${first}::date AND ${to}::date ${own} GROUP BY game_id),
        b AS (SELECT game_id, sum(paid_micros) AS bonus FROM communal_days
              WHERE day BETWEEN ${first}::date AND ${to}::date ${own} GROUP BY game_id),
        v AS (SELECT game_id, sum(coalesce(sealed_to, to_index) - from_index) AS voided FROM voids
              WHERE (voided_at AT TIME ZONE 'UTC')::date BETWEEN ${first}::date AND ${to}::date GROUP BY game_id),
        o AS (${openRoundsBefore(before)}),
        r AS (SELECT game_id, refunded FROM raffles JOIN games g USING (game_id), LATERAL (
                SELECT sum(amount_micros) AS refunded FROM adjustments a
                WHERE a.partner_id = g.partner_id AND request_id >= ${REFUND_PREFIX} || game_id || ':'
                  AND request_id < ${REFUND_PREFIX} || game_id || ';' AND entry_id >= ${since} AND entry_id < ${before}) a
              WHERE voided_at IS NOT NULL ${own}),
        f AS (SELECT g.game_id, coalesce(spins, 0) AS spins, coalesce(wagered, 0) AS wagered_micros, coalesce(paid, 0) AS paid_micros,
                coalesce(bonus, 0) AS community_bonus_micros, coalesce(voided, 0) AS voided_outcomes, coalesce(open_rounds, 0) AS open_rounds,
                coalesce(open_wagered, 0) AS open_wagered_micros, coalesce(refunded, 0) AS refunded_micros
              FROM (SELECT game_id FROM games WHERE true ${own}) g LEFT JOIN d USING (game_id) LEFT JOIN b USING (game_id)
                LEFT JOIN v USING (game_id) LEFT JOIN o USING (game_id) LEFT JOIN r USING (game_id)),
        t AS (SELECT json_build_object(${raw(ALL_SUMS)}) AS all FROM f)
      SELECT t.all, p.* FROM t LEFT JOIN LATERAL (
        SELECT f.*, g.partner_id, g.config_name, g.display_name, g.game_type, g.status AS game_status, r.sealed_at,
          coalesce(r.closed_at, r.voided_at) AS closed_at, s.certified_rtp AS sheet_rtp, r.prize_table
        FROM f JOIN games g USING (game_id) LEFT JOIN raffles r USING (game_id) LEFT JOIN par_sheets s USING (par_sheet_id)
        WHERE game_id > ${after} ORDER BY game_id LIMIT ${limit}) p ON true
      ORDER BY p.game_id`;
    const totals = Object.fromEntries(SUMS.map((name) => [name, BigInt(rows[0]!.all[name])]));
    const listed = rows.filter(({ gameId }) => gameId !== null);
    return {
      totals: totals as unknown as Sums,
      rows: listed.map(({ all: _, gameStatus, sealedAt, closedAt, sheetRtp, prizeTable, ...row }) => {
        const { lifeCycle, mathematics } = kindOfGame(row.gameType);
        const isSuspended = gameStatus === 'SUSPENDED';
        return {
          ...row,
          gameId: row.gameId!,
          status: lifeCycle.statusOf({ isSuspended, sealedAt, closedAt }),
          certifiedRtp: mathematics.certifiedRtp({ sheetRtp, prizeTable }),
        };
      }),
    };
  }

  /**
   * Returns the liability of each partner to its players.
   * @param day UTC day at whose end the liability is computed; undefined means now. The current liability
   * also splits positive and negative balances, which reads every player.
   */
  async liability(day: string | undefined): Promise<LiabilityRow[]> {
    const [last, before] = day === undefined ? ['infinity', ID_END] : [day, idAfter(day)];
    const isNow = day === undefined;
    return this.sql<LiabilityRow[]>`
      WITH moved AS (
        SELECT partner_id, players, opened_micros AS micros FROM opening_days WHERE day <= ${last}::date
        UNION ALL SELECT partner_id, 0, amount_micros FROM adjustment_days WHERE day <= ${last}::date
        UNION ALL SELECT partner_id, 0, paid_micros FROM communal_days WHERE day <= ${last}::date
        UNION ALL SELECT partner_id, 0, paid_micros - wagered_micros FROM sandbox_days WHERE day <= ${last}::date
        UNION ALL SELECT partner_id, 0, sum(paid_micros) - sum(wagered_micros) FROM game_days WHERE day <= ${last}::date GROUP BY 1),
        m AS (SELECT partner_id, sum(players) AS players, sum(micros) AS balances FROM moved GROUP BY partner_id),
        o AS (SELECT partner_id, sum(open_rounds) AS open_rounds, sum(open_wagered) AS open_wagered
              FROM (${openRoundsBefore(before)}) g GROUP BY partner_id),
        c AS (SELECT partner_id, sum(micros) AS budget FROM (
                SELECT partner_id, amount_micros AS micros FROM communal_fundings JOIN games USING (game_id) WHERE note_id < ${before}
                UNION ALL SELECT partner_id, -paid_micros FROM communal_days WHERE day <= ${last}::date) x GROUP BY partner_id),
        n AS (${raw(isNow ? NEWEST_BALANCES : 'SELECT NULL::int AS partner_id, NULL::bigint AS positive, NULL::bigint AS negative WHERE false')})
      SELECT p.partner_id, p.slug, coalesce(players, 0) AS players, coalesce(balances, 0) AS balances_micros,
        ${raw(isNow ? 'coalesce(positive, 0)' : 'positive')} AS positive_micros, ${raw(isNow ? 'coalesce(negative, 0)' : 'negative')} AS negative_micros,
        coalesce(open_rounds, 0) AS open_rounds, coalesce(open_wagered, 0) AS open_wagered_micros,
        coalesce(budget, 0) AS communal_budget_micros
      FROM partners p LEFT JOIN m USING (partner_id) LEFT JOIN o USING (partner_id) LEFT JOIN c USING (partner_id)
        LEFT JOIN n USING (partner_id)
      WHERE ${isNow} OR p.created_at < ${new Date(isNow ? 0 : startOf(day) + DAY_MS)} OR players > 0
      ORDER BY p.partner_id`;
  }
}

/**
 * Query for the current balances of all players: their checkpoints, and the ledger entries of the few minutes
 * since then.
 */
const NEWEST_BALANCES = `
  SELECT partner_id, sum(balance) FILTER (WHERE balance > 0) AS positive, sum(balance) FILTER (WHERE balance < 0) AS negative
  FROM (SELECT partner_id, CASE WHEN c.entry_id IS NULL OR r.entry_id > c.entry_id THEN r.balance_micros ELSE c.balance_micros END AS balance
        FROM player_checkpoints c FULL JOIN (
          SELECT DISTINCT ON (partner_id, player_id) partner_id, player_id, entry_id, balance_micros FROM ledger
          WHERE entry_id >= (SELECT min(unchecked_from) FROM cells) ORDER BY partner_id, player_id, entry_id DESC) r
        USING (partner_id, player_id)) newest
  GROUP BY partner_id`;
