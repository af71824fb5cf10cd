-- Up Migration

-- For how long request ids of spins and deals bind, by when they were bound (src/domain/bindingTimes.ts). Before, and in a database
-- of version 1.3.0: for idempotency_seconds, which from here on is only the length of the periods of that version.
CREATE TABLE request_id_times (
  since_ms bigint PRIMARY KEY,
  seconds integer NOT NULL CHECK (seconds > 0)
);
INSERT INTO request_id_times (since_ms, seconds) SELECT 0, idempotency_seconds FROM installation;

-- The moment as of which it is decided whether a request id of the cell binds. The cell's owner moves it on, and bound_from_id with
-- it: ids of entries from there on bind, others may not.
ALTER TABLE cells ADD COLUMN binding_ms bigint NOT NULL DEFAULT 0;
UPDATE cells SET binding_ms = (bound_from_id >> 22) + idempotency_seconds * 1000::bigint FROM installation WHERE bound_from_id > 0;

-- The first 8 bytes of SHA-256 of the filter: another run with the same number is another one.
ALTER TABLE request_runs ADD COLUMN filter_hash bigint NOT NULL DEFAULT 0;
UPDATE request_runs SET filter_hash = (
  SELECT ('x' || encode(substr(sha256(string_agg(bits, ''::bytea ORDER BY piece)), 1, 8), 'hex'))::bit(64)::bigint
  FROM request_filters WHERE request_filters.run_id = request_runs.run_id);
