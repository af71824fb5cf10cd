/**
 * SQL of the significant events: entries of the audit log and large wins, ordered by time (docs/reports.md).
 */

import type { WithDates } from '../../domain/schema.js';
import {
  LARGE_WIN,
  type Severity,
  type SignificantEvent as SignificantEventSchema,
  severityOf,
  typesOf,
} from '../../domain/significantEvents.js';
import type { NewEvent } from '../../domain/webhook.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { raw, textArrayOf } from '../../postgres/statements.js';

export type SignificantEvent = WithDates<typeof SignificantEventSchema, 'at'>;

export interface EventsWanted {
  readonly from: Date | undefined;
  /** End of the requested period, exclusive. */
  readonly to: Date | undefined;
  readonly type: string | undefined;
  readonly severity: Severity | undefined;
  readonly partnerId: number | undefined;
}

/**
 * Position up to which a reader has received the events: the newest audit entry and the newest large win that
 * it has read.
 */
export interface EventPlace {
  readonly auditId: bigint;
  readonly winId: bigint;
}

/**
 * Maximum duration of a transaction, in ms. It matters because an entry's time is the start of its
 * transaction, but its number is assigned when the entry is written.
 */
const SLACK_MS = 600_000;

/**
 * SQL for the partner that the subject of an audit entry belongs to. Null if the subject belongs to no
 * partner.
 */
const PARTNER_OF_SUBJECT = raw(`(
  SELECT CASE WHEN subject !~ '^[a-z-]+:[0-9]{1,9}(:|$)' THEN NULL
    WHEN kind IN ('partner', 'settlement', 'player') THEN id
    WHEN kind = 'game' THEN (SELECT partner_id FROM games WHERE game_id = id)
    WHEN kind = 'key' THEN (SELECT partner_id FROM api_keys WHERE key_id = id)
    WHEN kind = 'par-sheet' THEN (SELECT partner_id FROM par_sheets WHERE par_sheet_id = id)
    WHEN kind = 'rtp-review' THEN (SELECT partner_id FROM rtp_reviews JOIN games USING (game_id) WHERE review_id = id) END
  FROM (SELECT split_part(subject, ':', 1) AS kind,
    CASE WHEN subject ~ '^[a-z-]+:[0-9]{1,9}(:|$)' THEN split_part(subject, ':', 2)::int END AS id) s)`);

interface Row {
  id: bigint;
  at: Date;
  action: string;
  actor: string;
  subject: string;
  partnerId: number | null;
  before: unknown;
  after: unknown;
}

/** Records the large wins among the events of a flush, within the flush's transaction. */
export async function noteLargeWins(tx: Transaction, events: readonly NewEvent[]): Promise<void> {
  const wins = events.filter(({ event }) => event === LARGE_WIN);
  if (wins.length === 0) return;
  const rows = wins.map(({ partnerId, createdAt, data }) => ({ partner: partnerId, at: createdAt, data }));
  await tx`
    INSERT INTO large_wins (partner_id, at, data)
    SELECT partner, at, data FROM json_to_recordset(${JSON.stringify(rows)}::json) AS w(partner int, at timestamptz, data json)`;
}

export class SignificantEvents {
  constructor(private readonly sql: Sql) {}

  /**
   * Reads events after a position, oldest first. The audit log is read in the order of its numbers, which is
   * the order of its commits, so no event can later appear before an event that was already returned.
   * @returns `next` is undefined if there are no more events now
   */
  async page(
    wanted: EventsWanted,
    place: EventPlace,
    limit: number,
  ): Promise<{ events: SignificantEvent[]; next: EventPlace | undefined }> {
    const [entries, wins] = await Promise.all([
      this.#entries(wanted, place.auditId, limit + 1),
      this.#wins(wanted, place.winId, limit + 1),
    ]);
    const events: SignificantEvent[] = [];
    let [entry, win] = [0, 0];
    let next = place;
    while (events.length < limit && (entry < entries.length || win < wins.length)) {
      const [one, other] = [entries[entry], wins[win]];
      if (other === undefined || (one !== undefined && one.at <= other.at)) {
        events.push(eventOf(one!, 'a'));
        next = { ...next, auditId: one!.id };
        entry++;
      } else {
        events.push(eventOf(other, 'w'));
        next = { ...next, winId: other.id };
        win++;
      }
    }
    return { events, next: entry < entries.length || win < wins.length ? next : undefined };
  }

