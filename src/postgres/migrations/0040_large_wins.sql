-- Up Migration

-- Large wins, a row each, written with the ledger entry that won (docs/reports.md): the events of webhooks are removed after some days,
-- and are there only where somebody wants them.
CREATE TABLE large_wins (
  large_win_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partner_id integer NOT NULL,
  at timestamptz NOT NULL,
  -- As the event `spin.large_win` tells it.
  data json NOT NULL
);
CREATE INDEX ON large_wins (at);

-- Of earlier ones what is known still.
INSERT INTO large_wins (partner_id, at, data)
  SELECT partner_id, coalesce((body::json ->> 'createdAt')::timestamptz, created_at), body::json -> 'data' FROM events
  WHERE event = 'spin.large_win' AND body::json ->> 'test' IS DISTINCT FROM 'true' ORDER BY created_at;
