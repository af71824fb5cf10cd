-- Up Migration

-- What the public log tells everybody besides entries of games (docs/proofs.md, public records): written here first, appended by
-- whichever worker comes next.
CREATE TABLE log_notices (
  notice_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- What it is, such as `audit 2026-11-24`: each is logged once.
  name text NOT NULL UNIQUE,
  -- The JSON object that is logged.
  body jsonb NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  log_id integer REFERENCES logs,
  log_index bigint
);
CREATE INDEX log_notices_waiting ON log_notices (notice_id) WHERE log_index IS NULL;
