/** Reads the rounds of all partners as a list for operators. */
import type { Static } from '#typebox';
import type { RoundStatus } from '../../domain/games/round.js';
import type { Page as PageSchema } from '../../domain/schema.js';
import type { Sql } from '../../postgres/connection.js';
import { raw, safe } from '../../postgres/statements.js';
import type { OperatorRoundsQuery as OperatorRoundsQuerySchema } from './contract.js';

/** Highest count that a list of rounds reports. Counting stops at this number. */
const COUNTED_MAX = 10_000;

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

export class RoundList {
  constructor(private readonly sql: Sql) {}

  /**
   * Returns one page of rounds, newest first.
   *
   * @param of filters; an absent member selects all rounds
   */
  async page(
    of: RoundsSought,
    page: number,
    limit: number,
  ): Promise<{ rounds: ListedRound[]; total: number }> {
    const partnerId = of.partnerId ?? null;
    const gameId = of.gameId ?? null;
    const status = of.status ?? null;
    // A game deals its shoes in order of their index, so the highest index is the newest round. Rounds of one
    // game are stored by that index, so sorting by it is fast.
    const newestFirst = raw(gameId === null ? 'deal_id DESC' : 'shoe_index DESC');
    const rounds = await this.sql<ListedRound[]>`
      SELECT deal_id, r.partner_id, game_id, display_name AS game_name, player_id, r.status, wagered AS wagered_micros,
        CASE WHEN r.status = 'VOIDED' THEN wagered ELSE payout_micros END AS payout_micros
      FROM rounds r JOIN games USING (game_id),
        LATERAL (SELECT sum(w) AS wagered FROM unnest(wagers_micros) AS w WHERE w > 0) s
      WHERE (${partnerId}::int IS NULL OR r.partner_id = ${partnerId})
        AND (${gameId}::int IS NULL OR game_id = ${gameId}) AND (${status}::text IS NULL OR r.status = ${status})
      ORDER BY ${newestFirst} LIMIT ${limit} OFFSET ${Math.min((page - 1) * limit, COUNTED_MAX)}`;
    const [count] = await this.sql<{ total: bigint }[]>`
      SELECT count(*) AS total FROM (
        SELECT 1 FROM rounds WHERE (${partnerId}::int IS NULL OR partner_id = ${partnerId})
          AND (${gameId}::int IS NULL OR game_id = ${gameId}) AND (${status}::text IS NULL OR status = ${status})
        LIMIT ${COUNTED_MAX}) c`;
    return { rounds, total: safe(count!.total) };
  }
}
