-- Up Migration

-- Request ids that Redis holds no more (docs/internals/cells.md). Those of a cell's entries up to handed_over_id are in its runs, as
-- far as they are from bound_from_id on; those of later entries are in Redis.
ALTER TABLE cells ADD COLUMN handed_over_id bigint NOT NULL DEFAULT 0;
ALTER TABLE cells ADD COLUMN bound_from_id bigint NOT NULL DEFAULT 0;
-- What Redis held of an earlier version: the period of idempotency_ttl_s that now is, and the one before.
UPDATE cells SET (handed_over_id, bound_from_id) = (SELECT oldest - 1, oldest FROM (
  SELECT greatest(0, floor(extract(epoch FROM now()) / idempotency_ttl_s) - 1)::bigint * idempotency_ttl_s * 1000 * 4194304 AS oldest
  FROM installation) AS held);

-- A run is never changed: runs are merged into new ones.
CREATE TABLE request_runs (
  run_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  cell integer NOT NULL,
  -- Its entries: after from_id, up to (with) to_id.
  from_id bigint NOT NULL,
  to_id bigint NOT NULL CHECK (to_id > from_id),
  ids bigint NOT NULL CHECK (ids > 0),
  filter_bytes bigint NOT NULL,
  UNIQUE (cell, from_id)
);
-- Pairs of hash and entry id, sorted (src/domain/requestRun.ts).
CREATE TABLE request_blocks (
  run_id integer NOT NULL REFERENCES request_runs ON DELETE CASCADE,
  first_hash bytea NOT NULL CHECK (octet_length(first_hash) = 8),
  pairs bytea NOT NULL,
  PRIMARY KEY (run_id, first_hash)
);
ALTER TABLE request_blocks ALTER COLUMN pairs SET STORAGE EXTERNAL;
CREATE TABLE request_filters (
  run_id integer NOT NULL REFERENCES request_runs ON DELETE CASCADE,
  piece integer NOT NULL,
  bits bytea NOT NULL,
  PRIMARY KEY (run_id, piece)
);
ALTER TABLE request_filters ALTER COLUMN bits SET STORAGE EXTERNAL;

-- Another name: version 1.3.0 ends at its start where it finds no idempotency_ttl_s. It knows no runs, and would deal their ids again.
ALTER TABLE installation RENAME COLUMN idempotency_ttl_s TO idempotency_seconds;
