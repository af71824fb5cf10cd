/** What the audit reads of raffles: their prize tables, and how far those that are voided are refunded. */
import { raw, type Transaction } from './client.js';

/** A raffle's prize table, its amounts as the decimal text that was certified. */
export interface AuditedRaffle {
  /** The whole table as it was sealed. */
  readonly text: string;
  readonly poolSize: number;
  /** USD. */
  readonly ticketPrice: string;
  /** By prize: USD. */
  readonly values: readonly string[];
  /** By prize: tickets that win it. */
  readonly counts: readonly number[];
  readonly isClosed: boolean;
  /** Undefined: the raffle is not voided. */
  readonly refunds: AuditedRefunds | undefined;
}

export interface AuditedRefunds {
  /** Each booked ticket is said to have its refund, or to be among the failures. */
  readonly isDone: boolean;
  /** Entries of tickets that could not be refunded. */
  readonly failures: ReadonlySet<bigint>;
}

const prizes = (member: string): unknown =>
  raw(`ARRAY(SELECT p.value->>'${member}'
             FROM json_array_elements(prize_table->'prizes') WITH ORDINALITY AS p(value, place) ORDER BY place)`);

/** By game. */
export async function auditedRaffles(tx: Transaction): Promise<Map<number, AuditedRaffle>> {
  const rows = await tx<
    {
      game_id: number;
      text: string;
      pool_size: number;
      ticket_price: string;
      amounts: string[];
      counts: string[];
      is_closed: boolean;
      is_voided: boolean;
      is_done: boolean;
    }[]
  >`
    SELECT game_id, prize_table::text AS text, pool_size, prize_table->>'ticketPriceUsd' AS ticket_price,
      ${prizes('valueUsd')} AS amounts, ${prizes('count')} AS counts, closed_at IS NOT NULL AS is_closed,
      voided_at IS NOT NULL AS is_voided, refunds_done_at IS NOT NULL AS is_done FROM raffles`;
  const failed = await tx<
    { game_id: number; entry_id: bigint }[]
  >`SELECT game_id, entry_id FROM refund_failures`;
  const failures = new Map<number, Set<bigint>>();
  for (const row of failed) {
    const ofGame = failures.get(row.game_id);
    if (ofGame === undefined) failures.set(row.game_id, new Set([row.entry_id]));
    else ofGame.add(row.entry_id);
  }
  return new Map(
    rows.map((row) => [
      row.game_id,
      {
        text: row.text,
        poolSize: row.pool_size,
        ticketPrice: row.ticket_price,
        values: row.amounts,
        counts: row.counts.map(Number),
        isClosed: row.is_closed,
        refunds: row.is_voided
          ? { isDone: row.is_done, failures: failures.get(row.game_id) ?? new Set<bigint>() }
          : undefined,
      },
    ]),
  );
}
