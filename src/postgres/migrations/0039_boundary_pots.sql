-- Up Migration

-- Communal progressives as they stood where the oldest kept day of the ledger begins. A pot without a row had neither rules nor budget.
CREATE TABLE boundary_pots (
  game_id integer PRIMARY KEY,
  -- The rules in force; 0: none were.
  version integer NOT NULL,
  progress bigint NOT NULL,
  budget_micros bigint NOT NULL,
  -- Players who spin after this id are remembered. Null: the bonus was never enabled.
  recency_from bigint
);
-- The players who had spun a game last, no more than a community can have.
CREATE TABLE boundary_recency (
  game_id integer NOT NULL,
  player_id text COLLATE "C" NOT NULL,
  spin_id bigint NOT NULL,
  PRIMARY KEY (game_id, player_id)
);
