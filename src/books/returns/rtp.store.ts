/**
 * Stores judgements of the return to player (RTP) and the reviews that they open. A judgement is a row that
 * never changes. The days of a game are judged in order, each as soon as its complete settlement report
 * exists. A judgement and the review that it opens are one transaction.
 */
import type { ParSheet } from '../../domain/par.js';
import { type Judged, judgeRtp, type RtpState, type RtpWindow, type SheetMoments } from '../../domain/rtp.js';
import { sheetsOf } from '../../engine/catalog/catalog.store.js';
import { writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { raw, rowsOf, safe } from '../../postgres/statements.js';

/**
 * Advisory lock. It ensures that only one worker judges at a time. The other workers then find no due days.
 */
const JUDGE_LOCK = 7_310_035;
/** Maximum number of games judged in one transaction. */
const JUDGED_AT_ONCE = 1000;
/** Maximum total that a list of reviews reports; a larger total is reported as this number. */
const COUNTED_MAX = 10_000;
/** Maximum number of judgements in a review. Only the newest are included. */
const REVIEW_RECORDS_MAX = 100;
const REVIEW_NOTES_MAX = 1000;

export type RtpFinding = 'CHANCE' | 'GAME_ERROR' | 'DATA_ERROR';

export interface RtpRecord extends Judged {
  readonly day: string;
  readonly fromDay: string;
  readonly window: RtpWindow;
  readonly mean: number | null;
  readonly sigma: number | null;
  readonly z: number | null;
  readonly nats: number | null;
  readonly state: RtpState;
  readonly judgedAt: Date;
}

export interface RtpReview {
  readonly reviewId: number;
  readonly gameId: number;
  readonly window: RtpWindow;
  readonly openedAt: Date;
  readonly finding: RtpFinding | null;
  readonly closedAt: Date | null;
  readonly closedBy: string | null;
  readonly notes: readonly { readonly at: Date; readonly by: string; readonly text: string }[];
  readonly records: readonly RtpRecord[];
}

/** Judgement window of a game (30 days or lifetime) that is due for a day. */
interface DueWindow extends Judged {
  readonly gameId: number;
  readonly day: string;
  readonly fromDay: string;
  readonly window: RtpWindow;
  readonly sheetId: number | null;
}

const RECORD_COLUMNS = raw(
  'day::text AS day, from_day::text AS from_day, span AS "window", spins, wagered_micros, paid_micros, mean, sigma, z, nats, state, judged_at',
);

type ReviewRow = Omit<RtpReview, 'notes' | 'records'> & { readonly openedDay: string };

const REVIEW_COLUMNS = raw(
  'review_id, game_id, span AS "window", opened_at, opened_day::text AS opened_day, finding, closed_at, closed_by',
);

/**
 * Query for the next day of each game that can be judged. For a slot game this is the day after the last
 * judged day. The return of other games is not judged, so their next day is the next day with spins.
 */
const DUE = raw(`
  SELECT g.game_id, g.par_sheet_id, n.day, n.first_day
  FROM games g CROSS JOIN LATERAL (
    SELECT first_day, CASE WHEN judged IS NULL THEN first_day WHEN g.game_type = 'slot' THEN judged + 1
      ELSE (SELECT min(day) FROM game_days d WHERE d.game_id = g.game_id AND d.spins > 0 AND d.day > judged) END AS day
    FROM (SELECT (SELECT max(day) FROM rtp_records r WHERE r.game_id = g.game_id) AS judged,
                 (SELECT min(day) FROM game_days d WHERE d.game_id = g.game_id AND d.spins > 0) AS first_day) s) n
  WHERE EXISTS (SELECT 1 FROM settlement_reports s
                WHERE s.partner_id = g.partner_id AND s.report_date = n.day AND s.is_complete)
  ORDER BY g.game_id LIMIT ${JUDGED_AT_ONCE}`);

/** Returns both windows (30 days and lifetime) of all due games, summed from daily totals. */
async function dueWindows(tx: Transaction): Promise<DueWindow[]> {
  return tx<DueWindow[]>`
    WITH due AS MATERIALIZED (${DUE})
    SELECT due.game_id, due.par_sheet_id AS sheet_id, due.day::text AS day, w.from_day::text AS from_day, w.span AS "window", t.*
    FROM due CROSS JOIN LATERAL (VALUES ('ROLLING_30', due.day - 29), ('LIFE', due.first_day)) AS w(span, from_day)
      CROSS JOIN LATERAL (
        SELECT coalesce(sum(spins), 0) AS spins, coalesce(sum(wagered_micros), 0) AS wagered_micros,
               coalesce(sum(paid_micros), 0) AS paid_micros
        FROM game_days d WHERE d.game_id = due.game_id AND d.day BETWEEN w.from_day AND due.day) t`;
}

export interface OpenReviews {
  readonly open: number;
  /** Age of the oldest open review in seconds; 0 if none is open. */
  readonly oldestSeconds: number;
  /** Number of games with an open review whose newest 30-day judgement is ALERT. */
  readonly alertsOf30Days: number;
}

export async function openReviews(sql: Sql): Promise<OpenReviews> {
  const [row] = await sql<[OpenReviews]>`
    SELECT count(*)::int AS open,
      greatest(coalesce(extract(epoch FROM now() - min(opened_at)), 0), 0)::float8 AS oldest_seconds,
      (count(*) FILTER (WHERE (SELECT state FROM rtp_records c WHERE c.game_id = r.game_id AND span = 'ROLLING_30'
        ORDER BY day DESC LIMIT 1) = 'ALERT'))::int AS alerts_of_30_days
    FROM rtp_reviews r WHERE closed_at IS NULL`;
  return row;
}

export class Rtp {
  constructor(private readonly sql: Sql) {}

  /**
   * Judges the next day of up to 1,000 games.
   * @param momentsOf returns the statistical moments of PAR sheets by id; a game without moments is not
   * judged for its return
   * @returns number of judged games; 0 if no day is due
   */
  async judgeNext(
    momentsOf: (sheetIds: readonly number[]) => Promise<ReadonlyMap<number, SheetMoments>>,
    now: Date,
  ): Promise<number> {
    return this.sql.begin(async (tx) => {
      await tx`SELECT pg_advisory_xact_lock(${JUDGE_LOCK})`;
      const due = await dueWindows(tx);
      if (due.length === 0) return 0;
      const sheetIds = [...new Set(due.flatMap(({ sheetId }) => sheetId ?? []))];
      const moments = await momentsOf(sheetIds);
      const records = due.map((each) => {
        const of = each.sheetId === null ? undefined : moments.get(each.sheetId);
        return { ...of, ...each, of, ...judgeRtp(each, of) };
      });
      await tx`
        INSERT INTO rtp_records (game_id, day, span, from_day, spins, wagered_micros, paid_micros, mean, sigma, skewness,
                                 z, nats, state, judged_at)
        SELECT given.*, ${now} FROM ${rowsOf(records, { gameId: 'int', day: 'date', window: 'text', fromDay: 'date', spins: 'numeric', wageredMicros: 'numeric', paidMicros: 'numeric', mean: 'float8', sigma: 'float8', skewness: 'float8', z: 'float8', nats: 'float8', state: 'text' })}`;
      for (const record of records) {
        if (record.state === 'REVIEW' || record.state === 'ALERT') await openReview(tx, record, now);
      }
      return records.length / 2;
    });
  }

  sheets(ids: readonly number[]): Promise<Map<number, ParSheet>> {
    return sheetsOf(this.sql, ids);
  }

  /** Returns the newest judgement of each window; empty if the game has not been judged yet. */
  async newest(gameId: number): Promise<RtpRecord[]> {
    return this.sql<RtpRecord[]>`
      SELECT ${RECORD_COLUMNS} FROM rtp_records
      WHERE game_id = ${gameId} AND day = (SELECT max(day) FROM rtp_records WHERE game_id = ${gameId})
      ORDER BY span DESC`;
  }

  /**
   * Returns the judgements of a game for its newest days, oldest first. The caller gives the number of days.
   */
  async history(gameId: number, days: number): Promise<RtpRecord[]> {
    return this.sql<RtpRecord[]>`
      SELECT ${RECORD_COLUMNS} FROM rtp_records
      WHERE game_id = ${gameId}
        AND day > (SELECT max(day) FROM rtp_records WHERE game_id = ${gameId}) - ${days}::int
      ORDER BY rtp_records.day, span DESC`;
  }

  /** Returns a page of reviews, newest first, and the total number of reviews, counted up to 10,000. */
  async reviews(
    { isOpen, gameId }: { readonly isOpen: boolean | undefined; readonly gameId: number | undefined },
    page: number,
    limit: number,
  ): Promise<{ reviews: RtpReview[]; total: number }> {
    const wanted = [isOpen ?? null, gameId ?? null] as const;
    const rows = await this.sql<ReviewRow[]>`
      SELECT ${REVIEW_COLUMNS} FROM rtp_reviews
      WHERE (closed_at IS NULL) = coalesce(${wanted[0]}::boolean, closed_at IS NULL)
        AND game_id = coalesce(${wanted[1]}::int, game_id)
      ORDER BY review_id DESC LIMIT ${limit} OFFSET ${(page - 1) * limit}`;
    const [count] = await this.sql<{ total: bigint }[]>`
      SELECT count(*) AS total FROM (SELECT 1 FROM rtp_reviews
        WHERE (closed_at IS NULL) = coalesce(${wanted[0]}::boolean, closed_at IS NULL)
          AND game_id = coalesce(${wanted[1]}::int, game_id) LIMIT ${COUNTED_MAX}) c`;
    const reviews: RtpReview[] = [];
    for (const row of rows) reviews.push(await reviewOf(this.sql, row));
    return { reviews, total: safe(count!.total) };
  }

  async review(reviewId: number): Promise<RtpReview | undefined> {
    const [row] = await this.sql<ReviewRow[]>`
      SELECT ${REVIEW_COLUMNS} FROM rtp_reviews WHERE review_id = ${reviewId}`;
    return row === undefined ? undefined : reviewOf(this.sql, row);
  }

  /**
   * Adds a note to an open or closed review.
   * @returns undefined if there is no such review
   */
  async addNote(reviewId: number, actor: string, text: string): Promise<RtpReview | undefined> {
    return this.sql.begin(async (tx) => {
      const row = await lockedReview(tx, reviewId);
      if (row === undefined) return undefined;
      await tx`INSERT INTO rtp_review_notes (review_id, by, text) VALUES (${reviewId}, ${actor}, ${text})`;
      await writeAuditEntry(tx, {
        actor,
        action: 'rtp.review-note',
        subject: `rtp-review:${reviewId}`,
        after: { text },
      });
      return reviewOf(tx, row);
    });
  }

  /**
   * Closes a review permanently.
   * @returns undefined if there is no such review; `closed` if it was already closed
   */
  async close(
    reviewId: number,
    actor: string,
    finding: RtpFinding,
    text: string,
  ): Promise<RtpReview | undefined | 'closed'> {
    return this.sql.begin(async (tx) => {
      const before = await lockedReview(tx, reviewId);
      if (before === undefined) return undefined;
      if (before.closedAt !== null) return 'closed';
      await tx`INSERT INTO rtp_review_notes (review_id, by, text) VALUES (${reviewId}, ${actor}, ${text})`;
      const [row] = await tx<ReviewRow[]>`
        UPDATE rtp_reviews SET finding = ${finding}, closed_at = now(), closed_by = ${actor}
        WHERE review_id = ${reviewId} RETURNING ${REVIEW_COLUMNS}`;
      const after = { gameConfigId: before.gameId, finding, text };
      await writeAuditEntry(tx, {
        actor,
        action: 'rtp.review-close',
        subject: `rtp-review:${reviewId}`,
        after,
      });
      return reviewOf(tx, row!);
    });
  }
}

/** Opens a review unless the game already has an open one. */
async function openReview(
  tx: Transaction,
  record: DueWindow & { state: RtpState },
  now: Date,
): Promise<void> {
  const { gameId, window, day, state } = record;
  const [opened] = await tx<{ reviewId: number }[]>`
    INSERT INTO rtp_reviews (game_id, span, opened_at, opened_day) VALUES (${gameId}, ${window}, ${now}, ${day}::date)
    ON CONFLICT (game_id) WHERE closed_at IS NULL DO NOTHING RETURNING review_id`;
  if (opened === undefined) return;
  const subject = `rtp-review:${opened.reviewId}`;
  const after = { gameConfigId: gameId, window, day, state };
  await writeAuditEntry(tx, { actor: 'worker', action: 'rtp.review-open', subject, after });
}

/** Reads a review of a game's return and locks its row until the end of the transaction. */
async function lockedReview(tx: Transaction, reviewId: number): Promise<ReviewRow | undefined> {
  const [row] = await tx<ReviewRow[]>`
    SELECT ${REVIEW_COLUMNS} FROM rtp_reviews WHERE review_id = ${reviewId} FOR UPDATE`;
  return row;
}

/**
 * Returns a review with its notes and with the REVIEW and ALERT judgements between its opening day and its
 * closing.
 */
async function reviewOf(sql: Sql | Transaction, row: ReviewRow): Promise<RtpReview> {
  const notes = await sql<{ at: Date; by: string; text: string }[]>`
    SELECT at, by, text FROM rtp_review_notes WHERE review_id = ${row.reviewId}
    ORDER BY note_id LIMIT ${REVIEW_NOTES_MAX}`;
  const records = await sql<RtpRecord[]>`
    SELECT * FROM (
      SELECT ${RECORD_COLUMNS} FROM rtp_records
      WHERE game_id = ${row.gameId} AND rtp_records.day >= ${row.openedDay}::date AND state IN ('REVIEW', 'ALERT')
        AND judged_at <= coalesce(${row.closedAt}::timestamptz, 'infinity')
      ORDER BY rtp_records.day DESC, span LIMIT ${REVIEW_RECORDS_MAX}) newest
    ORDER BY newest.day, newest."window" DESC`;
  const { openedDay: _, ...review } = row;
  return { ...review, notes, records };
}
