/**
 * Settlement reports in Postgres. A revision is inserted once and its content never changes; only its status
 * changes, once. A trigger enforces both rules. Generating, acknowledging or disputing a report takes the
 * partner's lock, so that only one of several workers generates it and the hash chain has one order.
 *
 *  PENDING ────┬──> ACKNOWLEDGED
 *  GENERATED ──┴──> DISPUTED        and from each status: the next revision
 *
 * A dispute stays open until an operator answers it with a revision that has a reason, or until the partner
 * acknowledges a later revision. A revision without a reason, such as one with which a worker completes a
 * report, does not answer a dispute.
 */
import { parseExactJson } from '../../domain/exactJson.js';
import { kindOfGame } from '../../domain/games/index.js';
import type { GameType } from '../../domain/games/kindOfGame.js';
import type { PrizeTableUsd } from '../../domain/games/prizeTable.js';
import {
  composeReport,
  type GameFigures,
  type ReportStatus,
  type SettlementReportBody,
  seal,
} from '../../domain/settlement.js';
import type { AuditAction } from '../../domain/significantEvents.js';
import { openRoundsAt } from '../../engine/blackjack/rounds.store.js';
import { WATERMARK } from '../../engine/catalog/partners.store.js';
import { because, writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { recordEvents } from '../../postgres/partnerEvents.js';
import { raw, safe } from '../../postgres/statements.js';
import { namedCheckpoint } from '../../publicLog/log/publicLog.store.js';
import { FIRST_DAY, type UnsettledDay, unsettledDays } from './settledDays.store.js';

const PARTNER_LOCK = 7_310_005;

export interface StoredReport {
  readonly partnerId: number;
  readonly status: ReportStatus;
  /** True if the whole day was committed when the report was generated. */
  readonly isComplete: boolean;
  readonly report: SettlementReportBody;
  readonly integrityHash: string;
  readonly acknowledgedAt: Date | null;
  readonly disputedAt: Date | null;
  readonly disputeReason: string | null;
}

/** The next revision of a report as it would be generated now. */
export interface ReportPreview {
  readonly report: SettlementReportBody;
  readonly isComplete: boolean;
  /** The newest revision with an open dispute, which the next revision can answer. */
  readonly disputed: StoredReport | undefined;
}

interface Row {
  partnerId: number;
  status: ReportStatus;
  isComplete: boolean;
  report: string;
  integrityHash: string;
  acknowledgedAt: Date | null;
  disputedAt: Date | null;
  disputeReason: string | null;
}

const COLUMNS = raw(
  'partner_id, status, is_complete, report::text AS report, integrity_hash, acknowledged_at, disputed_at, dispute_reason',
);

const fromRow = (row: Row): StoredReport => ({
  ...row,
  report: parseExactJson(row.report) as SettlementReportBody,
});

/** SQL condition: a later revision ends the dispute of the report `r`. */
export const IS_ANSWERED = raw(`EXISTS (SELECT 1 FROM settlement_reports n
  WHERE n.partner_id = r.partner_id AND n.report_date = r.report_date AND n.revision > r.revision
    AND (n.ends_dispute OR n.status = 'ACKNOWLEDGED'))`);

/** @param revision revision number; undefined means the newest */
async function findReport(
  sql: Sql | Transaction,
  partnerId: number,
  date: string,
  revision?: number,
): Promise<StoredReport | undefined> {
  const [row] = await sql<Row[]>`
    SELECT ${COLUMNS} FROM settlement_reports
    WHERE partner_id = ${partnerId} AND report_date = ${date}::date
      AND revision = coalesce(${revision ?? null}::int, revision)
    ORDER BY revision DESC LIMIT 1`;
  return row === undefined ? undefined : fromRow(row);
}

/** Called in the transaction that generates a report. An exception rolls the report back. */
export type OnReport = (tx: Transaction, report: StoredReport) => Promise<void>;

/**
 * Records the event of a new report for the partner. A deliverer in this process is woken after the commit.
 * Deliverers of other processes find the event when they poll.
 */
const notifyPartner: OnReport = async (tx, { partnerId, report, integrityHash }) => {
  const { reportDate, revision, totalSpins, ggrUsd, generatedAt } = report;
  await recordEvents(tx, [
    {
      event: 'settlement.report_ready',
      partnerId,
      createdAt: new Date(generatedAt),
      data: { reportDate, revision, integrityHash, totalSpins, ggrUsd },
    },
  ]);
};

/** A day of a partner, and the time at which its report is composed. */
export interface ReportedDay {
  readonly partnerId: number;
  readonly date: string;
  /** Entry ids of the day: from (inclusive) and to (exclusive). */
  readonly ids: { readonly from: bigint; readonly to: bigint };
  readonly start: Date;
  readonly end: Date;
  readonly now: Date;
}

export interface WantedReport extends ReportedDay {
  /** True if all entries of the day are confirmed to be committed. */
  readonly isComplete: boolean;
  /**
   * True if the day has ended by all clocks. The day is complete once the partner's ledger watermark also
   * lies beyond it.
   */
  readonly isOver: boolean;
  /** Name of the requesting person or process, for the audit log. */
  readonly actor: string;
  readonly reason?: string | undefined;
  /**
   * If true, a report is generated only if the day has none, or has an incomplete one that can be completed.
   */
  readonly isDue: boolean;
}

/** Returns whether any revision was generated when the whole day was committed. */
async function hasCompleteReport(tx: Transaction, partnerId: number, date: string): Promise<boolean> {
  const found = await tx`
    SELECT 1 FROM settlement_reports WHERE partner_id = ${partnerId} AND report_date = ${date}::date AND is_complete LIMIT 1`;
  return found.length > 0;
}

/** Locks a partner's reports until the end of the transaction. */
async function lockPartner(tx: Transaction, partnerId: number): Promise<void> {
  await tx`SELECT pg_advisory_xact_lock(${PARTNER_LOCK}::int, ${partnerId}::int)`;
}

/** Returns the hash of the newest revision of the partner's nearest earlier reported day. */
async function previousHash(tx: Transaction, partnerId: number, date: string): Promise<string | null> {
  const [row] = await tx<{ integrityHash: string }[]>`
    SELECT integrity_hash FROM settlement_reports WHERE partner_id = ${partnerId} AND report_date < ${date}::date
    ORDER BY report_date DESC, revision DESC LIMIT 1`;
  return row?.integrityHash ?? null;
}

/**
 * Returns the figures of a day and the partner's ledger watermark, read by one statement so that both are
 * consistent. Games that existed on the day are listed even without spins. Raffles closed before the day are
 * omitted, so that a report does not grow with every raffle.
 */
async function figuresOf(
  tx: Transaction,
  { partnerId, date, start, end }: ReportedDay,
): Promise<{ games: GameFigures[]; adjustmentsMicros: bigint; toId: bigint }> {
  const rows = await tx<
    (Omit<GameFigures, 'gameConfigId' | 'gameType' | 'certifiedRtp'> & {
      toId: bigint;
      adjustments: bigint;
      gameConfigId: number | null;
      gameType: GameType;
      certifiedRtp: string | null;
      prizeTable: PrizeTableUsd | null;
    })[]
  >`
    SELECT ${WATERMARK} AS to_id, coalesce(a.amount_micros, 0) AS adjustments,
           g.game_id AS game_config_id, g.config_name, g.display_name, g.game_type,
           g.sheet->>'certifiedRtp' AS certified_rtp, g.prize_table, coalesce(g.spins, 0) AS spins,
           coalesce(g.wagered_micros, 0) AS wagered_micros, coalesce(g.paid_micros, 0) AS paid_micros,
           coalesce(g.bonus_micros, 0) AS community_bonus_micros
    FROM partners p JOIN cells c USING (cell)
      LEFT JOIN adjustment_days a ON a.partner_id = p.partner_id AND a.day = ${date}::date
      LEFT JOIN (SELECT games.game_id, games.partner_id, config_name, display_name, game_type, sheet, prize_table,
                        spins, wagered_micros, d.paid_micros, b.paid_micros AS bonus_micros
                 FROM games LEFT JOIN par_sheets USING (par_sheet_id) LEFT JOIN raffles USING (game_id)
                   LEFT JOIN game_days d ON d.game_id = games.game_id AND d.day = ${date}::date
                   LEFT JOIN communal_days b ON b.game_id = games.game_id AND b.day = ${date}::date
                 WHERE games.partner_id = ${partnerId}
                   AND (games.created_at < ${end} AND coalesce(closed_at >= ${start}, true) OR d.game_id IS NOT NULL
                     OR b.game_id IS NOT NULL)) g
        ON g.partner_id = p.partner_id
    WHERE p.partner_id = ${partnerId} ORDER BY g.game_id`;
  return {
    toId: rows[0]!.toId,
    adjustmentsMicros: rows[0]!.adjustments,
    games: rows.flatMap((row) =>
      row.gameConfigId === null
        ? []
        : [{ ...row, gameConfigId: row.gameConfigId, certifiedRtp: certifiedRtp(row) }],
    ),
  };
}

/** @param isComplete false: the report ends with the newest committed entry */
async function composed(
  tx: Transaction,
  { partnerId, date, ids, now }: ReportedDay,
  figures: Awaited<ReturnType<typeof figuresOf>>,
  {
    isComplete,
    ...about
  }: {
    readonly revision: number;
    readonly logCheckpoint: string | null | undefined;
    readonly isComplete: boolean;
  },
): Promise<SettlementReportBody> {
  const committed = figures.toId < ids.from ? ids.from : figures.toId + 1n;
  const end = isComplete || committed > ids.to ? ids.to : committed;
  return composeReport(
    {
      ...about,
      reportDate: date,
      ledgerFrom: String(ids.from),
      ledgerTo: String(end),
      previousHash: await previousHash(tx, partnerId, date),
      generatedAt: now.toISOString(),
    },
    { ...figures, open: await openRoundsAt(tx, partnerId, end) },
  );
}

/**
 * Composes the next revision of a report from the ledger, without storing it.
 * @param logCheckpoint checkpoint of the public log that the report names; undefined for a preview
 */
async function composeNext(
  tx: Transaction,
  wanted: WantedReport,
  newest: StoredReport | undefined,
  logCheckpoint: string | null | undefined,
): Promise<{ report: SettlementReportBody; isComplete: boolean }> {
  const { partnerId, date, ids } = wanted;
  const figures = await figuresOf(tx, wanted);
  // A complete day stays complete, even if a store does not respond at the moment.
  const isComplete =
    wanted.isComplete ||
    (wanted.isOver && figures.toId >= ids.to) ||
    (await hasCompleteReport(tx, partnerId, date));
  const revision = (newest?.report.revision ?? 0) + 1;
  return { report: await composed(tx, wanted, figures, { revision, logCheckpoint, isComplete }), isComplete };
}

const certifiedRtp = (row: {
  gameType: GameType;
  certifiedRtp: string | null;
  prizeTable: PrizeTableUsd | null;
}): number | null =>
  kindOfGame(row.gameType).mathematics.certifiedRtp({
    sheetRtp: row.certifiedRtp === null ? null : Number(row.certifiedRtp),
    prizeTable: row.prizeTable,
  });

export type PartnerJudgement =
  | { readonly status: 'ACKNOWLEDGED' }
  | { readonly status: 'DISPUTED'; reason: string };

export class Settlements {
  constructor(private readonly sql: Sql) {}

  /**
   * Returns a page of a partner's reports (the newest revision of each day, newest day first) and the number
   * of reported days.
   */
  async page(
    partnerId: number,
    page: number,
    limit: number,
  ): Promise<{ reports: StoredReport[]; total: number }> {
    const rows = await this.sql<Row[]>`
      SELECT DISTINCT ON (report_date) ${COLUMNS} FROM settlement_reports
      WHERE partner_id = ${partnerId}
      ORDER BY report_date DESC, revision DESC LIMIT ${limit} OFFSET ${(page - 1) * limit}`;
    const [count] = await this.sql<{ total: bigint }[]>`
      SELECT count(DISTINCT report_date) AS total FROM settlement_reports WHERE partner_id = ${partnerId}`;
    return { reports: rows.map(fromRow), total: safe(count!.total) };
  }

  find(partnerId: number, date: string, revision?: number): Promise<StoredReport | undefined> {
    return findReport(this.sql, partnerId, date, revision);
  }

  /**
   * Returns the facts that decide whether a partner can have a report; undefined if there is no such partner.
   */
  async partner(partnerId: number): Promise<{ firstDay: string; hasGames: boolean } | undefined> {
    const [row] = await this.sql<{ firstDay: string; hasGames: boolean }[]>`
      SELECT ${FIRST_DAY}::text AS first_day,
             EXISTS (SELECT 1 FROM games g WHERE g.partner_id = p.partner_id) AS has_games
      FROM partners p WHERE partner_id = ${partnerId}`;
    return row === undefined ? undefined : { firstDay: row.firstDay, hasGames: row.hasGames };
  }

  /**
   * Returns the oldest day for which any partner has a report or should have one; undefined if there is no
   * partner.
   */
  async firstDay(): Promise<string | undefined> {
    const [row] = await this.sql<
      { day: string | null }[]
    >`SELECT min(${FIRST_DAY})::text AS day FROM partners p`;
    return row?.day ?? undefined;
  }

  unsettledDays(from: string, through: string): Promise<UnsettledDay[]> {
    return unsettledDays(this.sql, from, through);
  }

  /**
   * Generates the next revision of a day's report and its audit log entry in one transaction.
   * @returns the report; `acknowledged` if the newest revision is acknowledged, or `not-due` if no report is
   * due. In both cases no report was generated.
   */
  async make(
    wanted: WantedReport,
    onReport: OnReport = notifyPartner,
  ): Promise<StoredReport | 'acknowledged' | 'not-due'> {
    const { partnerId, date } = wanted;
    return this.sql.begin(async (tx) => {
      await lockPartner(tx, partnerId);
      const newest = await findReport(tx, partnerId, date);
      if (wanted.isDue) {
        if (newest !== undefined && (newest.isComplete || !wanted.isComplete)) return 'not-due';
      } else if (newest?.status === 'ACKNOWLEDGED') return 'acknowledged';
      const { report, isComplete } = await composeNext(tx, wanted, newest, await namedCheckpoint(tx));
      const { text, integrityHash } = seal(report);
      const [row] = await tx<Row[]>`
        INSERT INTO settlement_reports (partner_id, report_date, revision, status, is_complete, report, integrity_hash, ends_dispute)
        VALUES (${partnerId}, ${date}::date, ${report.revision}, ${isComplete ? 'GENERATED' : 'PENDING'}, ${isComplete},
                ${text}::json, ${integrityHash}, ${!wanted.isDue && wanted.reason !== undefined})
        RETURNING ${COLUMNS}`;
      const made = fromRow(row!);
      await audited(tx, wanted.actor, 'settlement.generate', newest, made, wanted.reason);
      if (isComplete) await onReport(tx, made);
      return made;
    });
  }

  /**
   * Composes the report that a day would have now, with revision 0. Stores nothing. It names no checkpoint of
   * the public log, because a named checkpoint is kept for ever.
   */
  async previewDay(day: ReportedDay): Promise<{ report: SettlementReportBody; integrityHash: string }> {
    return this.sql.begin(async (tx) => {
      const figures = await figuresOf(tx, day);
      const about = { revision: 0, logCheckpoint: undefined, isComplete: false };
      const report = await composed(tx, day, figures, about);
      return { report, integrityHash: seal(report).integrityHash };
    }, 'ISOLATION LEVEL REPEATABLE READ, READ ONLY');
  }

  /**
   * Composes the next revision of a day's report as {@link make} would for an operator, and stores nothing.
   * It names no checkpoint of the public log, because a named checkpoint is kept for ever.
   * @returns the revision and the newest revision with an open dispute; `acknowledged` if the newest revision
   * is acknowledged
   */
  async preview(wanted: WantedReport): Promise<ReportPreview | 'acknowledged'> {
    const { partnerId, date } = wanted;
    return this.sql.begin(async (tx) => {
      const newest = await findReport(tx, partnerId, date);
      if (newest?.status === 'ACKNOWLEDGED') return 'acknowledged';
      const [disputed] = await tx<Row[]>`
        SELECT ${COLUMNS} FROM settlement_reports r
        WHERE partner_id = ${partnerId} AND report_date = ${date}::date AND status = 'DISPUTED' AND NOT ${IS_ANSWERED}
        ORDER BY revision DESC LIMIT 1`;
      const { report, isComplete } = await composeNext(tx, wanted, newest, undefined);
      return { report, isComplete, disputed: disputed === undefined ? undefined : fromRow(disputed) };
    }, 'ISOLATION LEVEL REPEATABLE READ, READ ONLY');
  }

  /**
   * Acknowledges or disputes the newest revision of a report.
   * @param about.revision revision that the partner read. If it is older than the newest, the result is
   * `superseded`; if it is newer, the result is `missing`
   * @param about.standing another revision that must be the newest, otherwise the result is `superseded`
   * @returns the updated report, or the reason why nothing changed: no such report, a newer revision, or its
   * present status
   */
  async judge(
    about: { partnerId: number; date: string; revision: number | undefined; standing?: number | undefined },
    actor: string,
    judgement: PartnerJudgement,
  ): Promise<StoredReport | 'missing' | 'superseded' | 'ACKNOWLEDGED' | 'DISPUTED'> {
    const { partnerId, date, revision, standing } = about;
    return this.sql.begin(async (tx) => {
      await lockPartner(tx, partnerId);
      const before = await findReport(tx, partnerId, date);
      if (before === undefined || (revision ?? 0) > before.report.revision) return 'missing';
      const newest = before.report.revision;
      if ((revision ?? newest) !== newest || (standing ?? newest) !== newest) return 'superseded';
      if (before.status === 'ACKNOWLEDGED' || before.status === 'DISPUTED') return before.status;
      const { status } = judgement;
      const reason = judgement.status === 'DISPUTED' ? judgement.reason : null;
      const [row] = await tx<Row[]>`
        UPDATE settlement_reports SET status = ${status}, dispute_reason = ${reason},
          acknowledged_at = CASE WHEN ${status} = 'ACKNOWLEDGED' THEN now() END,
          disputed_at = CASE WHEN ${status} = 'DISPUTED' THEN now() END
        WHERE partner_id = ${partnerId} AND report_date = ${date}::date AND revision = ${before.report.revision}
        RETURNING ${COLUMNS}`;
      const after = fromRow(row!);
      const action = status === 'ACKNOWLEDGED' ? 'settlement.acknowledge' : 'settlement.dispute';
      await audited(tx, actor, action, before, after);
      return after;
    });
  }
}

/**
 * Writes the audit log entry of a report, which includes the report's hash. So a report that was removed, or
 * rewritten with a new hash, is detected.
 */
async function audited(
  tx: Transaction,
  actor: string,
  action: AuditAction,
  before: StoredReport | undefined,
  after: StoredReport,
  reason?: string,
): Promise<void> {
  const of = ({ report, status, integrityHash, disputeReason }: StoredReport) => ({
    revision: report.revision,
    reportStatus: status,
    integrityHash,
    ...(disputeReason === null ? {} : { disputeReason }),
  });
  await writeAuditEntry(tx, {
    actor,
    action,
    subject: `settlement:${after.partnerId}:${after.report.reportDate}`,
    before: before === undefined ? undefined : of(before),
    after: { ...of(after), ...because(reason) },
  });
}
