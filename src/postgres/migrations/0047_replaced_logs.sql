-- Up Migration

-- Another log has begun: nothing is appended to this one any more, also by who read it before.
ALTER TABLE logs ADD COLUMN is_replaced boolean NOT NULL DEFAULT false;
UPDATE logs SET is_replaced = true WHERE log_id < (SELECT max(log_id) FROM logs);
