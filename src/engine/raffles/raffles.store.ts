/** SQL of raffles: their prize tables and the states of their pools. The pool itself is a row of `blocks`. */

import { DAY_MS } from '../../domain/days.js';
import { entryTimeMs, firstIdAt } from '../../domain/entryId.js';
import { type PrizeTableUsd, prizeTableText } from '../../domain/games/prizeTable.js';
import { REFUND_PREFIX } from '../../domain/refund.js';
import { nextChange, withChange, writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { isUniqueViolation } from '../../postgres/postgresErrors.js';
import { arrayOf, safe } from '../../postgres/statements.js';
import { openColumn } from '../blocks/blockSeals.store.js';
import { noteGameStatus } from '../catalog/dealingSwitches.store.js';
import { findGame, type GameRow } from '../catalog/games.store.js';
import { assertOwner, type CellLease, FencedError, livesIn, NEWEST_MOVE } from '../cells/cells.store.js';

/** Opens a raffle, once its pool is sealed, stored and loaded. A second call changes nothing. */
export async function openRaffle(sql: Sql, gameId: number): Promise<void> {
  await withChange(sql, async (tx, changed) => {
    const opened = await tx`
      UPDATE raffles SET sealed_at = now() WHERE game_id = ${gameId} AND sealed_at IS NULL AND voided_at IS NULL RETURNING 1`;
    if (opened.length === 0) return;
    await tx`UPDATE games SET changed = ${changed} WHERE game_id = ${gameId}`;
    const [block] = await tx<{ commitment: Buffer }[]>`
      SELECT commitment FROM blocks WHERE game_id = ${gameId} AND from_index = 0`;
    const after = { poolCommitment: block!.commitment.toString('hex') };
    await writeAuditEntry(tx, { actor: 'worker', action: 'raffle.seal', subject: `game:${gameId}`, after });
  });
}

/**
 * Closes the raffles whose last tickets are committed in this transaction. A raffle that was voided before
 * that is not closed here, but by its void.
 */
export async function closeRaffles(
  tx: Transaction,
  changed: bigint,
  gameIds: readonly number[],
): Promise<void> {
  const closed = await tx<{ gameId: number }[]>`
    UPDATE raffles SET closed_at = now(), sealed_at = coalesce(sealed_at, now())
    WHERE game_id = ANY(${arrayOf(gameIds)}::int[]) AND closed_at IS NULL AND voided_at IS NULL RETURNING game_id`;
  const ids = closed.map((row) => row.gameId);
  await tx`UPDATE games SET changed = ${changed} WHERE game_id = ANY(${arrayOf(ids)}::int[])`;
  for (const gameId of ids) {
    await writeAuditEntry(tx, { actor: 'worker', action: 'raffle.close', subject: `game:${gameId}` });
    await noteGameStatus(tx, gameId, 'CLOSED', 'SOLD_OUT');
  }
}

/** A ticket that was sold under a requestId. */
export interface Ticket {
  readonly gameId: number;
  readonly requestId: string;
  readonly entryId: bigint;
}

/**
 * Records the requestIds of the tickets that this transaction commits. The same requestId may have sold an
 * earlier ticket, if Redis has released it since. In this case the earlier ticket stays recorded.
 */
export async function noteTickets(tx: Transaction, tickets: readonly Ticket[]): Promise<void> {
  if (tickets.length === 0) return;
  const rows = tickets.map(({ gameId, requestId, entryId }) => ({
    game: gameId,
    request: requestId,
    entry: String(entryId),
  }));
  await tx`
    INSERT INTO ticket_requests (game_id, request_id, entry_id)
    SELECT game, request, entry FROM json_to_recordset(${JSON.stringify(rows)}::json) AS t(game int, request text, entry bigint)
    ON CONFLICT DO NOTHING`;
}

export interface PoolRow {
  seed: Buffer;
  nonce: Buffer;
  /** Packed outcome codes in the order of the tickets, 2 bytes each. */
  order: Buffer;
}

/**
 * Progress of the refunds of a voided raffle. A refund is an adjustment (adjustments.store.ts) whose
 * requestId names the raffle and the ticket, so a ticket has at most one refund.
 *
 *   voided (no ticket can be sold) ──> closed (the ledger has every sold ticket)
 *     ──> refunded group by group ──> done
 */
export interface VoidProgress {
  readonly gameId: number;
  /** Number of committed tickets, without tickets that are still in the outbox. */
  readonly tickets: number;
  readonly refunded: number;
  readonly failed: number;
  readonly refundedMicros: bigint;
  /** Whether all tickets are committed and each is refunded or failed. */
  readonly isDone: boolean;
}

/** The cell in which the sale of a voided raffle must end. */
export interface SalePlace {
  readonly gameId: number;
  readonly partnerId: number;
  readonly poolSize: number;
  readonly cell: number;
  readonly newestMove: number;
  readonly epoch: string;
}

export class Raffles {
  constructor(private readonly sql: Sql) {}

  /** The worker of its cell seals its pool. */
  async create(
    actor: string,
    raffle: { partnerId: number; configName: string; displayName: string; table: PrizeTableUsd },
  ): Promise<GameRow | 'name-taken'> {
    const { partnerId, configName, displayName, table } = raffle;
    try {
      return await withChange(this.sql, async (tx, changed) => {
        const [row] = await tx<{ gameId: number }[]>`
          INSERT INTO games (partner_id, game_type, config_name, display_name, changed)
          VALUES (${partnerId}, 'raffle', ${configName}, ${displayName}, ${changed}) RETURNING game_id`;
        const gameId = row!.gameId;
        await tx`
          INSERT INTO raffles (game_id, pool_size, prize_table)
          VALUES (${gameId}, ${table.poolSize}, ${prizeTableText(table)})`;
        await writeAuditEntry(tx, {
          actor,
          action: 'raffle.create',
          subject: `game:${gameId}`,
          after: raffle,
        });
        return (await findGame(tx, gameId))!;
      });
    } catch (error) {
      if (isUniqueViolation(error)) return 'name-taken';
      throw error;
    }
  }

  /** Undefined if the raffle does not exist or is not closed. */
  async closedPool(gameId: number): Promise<PoolRow | undefined> {
    const [row] = await this.sql<{ seed: Buffer; nonce: Buffer; outcomes: Buffer; sealed: string | null }[]>`
      SELECT seed, nonce, outcomes, sealed FROM blocks JOIN raffles USING (game_id)
      WHERE game_id = ${gameId} AND from_index = 0 AND closed_at IS NOT NULL`;
    if (row === undefined) return undefined;
    const { seed, nonce, outcomes, sealed } = row;
    return {
      seed: openColumn(sealed, 'seed', seed),
      nonce: openColumn(sealed, 'nonce', nonce),
      order: openColumn(sealed, 'outcomes', outcomes),
    };
  }

  /**
   * Returns where the sale of a voided raffle must end; `closed` once its cell is known to sell no more
   * tickets.
   */
  async salePlace(gameId: number): Promise<SalePlace | 'closed' | undefined> {
    const [row] = await this.sql<
      {
        partnerId: number;
        poolSize: number;
        isClosed: boolean;
        cell: number;
        newestMove: number;
        token: string;
      }[]
    >`
      SELECT partner_id, pool_size, tickets_to IS NOT NULL AS is_closed, cell, ${NEWEST_MOVE},
        (SELECT dataset_id FROM installation) || ':' || epoch AS token
      FROM raffles JOIN games USING (game_id) JOIN partners USING (partner_id) JOIN cells USING (cell)
      WHERE game_id = ${gameId} AND voided_at IS NOT NULL`;
    if (row === undefined || row.isClosed) return row && 'closed';
    const { partnerId, poolSize, cell, newestMove, token: epoch } = row;
    return { gameId, partnerId, poolSize, cell, newestMove, epoch };
  }

  /** Undefined if the raffle does not exist or is not voided. */
  voidProgress(gameId: number): Promise<VoidProgress | undefined> {
    return voidProgress(this.sql, gameId);
  }

  /**
   * If the raffle is already voided, the reason of the first call is kept.
   * @returns `unknown` if there is no such game; `no-raffle` if the game is not a raffle; `closed` if all its
   * tickets were sold
   */
  async void(
    actor: string,
    gameId: number,
    reason: string,
  ): Promise<VoidProgress | 'unknown' | 'no-raffle' | 'closed'> {
    const known = await voidProgress(this.sql, gameId);
    if (known !== undefined) return known;
    return withChange(this.sql, async (tx, changed) => {
      const [row] = await tx<
        { poolSize: number | null; status: string; closedAt: Date | null; voidedAt: Date | null }[]
      >`SELECT pool_size, status, closed_at, voided_at FROM games LEFT JOIN raffles USING (game_id) WHERE game_id = ${gameId}`;
      if (row === undefined) return 'unknown';
      if (row.poolSize === null) return 'no-raffle';
      if (row.voidedAt === null) {
        if (row.closedAt !== null) return 'closed';
        await tx`
          UPDATE raffles SET voided_at = now(), voided_by = ${actor}, void_reason = ${reason} WHERE game_id = ${gameId}`;
        await tx`UPDATE games SET changed = ${changed} WHERE game_id = ${gameId}`;
        await writeAuditEntry(tx, {
          actor,
          action: 'raffle.void',
          subject: `game:${gameId}`,
          before: { status: row.status },
          after: { reason },
        });
        await noteGameStatus(tx, gameId, 'CLOSED', 'VOIDED');
      }
      return (await voidProgress(tx, gameId))!;
    });
  }
}

export async function voidedRaffles(sql: Sql | Transaction, partnerId: number): Promise<ReadonlySet<number>> {
  const rows = await sql<{ gameId: number }[]>`
    SELECT game_id FROM raffles JOIN games USING (game_id)
    WHERE partner_id = ${partnerId} AND voided_at IS NOT NULL`;
  return new Set(rows.map((row) => row.gameId));
}

/**
 * Range of the requestIds of a raffle's refunds, for the range scan `>= from AND < to` with COLLATE "C". No
 * other requestIds are in this range.
 */
const refundRange = (gameId: number) => ({
  from: `${REFUND_PREFIX}${gameId}:`,
  to: `${REFUND_PREFIX}${gameId};`,
});

async function voidProgress(sql: Sql | Transaction, gameId: number): Promise<VoidProgress | undefined> {
  const { from, to } = refundRange(gameId);
  const [row] = await sql<VoidProgress[]>`
    SELECT game_id, coalesce((SELECT next_index FROM game_progress p WHERE p.game_id = r.game_id), 0)::int AS tickets, refunded,
      (SELECT count(*) FROM refund_failures f WHERE f.game_id = r.game_id)::int AS failed, refunded_micros,
      refunds_done_at IS NOT NULL AS is_done
    FROM raffles r JOIN games g USING (game_id),
      LATERAL (SELECT count(*)::int AS refunded, coalesce(sum(amount_micros), 0) AS refunded_micros FROM adjustments a
        WHERE a.partner_id = g.partner_id AND request_id >= ${from} AND request_id < ${to} AND entry_id IS NOT NULL) a
    WHERE r.game_id = ${gameId} AND voided_at IS NOT NULL`;
  return row;
}

export interface VoidedRaffle {
  readonly gameId: number;
  readonly partnerId: number;
  readonly cell: number;
  readonly poolSize: number;
  readonly actor: string;
  readonly reason: string;
  /**
   * Entry id after which there is no ticket of the raffle. Undefined while some tickets may be uncommitted.
   */
  readonly ticketsTo: bigint | undefined;
  readonly refundedTo: bigint;
  readonly openingBalanceMicros: number;
  readonly enforcesBalance: boolean;
}

/** Reads voided raffles whose refunds are not done, of partners in these cells, at most `limit`. */
export async function openVoids(sql: Sql, cells: readonly number[], limit: number): Promise<VoidedRaffle[]> {
  const rows = await sql<
    (Omit<VoidedRaffle, 'ticketsTo' | 'openingBalanceMicros'> & {
      ticketsTo: bigint | null;
      openingBalanceMicros: bigint;
    })[]
  >`
    SELECT game_id, partner_id, cell, pool_size, voided_by AS actor, void_reason AS reason, tickets_to, refunded_to, opening_balance_micros,
      balance_mode = 'enforce' AS enforces_balance
    FROM raffles JOIN games USING (game_id) JOIN partners USING (partner_id)
    WHERE voided_at IS NOT NULL AND refunds_done_at IS NULL AND cell = ANY(${arrayOf(cells)}::int[])
    ORDER BY voided_at, game_id LIMIT ${limit}`;
  return rows.map((row) => ({
    ...row,
    ticketsTo: row.ticketsTo ?? undefined,
    openingBalanceMicros: safe(row.openingBalanceMicros),
  }));
}

/**
 * Closes a voided raffle permanently, once its cell sells no more tickets and the ledger has every sold
 * ticket.
 * @throws FencedError where the cell has another owner, or the partner has moved to another cell, which may
 * sell tickets.
 */
export async function closeVoided(
  sql: Sql,
  lease: CellLease,
  { gameId, partnerId }: Pick<VoidedRaffle, 'gameId' | 'partnerId'>,
): Promise<void> {
  await sql.begin(async (tx) => {
    await assertOwner(tx, lease);
    if (!(await livesIn(tx, partnerId, lease.cell)))
      throw new FencedError(`The partner of raffle ${gameId} is no longer in cell ${lease.cell}`);
    const changed = await nextChange(tx);
    const closed = await tx`
      UPDATE raffles SET closed_at = coalesce(closed_at, now()), tickets_to = (SELECT max(cursor_id) FROM cells)
      WHERE game_id = ${gameId} AND tickets_to IS NULL RETURNING 1`;
    if (closed.length === 0) return;
    await tx`UPDATE games SET changed = ${changed} WHERE game_id = ${gameId}`;
    const { tickets } = (await voidProgress(tx, gameId))!;
    await writeAuditEntry(tx, {
      actor: 'worker',
      action: 'raffle.close',
      subject: `game:${gameId}`,
      after: { tickets },
    });
  });
}

export interface CommittedTicket {
  readonly entryId: bigint;
  readonly playerId: string;
  readonly priceMicros: number;
}

/**
 * The next tickets of a raffle in the order of their entries. No ticket up to the given entry id is missing.
 */
export interface TicketPiece {
  readonly tickets: readonly CommittedTicket[];
  readonly to: bigint;
}

/** Maximum number of ledger rows that are scanned for one group of tickets. */
const ROWS_MAX = 20_000;

/**
 * Reads the next tickets of a raffle after `refundedTo`, from the ledger and from the kept tickets of dropped
 * days. The ledger has no index by game. Days without a ticket are skipped, and one call scans at most
 * ROWS_MAX rows of a day.
 * @returns undefined if there are no more tickets
 */
export async function ticketsBehind(
  sql: Sql,
  { gameId, refundedTo, ticketsTo }: Pick<VoidedRaffle, 'gameId' | 'refundedTo' | 'ticketsTo'>,
  limit: number,
): Promise<TicketPiece | undefined> {
  const fromDay = new Date(entryTimeMs(refundedTo + 1n)).toISOString().slice(0, 10);
  const [sold] = await sql<{ startMs: number }[]>`
    SELECT extract(epoch FROM day)::float8 * 1000 AS start_ms FROM game_days
    WHERE game_id = ${gameId} AND day >= ${fromDay}::date AND spins > 0 ORDER BY day LIMIT 1`;
  if (sold === undefined || refundedTo >= ticketsTo!) return undefined;
  const dayFrom = firstIdAt(sold.startMs);
  const after = refundedTo >= dayFrom ? refundedTo : dayFrom - 1n;
  const dayTo = firstIdAt(sold.startMs + DAY_MS) - 1n;
  const [piece] = await sql<{ newest: bigint | null; rows: bigint }[]>`
    SELECT max(entry_id) AS newest, count(*) AS rows FROM (
      SELECT entry_id FROM ledger WHERE entry_id > ${after} AND entry_id <= ${dayTo}
      UNION ALL SELECT entry_id FROM kept_entries WHERE entry_id > ${after} AND entry_id <= ${dayTo}
      ORDER BY entry_id LIMIT ${ROWS_MAX}) p`;
  const isWholeDay = piece!.rows < BigInt(ROWS_MAX);
  const to = isWholeDay ? dayTo : piece!.newest!;
  const rows = await sql<{ entryId: bigint; playerId: string; wagerMicros: bigint }[]>`
    SELECT entry_id, player_id, wager_micros FROM ledger
    WHERE entry_id > ${after} AND entry_id <= ${to} AND game_id = ${gameId} AND kind = 1
    UNION ALL SELECT entry_id, player_id, wager_micros FROM kept_entries
    WHERE entry_id > ${after} AND entry_id <= ${to} AND game_id = ${gameId} AND kind = 1
    ORDER BY entry_id LIMIT ${limit}`;
  const tickets = rows.map((row) => ({
    entryId: row.entryId,
    playerId: row.playerId,
    priceMicros: safe(row.wagerMicros),
  }));
  return { tickets, to: tickets.length === limit ? tickets.at(-1)!.entryId : to };
}

/** Records that a ticket can't be refunded. A second call changes nothing. */
export async function noteRefundFailure(
  sql: Sql,
  gameId: number,
  entryId: bigint,
  refusal: string,
): Promise<void> {
  await sql`
    INSERT INTO refund_failures (game_id, entry_id, refusal) VALUES (${gameId}, ${entryId}, ${refusal}) ON CONFLICT DO NOTHING`;
}

export async function noteRefunded(sql: Sql, gameId: number, to: bigint): Promise<void> {
  await sql`UPDATE raffles SET refunded_to = greatest(refunded_to, ${to}) WHERE game_id = ${gameId}`;
}

/**
 * Ends the void after all tickets were processed, if each has a refund or can't have one. Otherwise all
 * tickets are processed again, because a restored store may lack some refunds.
 * @returns whether the void is done
 */
export async function finishVoid(sql: Sql, gameId: number): Promise<boolean> {
  return sql.begin(async (tx) => {
    const [open] = await tx`
      SELECT 1 FROM raffles WHERE game_id = ${gameId} AND refunds_done_at IS NULL FOR UPDATE`;
    if (open === undefined) return true;
    const { tickets, refunded, failed, refundedMicros } = (await voidProgress(tx, gameId))!;
    if (refunded + failed !== tickets) {
      await tx`UPDATE raffles SET refunded_to = 0 WHERE game_id = ${gameId}`;
      return false;
    }
    await tx`UPDATE raffles SET refunds_done_at = now() WHERE game_id = ${gameId}`;
    const after = { tickets, refunded, failed, refundedMicros: String(refundedMicros) };
    await writeAuditEntry(tx, { actor: 'worker', action: 'raffle.refund', subject: `game:${gameId}`, after });
    return true;
  });
}