  async #entries(
    { from, to, type, severity, partnerId }: EventsWanted,
    after: bigint,
    limit: number,
  ): Promise<Row[]> {
    if (type === LARGE_WIN) return [];
    const first = from === undefined ? 1n : await this.#firstSince(from.getTime() - SLACK_MS);
    const end = to === undefined ? null : await this.#firstSince(to.getTime() + SLACK_MS);
    const grave = textArrayOf([...typesOf('WARNING'), ...typesOf('CRITICAL')]);
    const these = severity === undefined || severity === 'INFO' ? null : textArrayOf(typesOf(severity));
    return this.sql<Row[]>`
      SELECT audit_id AS id, at, action, actor, subject, ${PARTNER_OF_SUBJECT} AS partner_id, before, after FROM audit_log
      WHERE audit_id > ${after} AND audit_id >= ${first} AND audit_id < coalesce(${end}::bigint, 9223372036854775807)
        AND at >= coalesce(${from ?? null}::timestamptz, '-infinity') AND at < coalesce(${to ?? null}::timestamptz, 'infinity')
        AND (${type ?? null}::text IS NULL OR action = ${type ?? null}) AND (${these}::text[] IS NULL OR action = ANY(${these}::text[]))
        AND (${severity ?? null}::text IS DISTINCT FROM 'INFO' OR action <> ALL(${grave}::text[]))
        AND (${partnerId ?? null}::int IS NULL OR ${PARTNER_OF_SUBJECT} = ${partnerId ?? null}::int)
      ORDER BY audit_id LIMIT ${limit}`;
  }

  /**
   * Returns the number of the first audit entry that is not older than the given time. Audit entries are
   * numbered without gaps.
   */
  async #firstSince(ms: number): Promise<bigint> {
    const [row] = await this.sql<
      { newest: bigint }[]
    >`SELECT coalesce(max(audit_id), 0) AS newest FROM audit_log`;
    let [low, high] = [1n, row!.newest + 1n];
    while (low < high) {
      const middle = (low + high) / 2n;
      const [entry] = await this.sql<{ at: Date }[]>`
        SELECT at FROM audit_log WHERE audit_id >= ${middle} ORDER BY audit_id LIMIT 1`;
      if (entry === undefined || entry.at.getTime() >= ms) high = middle;
      else low = middle + 1n;
    }
    return low;
  }

  async #wins(
    { from, to, type, severity, partnerId }: EventsWanted,
    after: bigint,
    limit: number,
  ): Promise<Row[]> {
    if ((type ?? LARGE_WIN) !== LARGE_WIN || (severity ?? severityOf(LARGE_WIN)) !== severityOf(LARGE_WIN))
      return [];
    return this.sql<Row[]>`
      SELECT large_win_id AS id, at, ${LARGE_WIN}::text AS action, 'worker' AS actor,
        'player:' || partner_id || ':' || (data ->> 'playerId') AS subject, partner_id, NULL::json AS before, data AS after
      FROM large_wins
      WHERE large_win_id > ${after} AND (${partnerId ?? null}::int IS NULL OR partner_id = ${partnerId ?? null}::int)
        AND at >= coalesce(${from ?? null}::timestamptz, '-infinity') AND at < coalesce(${to ?? null}::timestamptz, 'infinity')
      ORDER BY large_win_id LIMIT ${limit}`;
  }
}

type LargeWin = Extract<NewEvent, { event: typeof LARGE_WIN }>['data'];

const winOf = ({ gameId, playerId, spinId, payoutUsd }: LargeWin) => ({
  gameId,
  playerId,
  spinId,
  payoutUsd,
});

/** Returns the game or the player that a subject such as `game:7` or `player:2:alice` names. */
function objectsOf(subject: string) {
  const [, kind, rest = ''] = /^(game|player):(.*)$/s.exec(subject) ?? [];
  return {
    gameId: kind === 'game' && /^\d{1,9}$/.test(rest) ? Number(rest) : null,
    playerId: kind === 'player' ? rest.slice(rest.indexOf(':') + 1) : null,
    spinId: null,
    payoutUsd: null,
  };
}

const eventOf = (row: Row, source: 'a' | 'w'): SignificantEvent => ({
  eventId: `${source}${row.id}`,
  at: row.at,
  type: row.action,
  severity: severityOf(row.action),
  actor: row.actor,
  subject: row.subject,
  partnerId: row.partnerId,
  ...(source === 'w' ? winOf(row.after as LargeWin) : objectsOf(row.subject)),
  data: source === 'w' ? row.after : { before: row.before, after: row.after },
});
