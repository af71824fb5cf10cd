/**
 * SQL of communal progressives for the APIs: versions of the rules and funding intents, recorded before Redis
 * acts on them, and committed events and shares.
 */

import type { BonusNotice, CommunalRules, CommunalState } from '../../domain/communal.js';
import { because, writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql } from '../../postgres/connection.js';
import { SharedLookUps } from '../../postgres/sharedLookUps.js';
import { arrayOf, raw, safe } from '../../postgres/statements.js';
import { CLOCKS_MS } from '../cells/adjustments.store.js';
import { gameLivesIn, NEWEST_MOVE } from '../cells/cells.store.js';

export interface RulesVersion {
  readonly version: number;
  readonly cell: number;
  /** Number of the partner's newest move when the version was recorded. */
  readonly newestMove: number;
  /** The cell's epoch when the version was recorded. */
  readonly epoch: string;
}

export interface CommittedPot {
  readonly gameId: number;
  readonly progress: bigint;
  readonly budgetMicros: bigint;
  readonly paidMicros: bigint;
  /** Rules that were in force at the pot's newest committed change. */
  readonly rules: CommunalRules;
}

const BOOKED_POT = raw(`game_id, progress, budget_micros, rules,
  (SELECT coalesce(sum(paid_micros), 0) FROM communal_days d WHERE d.game_id = p.game_id) AS paid_micros`);

/** Reads the pots of these cells. If there are more than `max`, it reads those that changed last. */
export async function committedPots(
  sql: Sql,
  cells: readonly number[],
  max: number,
): Promise<CommittedPot[]> {
  return sql<CommittedPot[]>`
    SELECT ${BOOKED_POT} FROM communal_pots p JOIN communal_rules USING (game_id, version) JOIN games USING (game_id)
      JOIN partners USING (partner_id)
    WHERE cell = ANY(${arrayOf(cells)}::int[]) ORDER BY noted_to DESC, game_id LIMIT ${max}`;
}

// Funding ---------------------------------------------------------------------------------------------------

export interface Funding {
  readonly gameId: number;
  readonly requestId: string;
  /** Amount in micro-USD, positive or negative, not 0. */
  readonly amountMicros: number;
  readonly reason: string;
}

export interface FundingIntent extends Funding {
  readonly fundingId: number;
  readonly cell: number;
  /** Number of the partner's newest move when the intent was read. */
  readonly newestMove: number;
  /** The cell's epoch when the intent was read. */
  readonly epoch: string;
  /** Whether this call recorded the intent, so that the intent was not on record before. */
  readonly isNew: boolean;
  /** Whether the intent is so old that Redis may have released its request id. */
  readonly isOld: boolean;
  /**
   * Id up to which Redis has released request ids. If Redis releases further ids, the intent must be read
   * again.
   */
  readonly runsReachId: bigint;
  /** Budget after the funding, in micro-USD. Undefined until the funding is committed. */
  readonly budgetMicros: number | undefined;
}

/**
 * Range of entry ids for the shares of an event. One script call fires the event and credits its shares, so
 * their ids are within two milliseconds of the event's id.
 */
const EVENT_IDS = 2 ** 23;

// Events and shares -----------------------------------------------------------------------------------------

export interface CommunalEvent {
  readonly eventId: bigint;
  readonly tierLevel: number;
  readonly tierName: string;
  readonly paidMicros: bigint;
  readonly winners: number;
  readonly status: string;
  readonly shares: readonly { readonly playerId: string; readonly amountMicros: bigint }[];
}

export interface PlayerShare {
  readonly entryId: bigint;
  readonly eventId: bigint;
  readonly gameId: number;
  readonly tierLevel: number;
  readonly tierName: string;
  readonly amountMicros: bigint;
  readonly isTrigger: boolean;
  readonly notifiedBy: bigint | null;
}

export class Communal {
  readonly #notices: SharedLookUps<BonusNotice>;

  constructor(private readonly sql: Sql) {
    this.#notices = new SharedLookUps((ids) => noticesOfSpins(sql, ids));
  }

