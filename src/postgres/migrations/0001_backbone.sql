-- Up Migration

-- One row: what holds for the life of this database.
CREATE TABLE installation (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  dataset_id uuid NOT NULL DEFAULT gen_random_uuid(),
  spin_id_key bytea NOT NULL CHECK (octet_length(spin_id_key) = 16),
  player_id_key bytea NOT NULL CHECK (octet_length(player_id_key) = 32),
  cells integer NOT NULL CHECK (cells BETWEEN 1 AND 256),
  idempotency_ttl_s integer NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- Numbers the changes of partners, keys, sheets and games in the order in which they commit (writers hold an advisory
-- lock), so that every process can read what changed since it last looked.
CREATE SEQUENCE change_number;

CREATE TABLE partners (
  partner_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  slug text NOT NULL UNIQUE,
  name text NOT NULL,
  environment text NOT NULL CHECK (environment IN ('sandbox', 'production')),
  is_active boolean NOT NULL DEFAULT true,
  cell integer NOT NULL,
  spin_rate_limit integer NOT NULL,
  api_rate_limit integer NOT NULL,
  opening_balance_micros bigint NOT NULL,
  balance_mode text NOT NULL CHECK (balance_mode IN ('track', 'enforce')),
  funding_micros bigint,
  large_win_threshold_micros bigint NOT NULL,
  min_ready_blocks integer NOT NULL,
  contact_email text,
  created_at timestamptz NOT NULL DEFAULT now(),
  changed bigint NOT NULL
);
CREATE INDEX ON partners (changed);

CREATE TABLE api_keys (
  key_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partner_id integer NOT NULL REFERENCES partners,
  key_hash bytea NOT NULL UNIQUE CHECK (octet_length(key_hash) = 32),
  name text,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  changed bigint NOT NULL
);
CREATE INDEX ON api_keys (partner_id);
CREATE INDEX ON api_keys (changed);

CREATE TABLE par_sheets (
  par_sheet_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partner_id integer NOT NULL REFERENCES partners,
  status text NOT NULL DEFAULT 'ACTIVE' CHECK (status IN ('ACTIVE', 'RETIRED')),
  -- As text (json, not jsonb): the numbers stay as they were certified.
  sheet json NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON par_sheets (partner_id);

CREATE TABLE games (
  game_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partner_id integer NOT NULL REFERENCES partners,
  par_sheet_id integer REFERENCES par_sheets,
  game_type text NOT NULL CHECK (game_type IN ('slot', 'raffle')),
  config_name text NOT NULL,
  display_name text NOT NULL,
  status text NOT NULL DEFAULT 'ACTIVE' CHECK (status IN ('ACTIVE', 'SUSPENDED')),
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Blocks that an operator asked for and that are not made yet.
  blocks_requested integer NOT NULL DEFAULT 0,
  changed bigint NOT NULL,
  UNIQUE (partner_id, config_name)
);
CREATE INDEX ON games (changed);

-- Sealed outcome blocks. A row is the lease: Redis may serve exactly the indices from from_index up to (not with)
-- to_index, and it is written before the block is loaded.
CREATE TABLE blocks (
  game_id integer NOT NULL REFERENCES games,
  from_index bigint NOT NULL,
  to_index bigint NOT NULL CHECK (to_index > from_index),
  outcomes bytea NOT NULL,
  seed bytea NOT NULL,
  nonce bytea NOT NULL,
  commitment bytea NOT NULL,
  epoch bigint NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (game_id, from_index)
);
-- Outcomes are random: compressing them costs time and saves nothing.
ALTER TABLE blocks ALTER COLUMN outcomes SET STORAGE EXTERNAL;

-- One row a cell: who may write it, and how far its outbox is in the ledger.
CREATE TABLE cells (
  cell integer PRIMARY KEY,
  epoch bigint NOT NULL DEFAULT 1,
  -- Id of the newest ledger entry that is booked.
  cursor_id bigint NOT NULL DEFAULT 0,
  -- Every new owner gets a higher fence; a write with an older one fails.
  fence bigint NOT NULL DEFAULT 0,
  owner text,
  lease_until timestamptz NOT NULL DEFAULT '-infinity',
  -- Not null: flushing is stopped until an engineer has looked (the reason).
  halted text
);

-- The ledger. An entry's id holds its time (ms since the epoch, 41 bits), its cell (8) and a sequence (14), so that the
-- primary key grows at its right edge, partitions by day are ranges of it, and the time needs no column.
-- Index cost decides what a spin costs here, so there are two only: the primary key, and one over each 64th entry of a
-- player, from which previous_id leads entry by entry to the others (src/postgres/ledger.ts).
CREATE TABLE ledger (
  entry_id bigint NOT NULL,
  previous_id bigint NOT NULL,
  wager_micros bigint NOT NULL,
  credit_micros bigint NOT NULL,
  balance_micros bigint NOT NULL,
  outcome_index bigint NOT NULL,
  partner_id integer NOT NULL,
  game_id integer NOT NULL,
  entry_number integer NOT NULL,
  outcome_code integer NOT NULL,
  -- 1 spin: the player pays wager_micros to the game, the game pays credit_micros to the player.
  -- 2 opening: the partner's opening account pays credit_micros to the player.
  kind smallint NOT NULL,
  player_id text COLLATE "C" NOT NULL,
  request_id text COLLATE "C",
  PRIMARY KEY (entry_id)
) PARTITION BY RANGE (entry_id);
CREATE INDEX ledger_player ON ledger (partner_id, player_id, entry_number) WHERE entry_number % 64 = 0;

-- The other side of every movement: each game's account by day, and each partner's opening account.
CREATE TABLE game_days (
  game_id integer NOT NULL,
  day date NOT NULL,
  partner_id integer NOT NULL,
  spins bigint NOT NULL,
  wagered_micros bigint NOT NULL,
  paid_micros bigint NOT NULL,
  PRIMARY KEY (game_id, day)
);
CREATE TABLE opening_days (
  partner_id integer NOT NULL,
  day date NOT NULL,
  players bigint NOT NULL,
  opened_micros bigint NOT NULL,
  PRIMARY KEY (partner_id, day)
);
-- The next outcome index that the ledger expects of each game: an index that is dealt twice or skipped stops the cell.
CREATE TABLE game_progress (
  game_id integer PRIMARY KEY,
  next_index bigint NOT NULL
);

-- Double entry: every entry as its postings, which sum to zero entry by entry.
CREATE VIEW postings AS
  SELECT entry_id, 'player:' || partner_id || ':' || player_id AS account,
         CASE kind WHEN 1 THEN credit_micros - wager_micros ELSE credit_micros END AS amount_micros
    FROM ledger
  UNION ALL
  SELECT entry_id, CASE kind WHEN 1 THEN 'game:' || game_id ELSE 'opening:' || partner_id END,
         CASE kind WHEN 1 THEN wager_micros - credit_micros ELSE -credit_micros END
    FROM ledger;

CREATE TABLE audit_log (
  audit_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT now(),
  actor text NOT NULL,
  action text NOT NULL,
  subject text NOT NULL,
  before json,
  after json
);
