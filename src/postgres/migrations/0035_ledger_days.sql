-- Up Migration

-- Days of the ledger that are archived, and those of them that are dropped (docs/archive.md). A day without a row is kept and not archived.
CREATE TABLE ledger_days (
  day date PRIMARY KEY,
  -- Entries of the ledger on that day.
  entries bigint NOT NULL,
  -- Of all files of the archive.
  archive_bytes bigint NOT NULL,
  -- The very bytes of manifest.json, and their SHA-256: to repeat the archive gives them again.
  manifest text NOT NULL,
  manifest_hash text NOT NULL CHECK (manifest_hash ~ '^[0-9a-f]{64}$'),
  archived_at timestamptz NOT NULL DEFAULT now(),
  dropped_at timestamptz
);

-- The books as they stood where the oldest kept day begins. Of what was dropped, nothing else is needed to go on.
CREATE TABLE boundary_players (
  partner_id integer NOT NULL,
  player_id text COLLATE "C" NOT NULL,
  -- The newest dropped entry.
  entry_id bigint NOT NULL,
  entry_number integer NOT NULL,
  outcome_code integer NOT NULL,
  balance_micros bigint NOT NULL,
  -- Id of the player's first entry: its time is the player's.
  first_id bigint NOT NULL,
  PRIMARY KEY (partner_id, player_id)
);
-- The index after the last one that was dealt in what was dropped.
CREATE TABLE boundary_games (
  game_id integer PRIMARY KEY,
  next_index bigint NOT NULL
);
-- Newest dropped entry of each cell.
CREATE TABLE boundary_cells (
  cell integer PRIMARY KEY,
  entry_id bigint NOT NULL
);

-- Tickets and adjustments of dropped days: what their request ids stand for is said for ever.
CREATE TABLE kept_entries (LIKE ledger, PRIMARY KEY (entry_id));
