-- Up Migration

-- Which entry an adjustment is, so that it is found without looking into each day's partition. Null: it is not booked.
ALTER TABLE adjustments ADD COLUMN entry_id bigint;
UPDATE adjustments a SET entry_id = l.entry_id
  FROM ledger l WHERE l.kind = 3 AND l.partner_id = a.partner_id AND l.request_id = a.request_id;
-- Nothing else looked for an adjustment by its requestId.
DROP INDEX ledger_adjustment;
