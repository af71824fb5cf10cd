-- Up Migration

-- What is kept of the tree over a block's leaves (docs/proofs.md), and which of its game's entries the block is in the public log.
ALTER TABLE blocks ADD COLUMN tree bytea, ADD COLUMN log_number bigint;
ALTER TABLE blocks ALTER COLUMN tree SET STORAGE EXTERNAL;

-- The public log, and those before it that it replaced. The one with the highest number is in force.
CREATE TABLE logs (
  log_id smallint PRIMARY KEY,
  origin text NOT NULL,
  -- Keys of its checkpoints that are in force, newest first, as vkeys.
  vkeys text[] NOT NULL,
  -- Its signer key, sealed, where no setting and no file has it.
  signer text,
  size bigint NOT NULL,
  root bytea NOT NULL,
  begun_at timestamptz NOT NULL DEFAULT now()
);
-- Level -1: bundles of 256 records; 0 and above: tiles of 256 hashes. The last one of each level grows.
CREATE TABLE log_tiles (
  log_id smallint NOT NULL REFERENCES logs,
  level smallint NOT NULL,
  index bigint NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (log_id, level, index)
);
ALTER TABLE log_tiles ALTER COLUMN bytes SET STORAGE EXTERNAL;
-- Signed notes. One that is not published may be signed again; it leaves no process before.
CREATE TABLE log_checkpoints (
  log_id smallint NOT NULL REFERENCES logs,
  size bigint NOT NULL,
  note text NOT NULL,
  signed_at timestamptz NOT NULL DEFAULT now(),
  published_at timestamptz,
  -- A settlement report has it.
  is_named boolean NOT NULL DEFAULT false,
  PRIMARY KEY (log_id, size)
);

-- Of what a rotation voided: the note of it in the outbox, which is an entry of the cell and none of the ledger.
ALTER TABLE voids ADD COLUMN entry_id bigint;

CREATE TABLE log_games (
  game_id integer PRIMARY KEY REFERENCES games,
  next_number bigint NOT NULL,
  -- 32 bytes, made when the first entry is appended.
  label_key bytea,
  -- Of the sheet, prize table or rules.
  math_hash bytea
);
-- Entries: what is sealed, and what is given up of it. Their texts are made of these rows and those of blocks.
CREATE TABLE log_entries (
  game_id integer NOT NULL REFERENCES log_games,
  number bigint NOT NULL,
  -- 1 block, 2 pool, 3 shoes, 4 void, 5 lost.
  kind smallint NOT NULL,
  -- Indices; of a lost entry numbers.
  from_index bigint NOT NULL,
  to_index bigint NOT NULL,
  -- To the millisecond.
  at timestamptz(3) NOT NULL,
  is_late boolean NOT NULL DEFAULT false,
  reason text,
  -- Orders what waits.
  queued bigint GENERATED ALWAYS AS IDENTITY,
  -- Null until it is appended.
  salt bytea,
  log_id smallint,
  log_index bigint,
  logged_at timestamptz(3),
  PRIMARY KEY (game_id, number)
);
CREATE INDEX log_entries_waiting ON log_entries (queued) WHERE log_index IS NULL;

-- Which kind of entry a game's blocks make.
CREATE FUNCTION log_kind(game integer) RETURNS integer LANGUAGE sql STABLE AS $$
  SELECT CASE game_type WHEN 'slot' THEN 1 WHEN 'raffle' THEN 2 ELSE 3 END FROM games WHERE game_id = game
$$;
-- Gives a game's next entry its number: the row of the game is held until the transaction ends, so that numbers have no gap.
CREATE FUNCTION next_log_entry(
  game integer, kind integer, first_index bigint, after_index bigint, at timestamptz, is_late boolean, reason text
) RETURNS bigint LANGUAGE sql AS $$
  WITH counted AS (
    INSERT INTO log_games (game_id, next_number) VALUES (game, 1)
    ON CONFLICT (game_id) DO UPDATE SET next_number = log_games.next_number + 1
    RETURNING next_number - 1 AS number)
  INSERT INTO log_entries (game_id, number, kind, from_index, to_index, at, is_late, reason)
  SELECT game, number, kind, first_index, after_index, at, is_late, reason FROM counted
  RETURNING number
$$;

-- Whoever gives outcomes up logs it.
CREATE FUNCTION log_void() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM next_log_entry(NEW.game_id, 4, NEW.from_index, NEW.to_index, NEW.voided_at, false, NEW.reason);
  RETURN NULL;
END
$$;
CREATE TRIGGER voids_are_logged AFTER INSERT ON voids FOR EACH ROW EXECUTE FUNCTION log_void();
