-- Up Migration

ALTER TABLE webhooks
  -- One that is inactive gets no events; its deliveries wait.
  ADD COLUMN is_active boolean NOT NULL DEFAULT true,
  -- Signs beside the secret until then.
  ADD COLUMN previous_secret text,
  ADD COLUMN previous_secret_until timestamptz,
  -- Since when every attempt has failed.
  ADD COLUMN failing_since timestamptz,
  ADD CHECK ((previous_secret IS NULL) = (previous_secret_until IS NULL));

-- The feed of events is read in the order of the transactions that wrote them, up to the oldest one that is still open: so
-- that nothing appears before what a reader has seen. What was written before this column comes first.
ALTER TABLE events ADD COLUMN written_by xid8 NOT NULL DEFAULT '0';
ALTER TABLE events ALTER COLUMN written_by SET DEFAULT pg_current_xact_id();
CREATE INDEX events_feed ON events (partner_id, written_by, event_id);
