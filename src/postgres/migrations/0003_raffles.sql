-- Up Migration

-- A raffle: a game whose outcomes are one sealed pool of tickets. The pool is a row of `blocks`, from index 0 to the pool's
-- size; the commitment of that row is of the whole pool (src/domain/raffle.ts).
CREATE TABLE raffles (
  game_id integer PRIMARY KEY REFERENCES games,
  pool_size integer NOT NULL CHECK (pool_size BETWEEN 1 AND 1000000),
  -- Ticket price, pool size and prizes as RFC 8785 text (json, not jsonb): what the commitment is of.
  prize_table json NOT NULL,
  sealed_at timestamptz,
  -- Set in the transaction that books the last ticket, and never taken back.
  closed_at timestamptz CHECK (closed_at IS NULL OR sealed_at IS NOT NULL)
);

-- The requestIds of tickets: what a ticket was is told for ever, also when Redis has let its requestId go.
CREATE TABLE ticket_requests (
  game_id integer NOT NULL,
  request_id text COLLATE "C" NOT NULL,
  entry_id bigint NOT NULL,
  PRIMARY KEY (game_id, request_id)
);
