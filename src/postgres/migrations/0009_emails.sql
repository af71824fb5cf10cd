-- Up Migration

-- An event may go out as an e-mail, too: a delivery has a webhook or a recipient. Without SMTP_URL it is left unsent.
ALTER TABLE deliveries ALTER COLUMN webhook_id DROP NOT NULL, ADD COLUMN recipient text,
  ADD CHECK ((webhook_id IS NULL) <> (recipient IS NULL)),
  DROP CONSTRAINT deliveries_status_check,
  ADD CONSTRAINT deliveries_status_check CHECK (status IN ('pending', 'delivered', 'failed', 'unsent'));
CREATE INDEX deliveries_due_email ON deliveries (next_attempt_at) WHERE status = 'pending' AND webhook_id IS NULL;

-- Days without a complete settlement report that the operator was told of.
CREATE TABLE settlement_notices (
  report_date date PRIMARY KEY,
  noticed_at timestamptz NOT NULL
);
