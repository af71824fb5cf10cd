-- Up Migration

-- Why nothing is appended to a log any more, and the note that shows it: it has the log's own signature, and its tree is not the log's.
-- Held: it was found at a start, so this database may be of an older state, and nothing is dealt either.
ALTER TABLE logs
  ADD COLUMN halt text,
  ADD COLUMN halt_note text,
  ADD COLUMN halted_at timestamptz,
  ADD COLUMN is_held boolean NOT NULL DEFAULT false,
  ADD CONSTRAINT logs_halt CHECK ((halt IS NULL) = (halt_note IS NULL) AND (halt IS NOT NULL OR NOT is_held));

-- Records that a log has of a copy of it: this database was restored to a state before them.
CREATE TABLE log_imports (
  log_id smallint NOT NULL REFERENCES logs,
  from_index bigint NOT NULL,
  to_index bigint NOT NULL,
  -- Those of no game that this database has.
  strangers bigint NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (log_id, from_index)
);
