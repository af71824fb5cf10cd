/** Records the notice to the operator that a settlement is overdue. */
import type { Sql } from '../../postgres/connection.js';
import { recordEvents } from '../../postgres/partnerEvents.js';
import { unsettledDays } from './settledDays.store.js';

/**
 * Records the notice of an overdue settlement, once per day.
 * @param date day that is not settled, YYYY-MM-DD
 * @returns number of recorded deliveries
 */
export async function noticeOverdueSettlement(
  sql: Sql,
  date: string,
  recipient: string,
  now: Date,
): Promise<number> {
  const days = await unsettledDays(sql, date, date);
  if (days.length === 0) return 0;
  return sql.begin(async (tx) => {
    const noticed = await tx`
      INSERT INTO settlement_notices (report_date, noticed_at) VALUES (${date}::date, ${now})
      ON CONFLICT DO NOTHING RETURNING report_date`;
    if (noticed.length === 0) return 0;
    const data = { reportDate: date, partners: days.length };
    const partnerId = days[0]!.partnerId;
    return recordEvents(tx, [{ event: 'settlement.overdue', partnerId, createdAt: now, data, recipient }]);
  });
}
