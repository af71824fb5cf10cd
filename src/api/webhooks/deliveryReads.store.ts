/** Reads the deliveries of all partners by status, for operators. */
import type { WithDates } from '../../domain/schema.js';
import type { Sql } from '../../postgres/connection.js';
import { safe } from '../../postgres/statements.js';
import { DELIVERIES_LISTED_MAX, type DeliveryRow, NEXT_ATTEMPT } from '../../webhooks/webhooks.store.js';
import type { OperatorDelivery as OperatorDeliverySchema } from './contract.js';

export type ListedDelivery = WithDates<
  typeof OperatorDeliverySchema,
  'createdAt' | 'lastAttemptAt' | 'nextAttemptAt'
>;

export class DeliveryReads {
  constructor(private readonly sql: Sql) {}

  /**
   * Returns one page of the deliveries that have the given status, of all partners. The deliveries with the
   * newest attempts come first.
   */
  async page(
    { status, partnerId = null }: { status: DeliveryRow['status']; partnerId?: number | null },
    page: number,
    limit: number,
  ): Promise<{ deliveries: ListedDelivery[]; total: number }> {
    const offset = (page - 1) * limit;
    const listed = Math.max(0, Math.min(limit, DELIVERIES_LISTED_MAX - offset));
    const deliveries = await this.sql<ListedDelivery[]>`
      SELECT delivery_id AS id, event_id, w.partner_id, webhook_id, url, body, event, d.status, d.attempts, max_attempts, d.created_at,
        last_attempt_at, ${NEXT_ATTEMPT}, response_status, d.last_error, coalesce(attempt_log, '[]') AS attempt_log
      FROM deliveries d JOIN webhooks w USING (webhook_id) JOIN events USING (event_id)
        LEFT JOIN webhook_endpoints USING (webhook_id)
      WHERE d.status = ${status} AND (${partnerId}::int IS NULL OR w.partner_id = ${partnerId})
      ORDER BY last_attempt_at DESC NULLS LAST, delivery_id DESC
      LIMIT ${listed} OFFSET ${Math.min(offset, DELIVERIES_LISTED_MAX)}`;
    const [count] = await this.sql<{ total: bigint }[]>`
      SELECT count(*) AS total FROM (
        SELECT 1 FROM deliveries d JOIN webhooks w USING (webhook_id)
        WHERE d.status = ${status} AND (${partnerId}::int IS NULL OR w.partner_id = ${partnerId})
        LIMIT ${DELIVERIES_LISTED_MAX}) c`;
    return { deliveries, total: safe(count!.total) };
  }
}
