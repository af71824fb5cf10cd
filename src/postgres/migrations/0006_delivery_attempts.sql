-- Up Migration

-- The newest attempts of a delivery, oldest first, in the form of DeliveryAttempt (src/api/webhooks/contract.ts). Null: none since this
-- column exists. A delivery that is resent keeps its earlier attempts.
ALTER TABLE deliveries ADD COLUMN attempt_log jsonb;
