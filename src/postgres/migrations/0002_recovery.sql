-- Up Migration

-- Outcomes that will never be dealt: they were leased to a Redis that lost what it held, and the ledger does not have
-- them. Together with the ledger's indices they leave no gap.
CREATE TABLE voids (
  game_id integer NOT NULL REFERENCES games,
  from_index bigint NOT NULL,
  to_index bigint NOT NULL CHECK (to_index > from_index),
  -- Epoch of the cell that the recovery began.
  epoch bigint NOT NULL,
  reason text NOT NULL,
  voided_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (game_id, from_index)
);

-- Each time that a cell of Redis was rebuilt from here. One that was interrupted has no end; the next one follows.
CREATE TABLE recoveries (
  cell integer NOT NULL REFERENCES cells,
  -- The epoch that it installs, last of all.
  epoch bigint NOT NULL,
  reason text NOT NULL,
  step text NOT NULL,
  voided bigint NOT NULL DEFAULT 0,
  players bigint NOT NULL DEFAULT 0,
  requests bigint NOT NULL DEFAULT 0,
  started_at timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz,
  PRIMARY KEY (cell, epoch)
);

-- The newest entry of each player, from time to time, so that a rebuild need not read the whole ledger.
CREATE TABLE player_checkpoints (
  partner_id integer NOT NULL,
  player_id text COLLATE "C" NOT NULL,
  entry_id bigint NOT NULL,
  entry_number integer NOT NULL,
  outcome_code integer NOT NULL,
  balance_micros bigint NOT NULL,
  -- Id of the player's first entry: its time is the player's.
  first_id bigint NOT NULL,
  PRIMARY KEY (partner_id, player_id)
);
-- The cell's entries from this id on are not accounted for in player_checkpoints; null: all are.
ALTER TABLE cells ADD COLUMN unchecked_from bigint;
UPDATE cells SET unchecked_from = (SELECT min(entry_id) FROM ledger) WHERE cursor_id > 0;
