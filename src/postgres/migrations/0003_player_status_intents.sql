-- Up Migration

-- Changes of players' statuses that a cell may not have yet. The change itself is in player_statuses. The row is removed once the
-- cell has the change.
CREATE TABLE player_status_intents (
  partner_id integer NOT NULL REFERENCES partners,
  player_id text COLLATE "C" NOT NULL,
  change integer NOT NULL,
  PRIMARY KEY (partner_id, player_id)
);
