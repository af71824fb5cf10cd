/**
 * SQL of the dealing switches (docs/contract.md §15.9) and of the events for games that stop or resume. A
 * switch is turned in one short transaction, however many games it affects. That transaction also records the
 * affected games. The process that turned the switch, or a worker, makes their events afterwards, in several
 * transactions.
 */
import type { GameStatusReason } from '../../domain/webhook.js';
import { withChange, writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { recordEvents } from '../../postgres/partnerEvents.js';
import { raw } from '../../postgres/statements.js';

export interface DealingSwitch {
  readonly isOn: boolean;
  /** Reason of the newest change. Null if the switch was never changed. */
  readonly reason: string | null;
  readonly actor: string | null;
  readonly changedAt: Date | null;
}

async function dealingSwitch(sql: Sql | Transaction): Promise<DealingSwitch> {
  const [row] = await sql<[DealingSwitch]>`SELECT is_on, reason, actor, changed_at FROM dealing`;
  return row;
}

/** Reads the dealing switch for all games if it changed after the change `after`. */
export async function dealingAfter(
  tx: Transaction,
  after: bigint,
): Promise<{ isOn: boolean; changed: bigint } | undefined> {
  const [row] = await tx<{ isOn: boolean; changed: bigint }[]>`
    SELECT is_on, changed FROM dealing WHERE changed > ${after}`;
  return row;
}

/**
 * SQL for the games that could be dealt if all switches were on. The aliases `g`, `p` and `r` are game,
 * partner and raffle.
 */
const PLAYABLE = raw(`FROM games g JOIN partners p USING (partner_id) LEFT JOIN raffles r USING (game_id)
  WHERE g.status = 'ACTIVE' AND p.is_active AND r.closed_at IS NULL AND r.voided_at IS NULL
    AND (r.game_id IS NULL OR r.sealed_at IS NOT NULL)`);
const NAMED = raw("coalesce(array_agg(g.game_id ORDER BY g.partner_id, g.game_id), '{}')");

const statusOf = (isOn: boolean): 'ACTIVE' | 'DEALING_OFF' => (isOn ? 'ACTIVE' : 'DEALING_OFF');

/**
 * Records, in the transaction of the change, that the switch of a partner is turned. The partner's games stop
 * or resume, unless the switch for all games is off.
 */
export async function notePartnerSwitch(tx: Transaction, partnerId: number, isOn: boolean): Promise<void> {
  await tx`
    INSERT INTO game_status_notices (at, status, reason, game_ids)
    SELECT now(), ${statusOf(isOn)}, 'PARTNER_SWITCH', ${NAMED} ${PLAYABLE} AND p.partner_id = ${partnerId}
      AND (SELECT is_on FROM dealing) HAVING count(*) > 0`;
}

/**
 * Records the event that one game stops or resumes, in the transaction of the change.
 * @param status status of the game itself; even an active game is not dealt while a switch is off
 */
export async function noteGameStatus(
  tx: Transaction,
  gameId: number,
  status: 'ACTIVE' | 'SUSPENDED' | 'CLOSED',
  reason: GameStatusReason,
): Promise<void> {
  const [row] = await tx<{ partnerId: number; isOn: boolean }[]>`
    SELECT partner_id, is_dealing AND (SELECT is_on FROM dealing) AS is_on
    FROM games JOIN partners USING (partner_id) WHERE game_id = ${gameId}`;
  const shown = status === 'ACTIVE' ? statusOf(row!.isOn) : status;
  await recordEvents(tx, [
    {
      event: 'game.status_changed',
      partnerId: row!.partnerId,
      createdAt: new Date(),
      data: { gameId, status: shown, reason },
    },
  ]);
}

/**
 * Maximum number of events in one transaction. It bounds how long the transaction delays a flush of the
 * partner's cell.
 */
const PIECE = 500;

/**
 * Makes the events of changed switches, oldest first. Each event is made once, even if several processes make
 * events at once or one of them is interrupted. Only the first event of each partner sends an e-mail. A
 * raffle that was closed or voided meanwhile gets no event, because its last event must be CLOSED.
 * @returns the number of webhook deliveries recorded
 */
export async function notifyGameStatuses(sql: Sql): Promise<number> {
  let deliveries = 0;
  for (;;) {
    const made = await sql.begin((tx) => tellPiece(tx));
    if (made === undefined) return deliveries;
    deliveries += made;
  }
}

async function tellPiece(tx: Transaction): Promise<number | undefined> {
  const [notice] = await tx<
    {
      noticeId: bigint;
      at: Date;
      status: 'ACTIVE' | 'DEALING_OFF';
      reason: GameStatusReason;
      told: number;
      games: number;
    }[]
  >`
    SELECT notice_id, at, status, reason, told, cardinality(game_ids) AS games
    FROM game_status_notices ORDER BY notice_id LIMIT 1 FOR UPDATE`;
  if (notice === undefined) return undefined;
  const { noticeId: id, at: createdAt, status, reason, told } = notice;
  const to = told + PIECE;
  const games = await tx<{ gameId: number; partnerId: number; isFirst: boolean; isClosed: boolean }[]>`
    SELECT game_id, partner_id, partner_id IS DISTINCT FROM before AS is_first,
      EXISTS (SELECT 1 FROM raffles r WHERE r.game_id = g.game_id AND coalesce(closed_at, voided_at) IS NOT NULL) AS is_closed
    FROM (
      SELECT u.game_id, partner_id, place, lag(partner_id) OVER (ORDER BY place) AS before
      FROM game_status_notices, unnest(game_ids[${Math.max(1, told)}:${to}]) WITH ORDINALITY AS u(game_id, place)
        JOIN games USING (game_id) WHERE notice_id = ${id}) g
    ORDER BY place`;
  // The first row is the last game for which the transaction before this one made an event. It is read again
  // only to find where a partner's games begin.
  const mine = told === 0 ? games : games.slice(1);
  const events: Parameters<typeof recordEvents>[1][number][] = [];
  let isEmailed = false;
  for (const { gameId, partnerId, isFirst, isClosed } of mine) {
    isEmailed ||= isFirst;
    if (isClosed) continue;
    const event = 'game.status_changed';
    events.push({ event, partnerId, createdAt, isEmailed, data: { gameId, status, reason } });
    isEmailed = false;
  }
  const deliveries = await recordEvents(tx, events);
  if (to >= notice.games) await tx`DELETE FROM game_status_notices WHERE notice_id = ${id}`;
  else await tx`UPDATE game_status_notices SET told = ${to} WHERE notice_id = ${id}`;
  return deliveries;
}

export class DealingSwitches {
  constructor(private readonly sql: Sql) {}

  get(): Promise<DealingSwitch> {
    return dealingSwitch(this.sql);
  }

  /**
   * Turns the switch for all games. If it already has that state, only the reason is recorded, and no game
   * stops or resumes.
   */
  async set(actor: string, isOn: boolean, reason: string): Promise<DealingSwitch> {
    return withChange(this.sql, async (tx, changed) => {
      const before = await dealingSwitch(tx);
      await tx`
        UPDATE dealing SET is_on = ${isOn}, reason = ${reason}, actor = ${actor}, changed_at = now(), changed = ${changed}`;
      if (before.isOn !== isOn)
        await tx`
          INSERT INTO game_status_notices (at, status, reason, game_ids)
          SELECT now(), ${statusOf(isOn)}, 'SWITCH', ${NAMED} ${PLAYABLE} AND p.is_dealing HAVING count(*) > 0`;
      const state = (on: boolean) => (on ? 'ON' : 'OFF');
      await writeAuditEntry(tx, {
        actor,
        action: 'dealing.switch',
        subject: 'dealing',
        before: { state: state(before.isOn), reason: before.reason },
        after: { state: state(isOn), reason },
      });
      return dealingSwitch(tx);
    });
  }

  notifyGameStatuses(): Promise<number> {
    return notifyGameStatuses(this.sql);
  }
}