  /** Records the next version of a game's rules. The number of a withdrawn version is not used again. */
  recordRules(
    actor: string,
    gameId: number,
    rules: CommunalRules,
    { resetsProgress, reason }: { readonly resetsProgress: boolean; readonly reason?: string | undefined },
  ): Promise<RulesVersion> {
    return this.sql.begin(async (tx) => {
      // The row lock makes concurrent calls create the versions of a game one after the other.
      const [row] = await tx<{ cell: number; newestMove: number; epoch: string }[]>`
        SELECT cell, ${NEWEST_MOVE}, (SELECT dataset_id FROM installation) || ':' || epoch AS epoch
        FROM games JOIN partners USING (partner_id) JOIN cells USING (cell) WHERE game_id = ${gameId} FOR NO KEY UPDATE OF games`;
      const [newest] = await tx<{ version: number; rules: CommunalRules }[]>`
        SELECT version, rules FROM communal_rules WHERE game_id = ${gameId} ORDER BY version DESC LIMIT 1`;
      const [{ version }] = (await tx`
        UPDATE games SET communal_version = greatest(communal_version, ${newest?.version ?? 0}) + 1
        WHERE game_id = ${gameId} RETURNING communal_version AS version`) as unknown as [{ version: number }];
      await tx`
        INSERT INTO communal_rules (game_id, version, rules, resets_progress)
        VALUES (${gameId}, ${version}, ${JSON.stringify(rules)}, ${resetsProgress})`;
      await writeAuditEntry(tx, {
        actor,
        action: 'communal.set',
        subject: `game:${gameId}`,
        before: newest?.rules,
        after: { ...rules, version, resetsProgress, ...because(reason) },
      });
      return { version, cell: row!.cell, newestMove: row!.newestMove, epoch: row!.epoch };
    });
  }

  /** Removes a version that did not come into force, and records that in the audit log. */
  async withdrawRules(actor: string, gameId: number, version: number): Promise<void> {
    await this.sql.begin(async (tx) => {
      const removed = await tx`
        DELETE FROM communal_rules WHERE game_id = ${gameId} AND version = ${version} AND in_force_from IS NULL
          AND version = (SELECT max(version) FROM communal_rules WHERE game_id = ${gameId}) RETURNING 1`;
      if (removed.length === 0) return;
      await writeAuditEntry(tx, {
        actor,
        action: 'communal.set.refused',
        subject: `game:${gameId}`,
        before: { version },
      });
    });
  }

  async isConfigured(gameId: number): Promise<boolean> {
    const rows = await this.sql`SELECT 1 FROM communal_rules WHERE game_id = ${gameId} LIMIT 1`;
    return rows.length > 0;
  }

  /**
   * Reads a game's committed pot, with the rules in force at its newest change. Undefined if no pot is
   * committed.
   */
  async bookedPot(gameId: number): Promise<
    | (Pick<CommunalState, 'version' | 'progress' | 'budgetMicros'> & {
        rules: CommunalRules;
        paidMicros: bigint;
      })
    | undefined
  > {
    const [row] = await this.sql<(CommittedPot & { version: number })[]>`
      SELECT ${BOOKED_POT}, version FROM communal_pots p JOIN communal_rules USING (game_id, version)
      WHERE game_id = ${gameId}`;
    return (
      row && {
        version: row.version,
        rules: row.rules,
        paidMicros: row.paidMicros,
        progress: safe(row.progress),
        budgetMicros: safe(row.budgetMicros),
      }
    );
  }

