-- Which copies outside both stores exist: the position file (POSITION_FILE) and the folder of the public log (LOG_COPY_DIR). A start
-- that does not find a copy on record deals nothing: this database may be of an older state. An operator's command forgets a copy.
CREATE TABLE outside_copies (
  setting text PRIMARY KEY CHECK (setting IN ('POSITION_FILE', 'LOG_COPY_DIR')),
  path text NOT NULL,
  -- Id of the position file; origin of the log.
  copy_id text NOT NULL,
  -- The newest booked entry in the position file; records of the log.
  newest bigint NOT NULL,
  noted_at timestamptz NOT NULL DEFAULT now(),
  -- Why a worker deals nothing that did not find it at its start, and how to go on.
  missing text
);
