-- Spins that were answered once Redis had them (ACK=redis), and that neither a replica that took over nor the ledger has.

CREATE TABLE lost_spins (
  -- As it was answered; another spin may have the same since.
  entry_id bigint NOT NULL,
  partner_id int NOT NULL REFERENCES partners,
  game_id int NOT NULL REFERENCES games,
  player_id text NOT NULL,
  request_id text,
  outcome_code int NOT NULL,
  balance_micros bigint NOT NULL,
  cell int NOT NULL,
  -- The epoch that has begun since.
  epoch text NOT NULL,
  found_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (entry_id, partner_id, player_id)
);