  /**
   * Records a funding intent, or finds the same intent already recorded.
   * @returns `reused` if the requestId belongs to a different intent
   */
  recordFunding(actor: string, wanted: Funding): Promise<FundingIntent | 'reused' | 'withdrawn'> {
    const { gameId, requestId, amountMicros, reason } = wanted;
    return this.sql.begin(async (tx) => {
      const made = await tx`
        INSERT INTO communal_fundings (game_id, request_id, amount_micros, reason)
        VALUES (${gameId}, ${requestId}, ${amountMicros}, ${reason})
        ON CONFLICT (game_id, request_id) DO NOTHING RETURNING 1`;
      if (made.length > 0) {
        const after = { requestId, amountMicros, reason };
        await writeAuditEntry(tx, { actor, action: 'communal.fund', subject: `game:${gameId}`, after });
      }
      const [row] = await tx<
        (Omit<FundingIntent, 'fundingId' | 'amountMicros' | 'budgetMicros' | 'isNew'> &
          Record<'fundingId' | 'amountMicros', bigint> & { budgetMicros: bigint | null })[]
      >`
        SELECT funding_id, f.amount_micros, reason, budget_micros, cell, ${NEWEST_MOVE},
          dataset_id || ':' || epoch AS epoch, handed_over_id AS runs_reach_id,
          extract(epoch FROM f.created_at) * 1000 < (handed_over_id >> 22) + ${CLOCKS_MS}
            OR f.created_at < now() - make_interval(secs => idempotency_seconds / 2) AS is_old
        FROM communal_fundings f JOIN games USING (game_id) JOIN partners USING (partner_id) JOIN cells USING (cell),
          installation
        WHERE game_id = ${gameId} AND request_id = ${requestId}`;
      if (row === undefined) return 'withdrawn' as const;
      if (row.amountMicros !== BigInt(amountMicros) || row.reason !== reason) return 'reused' as const;
      return {
        ...row,
        ...wanted,
        fundingId: safe(row.fundingId),
        isNew: made.length > 0,
        budgetMicros: row.budgetMicros === null ? undefined : safe(row.budgetMicros),
      };
    });
  }

  /**
   * Removes a refused intent and records the refusal in the audit log. If the cell has another epoch by now,
   * the intent is kept, because another call may have carried it out under that epoch.
   */
  async withdrawFunding(actor: string, intent: FundingIntent, refusal: string): Promise<void> {
    const { gameId, requestId, fundingId, amountMicros, reason } = intent;
    await this.sql.begin(async (tx) => {
      const held = await tx`
        SELECT 1 FROM cells WHERE cell = ${intent.cell}
          AND (SELECT dataset_id FROM installation) || ':' || epoch = ${intent.epoch} FOR SHARE`;
      if (held.length === 0 || !(await gameLivesIn(tx, gameId, intent.cell))) return;
      const removed = await tx`
        DELETE FROM communal_fundings WHERE game_id = ${gameId} AND funding_id = ${fundingId} AND note_id IS NULL
        RETURNING 1`;
      if (removed.length === 0) return;
      const before = { requestId, amountMicros, reason };
      await writeAuditEntry(tx, {
        actor,
        action: 'communal.fund.refused',
        subject: `game:${gameId}`,
        before,
        after: { refusal },
      });
    });
  }

  /**
   * Gives a funding that lapsed in Redis the next number, unless it was withdrawn, committed or renumbered
   * meanwhile.
   */
  async renumberFunding({ gameId, fundingId }: FundingIntent): Promise<void> {
    await this.sql`
      UPDATE communal_fundings SET funding_id = DEFAULT
      WHERE game_id = ${gameId} AND funding_id = ${fundingId} AND note_id IS NULL`;
  }

  /** Returns the next number for a call that changes a progressive. Fundings and rules share one sequence. */
  async nextNumber(): Promise<number> {
    const [row] = await this.sql<{ number: bigint }[]>`
      SELECT nextval(pg_get_serial_sequence('communal_fundings', 'funding_id')) AS number`;
    return safe(row!.number);
  }

  /**
   * Records that Redis has confirmed a version of a game's communal rules. A rebuild puts a confirmed version
   * into force again, even if the note in the outbox about the confirmation was lost.
   * @returns false if a rebuild or a move has withdrawn the version, which is then not in force
   */
  async confirmRules(gameId: number, version: number): Promise<boolean> {
    const confirmed = await this.sql`
      UPDATE communal_rules SET confirmed_at = now() WHERE game_id = ${gameId} AND version = ${version} RETURNING 1`;
    return confirmed.length > 0;
  }

  /**
   * Reads a page of a game's events, newest first, with their shares (the trigger's share first) and the
   * total number of events.
   */
  async eventPage(
    gameId: number,
    page: number,
    limit: number,
  ): Promise<{ events: CommunalEvent[]; total: number }> {
    const rows = await this.sql<Omit<CommunalEvent, 'shares'>[]>`
      SELECT event_id, tier_level, tier_name, paid_micros, winners, status FROM communal_events
      WHERE game_id = ${gameId} ORDER BY event_id DESC LIMIT ${limit} OFFSET ${(page - 1) * limit}`;
    const [count] = await this.sql<{ total: bigint }[]>`
      SELECT count(*) AS total FROM communal_events WHERE game_id = ${gameId}`;
    const shares = await this.sql<{ eventId: bigint; playerId: string; amountMicros: bigint }[]>`
      SELECT s.event_id, player_id, amount_micros
      FROM unnest(${arrayOf(rows.map((row) => row.eventId))}::bigint[]) AS e(event_id) CROSS JOIN LATERAL (
        SELECT * FROM communal_shares c
        WHERE c.entry_id BETWEEN e.event_id AND e.event_id + ${EVENT_IDS} AND c.event_id = e.event_id) AS s
      ORDER BY entry_id`;
    return {
      events: rows.map((row) => ({
        ...row,
        shares: shares
          .filter((share) => share.eventId === row.eventId)
          .map((share) => ({ playerId: share.playerId, amountMicros: share.amountMicros })),
      })),
      total: safe(count!.total),
    };
  }

  /** Reads a page of a player's shares, newest first, with their total number. */
  async playerSharePage(
    partnerId: number,
    playerId: string,
    page: number,
    limit: number,
  ): Promise<{ shares: PlayerShare[]; total: number }> {
    const shares = await this.sql<PlayerShare[]>`
      SELECT entry_id, event_id, s.game_id, tier_level, tier_name, s.amount_micros, is_trigger,
        told_by AS notified_by
      FROM communal_shares s JOIN communal_events USING (event_id)
      WHERE s.partner_id = ${partnerId} AND s.player_id = ${playerId}
      ORDER BY entry_id DESC LIMIT ${limit} OFFSET ${(page - 1) * limit}`;
    const [count] = await this.sql<{ total: bigint }[]>`
      SELECT count(*) AS total FROM communal_shares WHERE partner_id = ${partnerId} AND player_id = ${playerId}`;
    return { shares, total: safe(count!.total) };
  }

  /**
   * Finds the bonus that a spin notified its player of, by the spin's entry id. Undefined if there was none.
   */
  noticeOfSpin(spinId: bigint): Promise<BonusNotice | undefined> {
    return this.#notices.find(spinId);
  }
}

type NoticeMicros = 'paidMicros' | 'shareMicros';

/**
 * Finds the bonuses that spins notified their players of, by the spins' entry ids. Spins without a notice are
 * left out.
 */
export async function noticesOfSpins(
  sql: Sql,
  spinIds: readonly bigint[],
): Promise<Map<bigint, BonusNotice>> {
  const rows = await sql<(Omit<BonusNotice, NoticeMicros> & Record<NoticeMicros | 'spinId', bigint>)[]>`
    SELECT u.spin_id, e.event_id, tier_level, tier_name, paid_micros, coalesce(s.amount_micros, 0) AS share_micros,
      e.event_id = u.spin_id AS is_trigger
    FROM unnest(${arrayOf(spinIds)}::bigint[]) AS u(spin_id)
      LEFT JOIN communal_shares s ON s.told_by = u.spin_id
      JOIN communal_events e ON e.event_id = coalesce(s.event_id, u.spin_id) AND paid_micros > 0`;
  return new Map(
    rows.map(({ spinId, ...row }) => [
      spinId,
      { ...row, paidMicros: safe(row.paidMicros), shareMicros: safe(row.shareMicros) },
    ]),
  );
}
