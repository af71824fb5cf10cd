-- Up Migration

-- The schema of version 1.4.0. Times are timestamptz, days are UTC dates, money is in whole micro-USD. Ids of ledger entries hold their
-- time: milliseconds since the epoch (41 bits), cell (8), sequence (14). An interval of indices includes from_… and excludes to_….
-- Sums of amounts are numeric, because a sum of 8-byte integers could overflow and would then stop every flush of a cell.

-- Installation and processes --------------------------------------------------------------------------------------------

-- One row: the identity and the secrets of this database.
CREATE TABLE installation (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  dataset_id uuid NOT NULL DEFAULT gen_random_uuid(),
  -- Key of the spin ids.
  spin_id_key bytea NOT NULL CHECK (octet_length(spin_id_key) = 16),
  -- Key of the user ids.
  player_id_key bytea NOT NULL CHECK (octet_length(player_id_key) = 32),
  -- Number of cells at the first start.
  cells integer NOT NULL CHECK (cells BETWEEN 1 AND 256),
  -- Binding time of request ids at the first start; request_id_times has its later values.
  idempotency_seconds integer NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Format in which processes write what they share (src/domain/formats.ts).
  format integer NOT NULL DEFAULT 1
);

-- Processes that run. Each refreshes its row every few seconds; a row that is a day old is removed.
CREATE TABLE processes (
  process_id uuid PRIMARY KEY,
  version text NOT NULL,
  roles text NOT NULL,
  host text NOT NULL,
  -- Formats that the process reads.
  oldest_format integer NOT NULL,
  newest_format integer NOT NULL,
  started_at timestamptz NOT NULL DEFAULT now(),
  seen_at timestamptz NOT NULL DEFAULT now(),
  -- Ids of the keys with which the process seals. Empty: it seals nothing. Null: its version does not report them.
  seeds_key text,
  secrets_key text
);

-- Workers that are alive, so that each can compute its share of the cells.
CREATE TABLE workers (
  -- As in cells.owner.
  owner text PRIMARY KEY,
  -- The longest-running workers take the remainder of the division of cells.
  since timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Extended while the worker can write cells.
  alive_until timestamptz NOT NULL
);

-- Comparisons of a process's files with the list of its build (docs/operations.md). Rows never change.
CREATE TABLE program_checks (
  check_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  host text NOT NULL,
  roles text NOT NULL,
  -- The program itself, or the packages that are installed beside it.
  part text NOT NULL CHECK (part IN ('program', 'packages')),
  -- The check ran at the start, before the process dealt anything.
  is_start boolean NOT NULL,
  version text NOT NULL,
  -- SHA-256 of the list of files in hexadecimal. Null: there is no list, and nothing was compared.
  manifest text CHECK (manifest ~ '^[0-9a-f]{64}$'),
  files integer NOT NULL,
  scripts integer NOT NULL,
  differing integer NOT NULL,
  -- The first hundred differences: [{"path": …, "what": …}].
  differences jsonb NOT NULL
);
CREATE INDEX program_checks_start ON program_checks (check_id) WHERE is_start;
CREATE FUNCTION keep_program_checks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'checks of the program are kept as they were written';
END
$$;
CREATE TRIGGER keep BEFORE UPDATE OR DELETE ON program_checks FOR EACH ROW EXECUTE FUNCTION keep_program_checks();
CREATE TRIGGER keep_all BEFORE TRUNCATE ON program_checks FOR EACH STATEMENT EXECUTE FUNCTION keep_program_checks();

-- Copies outside both stores: the position file (POSITION_FILE) and the folder of the public log (LOG_COPY_DIR). A start that does not
-- find a recorded copy deals nothing, because this database may be of an older state. `spindle recover --without` removes a row.
CREATE TABLE outside_copies (
  setting text PRIMARY KEY CHECK (setting IN ('POSITION_FILE', 'LOG_COPY_DIR')),
  path text NOT NULL,
  -- Id of the position file, or origin of the log.
  copy_id text NOT NULL,
  -- Newest committed entry in the position file, or number of records of the log.
  newest bigint NOT NULL,
  noted_at timestamptz NOT NULL DEFAULT now(),
  -- Message of a worker that did not find the copy at its start and deals nothing.
  missing text
);

-- Position files that are ahead of the stores, because the stores were restored. Until a row is accepted nothing is dealt;
-- `spindle recover --restored` accepts it, and the worker that has the file begins a new one.
CREATE TABLE restored_positions (
  position_id uuid PRIMARY KEY,
  reason text NOT NULL,
  found_at timestamptz NOT NULL DEFAULT now(),
  accepted_at timestamptz
);

-- One row: whether anything is dealt at all. While it is off, spins, tickets and deals are refused everywhere.
CREATE TABLE dealing (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  is_on boolean NOT NULL DEFAULT true,
  -- Reason, author and time of the newest change. Null: there was none.
  reason text,
  actor text,
  changed_at timestamptz,
  -- 0: it was never changed, and no process reads it.
  changed bigint NOT NULL DEFAULT 0
);
INSERT INTO dealing DEFAULT VALUES;

-- Numbers the changes of partners, keys, sheets and games in the order of their commits (writers hold an advisory lock), so that each
-- process can read the changes since its last look.
CREATE SEQUENCE change_number;

-- Partners, operators and keys --------------------------------------------------------------------------------------------

-- Partners with their limits.
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
  changed bigint NOT NULL,
  -- How many of each kind the partner may register itself; those made by the operator do not count.
  max_games integer NOT NULL DEFAULT 1000,
  max_par_sheets integer NOT NULL DEFAULT 1000,
  max_webhooks integer NOT NULL DEFAULT 50,
  is_dealing boolean NOT NULL DEFAULT true
);
CREATE INDEX ON partners (changed);

-- Keys of the partner API. Only the SHA-256 of a key is stored.
CREATE TABLE api_keys (
  key_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partner_id integer NOT NULL REFERENCES partners,
  key_hash bytea NOT NULL UNIQUE CHECK (octet_length(key_hash) = 32),
  name text,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  changed bigint NOT NULL,
  -- First characters of the key, which identify it in lists; 37 of its 43 random characters stay secret. Null: the key is older than
  -- version 1.4.0.
  prefix text CHECK (prefix ~ '^ks_[\w-]{6}$')
);
CREATE INDEX ON api_keys (partner_id);
CREATE INDEX ON api_keys (changed);

-- Notices of a key's expiry that were sent, by the number of days before it.
CREATE TABLE key_notices (
  key_id integer NOT NULL REFERENCES api_keys,
  days integer NOT NULL,
  noticed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (key_id, days)
);

-- Moves of partners from cell to cell. The owner of the old cell carries a move out (src/engine/recovery/movePartner.ts).
CREATE TABLE partner_moves (
  move_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partner_id integer NOT NULL REFERENCES partners,
  from_cell integer NOT NULL,
  to_cell integer NOT NULL CHECK (to_cell <> from_cell),
  requested_at timestamptz NOT NULL DEFAULT now(),
  -- Newest entry of the partner in the old cell; its request ids up to this entry are in the old cell's runs.
  until_id bigint,
  switched_at timestamptz,
  -- When the old cell held nothing of the partner any more, or when the move failed for the reason in `failure`.
  finished_at timestamptz,
  failure text,
  CHECK ((switched_at IS NULL) = (until_id IS NULL))
);
CREATE INDEX ON partner_moves (partner_id);
CREATE UNIQUE INDEX partner_moves_open ON partner_moves (partner_id) WHERE finished_at IS NULL;

-- Numbers the steps of moves: a cell refuses a step, and every write of it, once it has seen a later one.
CREATE SEQUENCE move_steps;

-- Players whose status an operator has changed; audit_log has the authors and the earlier changes. Redis has a copy in the player's
-- record, which a rebuild makes from this table.
CREATE TABLE player_statuses (
  partner_id integer NOT NULL REFERENCES partners,
  player_id text COLLATE "C" NOT NULL,
  status text NOT NULL CHECK (status IN ('ACTIVE', 'BLOCKED')),
  reason text NOT NULL,
  -- Counts the changes: Redis refuses an older change than the one it has (lua/setPlayerStatus.lua).
  change integer NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, player_id)
);

-- Operators by name, beside the one whose key is in the environment. Only the SHA-256 of a key is stored.
CREATE TABLE operators (
  name text COLLATE "C" PRIMARY KEY,
  role text NOT NULL CHECK (role IN ('admin', 'operator', 'auditor')),
  key_hash bytea NOT NULL UNIQUE CHECK (octet_length(key_hash) = 32),
  created_at timestamptz NOT NULL DEFAULT now(),
  -- When the present key was issued: at the creation, or at the newest rotation.
  issued_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  changed bigint NOT NULL,
  -- First characters of the key. Null: the key is older than version 1.4.0.
  prefix text CHECK (prefix ~ '^kso_[\w-]{6}$')
);
CREATE INDEX ON operators (changed);
-- A version that does not know prefixes replaces a key without replacing the prefix.
CREATE FUNCTION forget_prefix() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.key_hash <> OLD.key_hash AND NEW.prefix IS NOT DISTINCT FROM OLD.prefix THEN
    NEW.prefix := NULL;
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER forget_prefix BEFORE UPDATE OF key_hash ON operators FOR EACH ROW EXECUTE FUNCTION forget_prefix();

-- Sessions of the console. A session ends with the key that it was begun with.
CREATE TABLE operator_sessions (
  session_hash bytea PRIMARY KEY CHECK (octet_length(session_hash) = 32),
  key_hash bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX ON operator_sessions (key_hash, created_at);
CREATE INDEX ON operator_sessions (expires_at);

-- Changes that operators and the service made. The entries are a chain: the hash of an entry is SHA-256 over the hash before it (empty
-- for the first) and the entry's members, each as `<bytes>:<text>`, null as `-`. Entries are numbered without a gap.
CREATE TABLE audit_log (
  audit_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT now(),
  actor text NOT NULL,
  action text NOT NULL,
  subject text NOT NULL,
  before json,
  after json,
  hash bytea NOT NULL
);
CREATE FUNCTION audit_text(value text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN value IS NULL THEN '-' ELSE octet_length(value) || ':' || value END
$$;
CREATE FUNCTION audit_hash(previous bytea, e audit_log) RETURNS bytea LANGUAGE sql STABLE AS $$
  SELECT sha256(coalesce(previous, ''::bytea) || convert_to(
    audit_text(e.audit_id::text) || audit_text(to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))
    || audit_text(e.actor) || audit_text(e.action) || audit_text(e.subject) || audit_text(e.before::text)
    || audit_text(e.after::text), 'UTF8'))
$$;
CREATE FUNCTION chain_audit_entry() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  newest audit_log;
BEGIN
  -- Held to the end of the transaction: the next entry sees this one.
  PERFORM pg_advisory_xact_lock(7310012);
  SELECT * INTO newest FROM audit_log ORDER BY audit_id DESC LIMIT 1;
  NEW.audit_id := coalesce(newest.audit_id, 0) + 1;
  NEW.hash := audit_hash(newest.hash, NEW);
  RETURN NEW;
END
$$;
CREATE FUNCTION keep_audit_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the audit log is kept: entries are neither changed nor removed';
END
$$;
CREATE TRIGGER chain BEFORE INSERT ON audit_log FOR EACH ROW EXECUTE FUNCTION chain_audit_entry();
CREATE TRIGGER keep BEFORE UPDATE OR DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION keep_audit_log();
CREATE TRIGGER keep_all BEFORE TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION keep_audit_log();

-- Versions of the partner API whose end is announced.
CREATE TABLE api_versions (
  version text PRIMARY KEY,
  deprecated_at timestamptz NOT NULL,
  sunset_at timestamptz NOT NULL,
  successor text,
  migration_url text,
  -- When the present sunset was announced.
  announced_at timestamptz NOT NULL,
  changed bigint NOT NULL
);

-- Reminders of a sunset that were recorded, by the number of days before it.
CREATE TABLE api_version_reminders (
  version text NOT NULL REFERENCES api_versions,
  sunset_at timestamptz NOT NULL,
  days integer NOT NULL,
  recorded_at timestamptz NOT NULL,
  PRIMARY KEY (version, sunset_at, days)
);

-- Requests by version, partner and hour: those of the last day, and the newest hour of each partner.
CREATE TABLE api_version_uses (
  version text NOT NULL,
  partner_id integer NOT NULL REFERENCES partners,
  hour timestamptz NOT NULL,
  requests bigint NOT NULL,
  last_used_at timestamptz NOT NULL,
  PRIMARY KEY (version, partner_id, hour)
);

-- Games --------------------------------------------------------------------------------------------------------------------

-- PAR sheets of partners.
CREATE TABLE par_sheets (
  par_sheet_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partner_id integer NOT NULL REFERENCES partners,
  status text NOT NULL DEFAULT 'ACTIVE' CHECK (status IN ('ACTIVE', 'RETIRED')),
  -- Stored as text (json, not jsonb): the numbers stay as they were certified.
  sheet json NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Members of the sheet that lists show without reading the sheet.
  game_title text NOT NULL,
  num_reels integer NOT NULL,
  certified_rtp float8 NOT NULL,
  symbol_count integer NOT NULL,
  tier_count integer NOT NULL,
  combination_count integer NOT NULL
);
CREATE INDEX ON par_sheets (partner_id);

-- Games of all kinds.
CREATE TABLE games (
  game_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partner_id integer NOT NULL REFERENCES partners,
  par_sheet_id integer REFERENCES par_sheets,
  game_type text NOT NULL CHECK (game_type IN ('slot', 'raffle', 'blackjack')),
  config_name text NOT NULL,
  display_name text NOT NULL,
  status text NOT NULL DEFAULT 'ACTIVE' CHECK (status IN ('ACTIVE', 'SUSPENDED')),
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Blocks that an operator asked for and that are not made yet.
  blocks_requested integer NOT NULL DEFAULT 0,
  changed bigint NOT NULL,
  -- Why the service suspended the game. Null: an operator did. RESTORED: Postgres was restored to an older state, and tickets of the
  -- raffle may have been shown that this database does not have.
  status_reason text CHECK (status_reason IN ('RESTORED')),
  -- End of the outcomes that the newest rotation of the game voids. Until the ledger has reached it no block of the game is leased,
  -- because the void is logged before the block.
  rotating_to bigint,
  UNIQUE (partner_id, config_name),
  CONSTRAINT games_reason_of_suspension CHECK (status_reason IS NULL OR status = 'SUSPENDED')
);
CREATE INDEX ON games (changed);
CREATE INDEX games_of_partner ON games (partner_id, game_type);

-- Changes of the status of many games at once, whose partners are notified: written with the change, processed in order.
CREATE TABLE game_status_notices (
  notice_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL,
  status text NOT NULL,
  reason text NOT NULL,
  -- Ordered by partner and id.
  game_ids integer[] NOT NULL,
  -- Number of the games whose partners were notified.
  told integer NOT NULL DEFAULT 0
);

-- Whether a game lacks its reserve of blocks. A game that never had it has no row. The fall of a reserve is notified once.
CREATE TABLE block_reserves (
  game_id integer PRIMARY KEY REFERENCES games,
  is_low boolean NOT NULL,
  since timestamptz NOT NULL DEFAULT now()
);

-- Raffles: games whose outcomes are one sealed pool of tickets. The pool is a row of `blocks`, from index 0 to the size of the pool, and
-- the commitment of that row covers the whole pool (src/domain/games/rafflePool.ts).
CREATE TABLE raffles (
  game_id integer PRIMARY KEY REFERENCES games,
  pool_size integer NOT NULL CHECK (pool_size BETWEEN 1 AND 1000000),
  -- Ticket price, pool size and prizes as RFC 8785 text (json, not jsonb), which the commitment covers.
  prize_table json NOT NULL,
  sealed_at timestamptz,
  -- Set in the transaction that writes the last ticket to the ledger, or once a void has them all; never unset.
  closed_at timestamptz,
  -- When and by whom the raffle was voided: no further ticket is sold, and each sold one is refunded (src/engine/raffles/raffleVoids.ts).
  voided_at timestamptz,
  voided_by text,
  -- Stored with each refund.
  void_reason text,
  -- No ticket is after this entry. Null: some may not be in the ledger yet.
  tickets_to bigint,
  -- Tickets up to this entry are refunded, or can't be.
  refunded_to bigint NOT NULL DEFAULT 0,
  refunds_done_at timestamptz,
  CONSTRAINT raffles_check CHECK (closed_at IS NULL OR sealed_at IS NOT NULL OR voided_at IS NOT NULL),
  CONSTRAINT raffles_void CHECK (voided_at IS NULL OR voided_by IS NOT NULL AND void_reason IS NOT NULL)
);
-- Workers read the few raffles that are being refunded again and again.
CREATE INDEX raffles_refunding ON raffles (game_id) WHERE voided_at IS NOT NULL AND refunds_done_at IS NULL;

-- Tickets of voided raffles that can't be refunded, for example because the balance would exceed its bound.
CREATE TABLE refund_failures (
  game_id integer NOT NULL REFERENCES raffles,
  entry_id bigint NOT NULL,
  refusal text NOT NULL,
  failed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (game_id, entry_id)
);

-- Blackjack tables: games that are played in rounds. Their shoes are rows of `blocks`: an outcome is the result of a deal without
-- actions (src/domain/games/table.ts), and the seed has 32 bytes for each shoe, in order.
CREATE TABLE blackjack_tables (
  game_id integer PRIMARY KEY REFERENCES games,
  wager_micros bigint NOT NULL CHECK (wager_micros > 0),
  -- RFC 8785 text (json, not jsonb), which the hash of the rules covers.
  rules json NOT NULL,
  round_timeout_s integer NOT NULL CHECK (round_timeout_s > 0)
);

-- Rules of a game's communal progressive, a row for each version (docs/communal.md). A version is recorded before Redis puts it in
-- force.
CREATE TABLE communal_rules (
  game_id integer NOT NULL REFERENCES games,
  version integer NOT NULL CHECK (version > 0),
  rules json NOT NULL,
  resets_progress boolean NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Id of the note that put the version in force for all later spins. Null: the note is not committed.
  in_force_from bigint,
  -- When Redis confirmed the version. Null: no operator got an answer, and a rebuild or a move of the cell withdraws the version unless
  -- its note is committed.
  confirmed_at timestamptz,
  PRIMARY KEY (game_id, version)
);

-- Cells and sealed outcomes ------------------------------------------------------------------------------------------------

-- Cells: the owner of each, and the position of its outbox in the ledger.
CREATE TABLE cells (
  cell integer PRIMARY KEY,
  epoch bigint NOT NULL DEFAULT 1,
  -- Id of the newest committed entry.
  cursor_id bigint NOT NULL DEFAULT 0,
  -- Fencing token. Each new owner gets a higher one, and a write with a lower one fails.
  fence bigint NOT NULL DEFAULT 0,
  owner text,
  lease_until timestamptz NOT NULL DEFAULT '-infinity',
  -- Why the flush is halted until an engineer has looked. Null: it is not.
  halted text,
  -- player_checkpoints lacks the cell's entries from this id on. Null: it has all of them.
  unchecked_from bigint,
  -- A draining cell takes no new partners.
  is_draining boolean NOT NULL DEFAULT false,
  -- Request ids of the entries up to handed_over_id are in the cell's runs, those of later entries in Redis.
  handed_over_id bigint NOT NULL DEFAULT 0,
  -- Request ids of the entries from here on bind; earlier ones may not.
  bound_from_id bigint NOT NULL DEFAULT 0,
  -- The time as of which bound_from_id was computed, in ms since the epoch. The owner of the cell advances both.
  binding_ms bigint NOT NULL DEFAULT 0
);
ALTER TABLE partner_moves
  ADD FOREIGN KEY (from_cell) REFERENCES cells,
  ADD FOREIGN KEY (to_cell) REFERENCES cells;

-- Rebuilds of a cell of Redis from this database. An interrupted one has no end, and the next one follows it.
CREATE TABLE recoveries (
  cell integer NOT NULL REFERENCES cells,
  -- The epoch that the rebuild installs as its last step.
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

-- Newest entry of each cell that a front end has answered, with its epoch. A Redis that lacks the entry is an older copy, and the cell
-- is rebuilt, even if all front ends have been restarted.
CREATE TABLE answered_entries (
  cell int PRIMARY KEY REFERENCES cells,
  epoch bigint NOT NULL,
  entry_id bigint NOT NULL,
  -- The cell refused a call because it lacks the entry; its owner must check the cell again.
  is_lacking boolean NOT NULL DEFAULT false
);

-- Spins that were answered once Redis had them (ACK=redis) and that neither the replica that took over nor the ledger has.
CREATE TABLE lost_spins (
  -- Id in the answer. A later spin may have the same id.
  entry_id bigint NOT NULL,
  partner_id int NOT NULL REFERENCES partners,
  game_id int NOT NULL REFERENCES games,
  player_id text NOT NULL,
  request_id text,
  outcome_code int NOT NULL,
  balance_micros bigint NOT NULL,
  cell int NOT NULL,
  -- The epoch that began when the spin was found to be lost.
  epoch text NOT NULL,
  found_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (entry_id, partner_id, player_id)
);

-- Sealed outcomes: blocks of slots, pools of raffles, shoes of blackjack. A row is a lease: Redis may serve exactly its indices, and the
-- row is committed before the block is loaded. src/postgres/concurrentIndexes.ts makes further indexes.
CREATE TABLE blocks (
  game_id integer NOT NULL REFERENCES games,
  from_index bigint NOT NULL,
  to_index bigint NOT NULL CHECK (to_index > from_index),
  -- Codes of the outcomes. Empty for a slot 90 days after the block was exhausted: the PAR sheet and the seed give them again.
  outcomes bytea NOT NULL,
  seed bytea NOT NULL,
  nonce bytea NOT NULL,
  commitment bytea NOT NULL,
  epoch bigint NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Stored levels of the tree over the leaves of the block (docs/proofs.md).
  tree bytea,
  -- Number of the block among its game's entries in the public log.
  log_number bigint,
  -- When a worker first saw that every index of the block is in the ledger or voided.
  exhausted_at timestamptz,
  -- The key that encrypts seed, nonce and outcomes, sealed with a key that is not in the database (src/engine/blocks/blockSeals.store.ts).
  -- Null: they are not encrypted.
  sealed text,
  PRIMARY KEY (game_id, from_index)
);
-- Outcomes and hashes are random: compression would cost time and save nothing.
ALTER TABLE blocks ALTER COLUMN outcomes SET STORAGE EXTERNAL, ALTER COLUMN tree SET STORAGE EXTERNAL;

-- Outcomes that will never be dealt: they were leased to a Redis that lost them, or an operator rotated them out. Together with the
-- indices in the ledger they leave no gap.
CREATE TABLE voids (
  game_id integer NOT NULL REFERENCES games,
  from_index bigint NOT NULL,
  to_index bigint NOT NULL CHECK (to_index > from_index),
  -- Epoch of the cell that the recovery began.
  epoch bigint NOT NULL,
  reason text NOT NULL,
  voided_at timestamptz NOT NULL DEFAULT now(),
  -- Note of a rotation in the outbox, which is an entry of the cell and has no row in the ledger.
  entry_id bigint,
  -- End of the indices that were sealed. Null: all of them were. After a restore the void continues beyond the sealed indices, because
  -- later ones may have been shown.
  sealed_to bigint CHECK (sealed_to BETWEEN from_index AND to_index),
  PRIMARY KEY (game_id, from_index)
);

-- Request ids ---------------------------------------------------------------------------------------------------------------

-- How long request ids of spins and deals bind, by the time when they were bound (src/domain/bindingTimes.ts).
CREATE TABLE request_id_times (
  since_ms bigint PRIMARY KEY,
  seconds integer NOT NULL CHECK (seconds > 0)
);

-- Runs: sorted request ids that Redis no longer holds. A run never changes; runs are merged into new ones.
CREATE TABLE request_runs (
  run_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  cell integer NOT NULL,
  -- The run has the entries after from_id up to and including to_id.
  from_id bigint NOT NULL,
  to_id bigint NOT NULL CHECK (to_id > from_id),
  ids bigint NOT NULL CHECK (ids > 0),
  filter_bytes bigint NOT NULL,
  -- First 8 bytes of the SHA-256 of the filter, which tell runs apart that have the same number after a restore.
  filter_hash bigint NOT NULL DEFAULT 0,
  UNIQUE (cell, from_id)
);

-- Sorted pairs of hash and entry id of a run (src/domain/requestRun.ts).
CREATE TABLE request_blocks (
  run_id integer NOT NULL REFERENCES request_runs ON DELETE CASCADE,
  first_hash bytea NOT NULL CHECK (octet_length(first_hash) = 8),
  pairs bytea NOT NULL,
  PRIMARY KEY (run_id, first_hash)
);
ALTER TABLE request_blocks ALTER COLUMN pairs SET STORAGE EXTERNAL;

-- Filter of a run, in pieces.
CREATE TABLE request_filters (
  run_id integer NOT NULL REFERENCES request_runs ON DELETE CASCADE,
  piece integer NOT NULL,
  bits bytea NOT NULL,
  PRIMARY KEY (run_id, piece)
);
ALTER TABLE request_filters ALTER COLUMN bits SET STORAGE EXTERNAL;

-- Request ids of tickets. They bind for ever, also when the runs no longer have them.
CREATE TABLE ticket_requests (
  game_id integer NOT NULL,
  request_id text COLLATE "C" NOT NULL,
  entry_id bigint NOT NULL,
  PRIMARY KEY (game_id, request_id)
);

-- Ledger --------------------------------------------------------------------------------------------------------------------

-- The ledger, partitioned by day. The primary key grows at its right edge, partitions are ranges of it, and the time needs no column.
-- The cost of indexes dominates the cost of a spin, so there are two only: the primary key, and one over every 64th entry of a
-- player, from which previous_id leads to the entries between (src/engine/ledger/ledger.store.ts).
CREATE TABLE ledger (
  entry_id bigint NOT NULL,
  -- The player's entry before this one.
  previous_id bigint NOT NULL,
  wager_micros bigint NOT NULL,
  credit_micros bigint NOT NULL,
  -- Balance of the player after the entry.
  balance_micros bigint NOT NULL,
  outcome_index bigint NOT NULL,
  partner_id integer NOT NULL,
  game_id integer NOT NULL,
  -- Number of the entry among those of its player, from 1.
  entry_number integer NOT NULL,
  outcome_code integer NOT NULL,
  -- Code of the kind of entry (src/domain/ledgerEntry.ts), which decides the other side of the double entry.
  kind smallint NOT NULL,
  player_id text COLLATE "C" NOT NULL,
  request_id text COLLATE "C",
  PRIMARY KEY (entry_id)
) PARTITION BY RANGE (entry_id);
CREATE INDEX ledger_player ON ledger (partner_id, player_id, entry_number) WHERE entry_number % 64 = 0;

-- Next outcome index that the ledger expects of each game: an index that is dealt twice or skipped halts the cell.
CREATE TABLE game_progress (
  game_id integer PRIMARY KEY,
  next_index bigint NOT NULL
);

-- Newest entry of each player at some time in the past, so that a rebuild need not read the whole ledger.
CREATE TABLE player_checkpoints (
  partner_id integer NOT NULL,
  player_id text COLLATE "C" NOT NULL,
  entry_id bigint NOT NULL,
  entry_number integer NOT NULL,
  outcome_code integer NOT NULL,
  balance_micros bigint NOT NULL,
  -- Id of the player's first entry, whose time is the player's.
  first_id bigint NOT NULL,
  PRIMARY KEY (partner_id, player_id)
);

-- Adjustments that operators requested, written before they take effect. Without an entry_id one is under way or was abandoned, and its
-- repetition carries it out. A refused one is removed, and audit_log has it.
CREATE TABLE adjustments (
  partner_id integer NOT NULL REFERENCES partners,
  request_id text COLLATE "C" NOT NULL,
  -- Number of the intent: Redis decides each number once (lua/adjust.lua).
  intent_id bigint GENERATED ALWAYS AS IDENTITY,
  player_id text COLLATE "C" NOT NULL,
  amount_micros bigint NOT NULL CHECK (amount_micros <> 0),
  reason text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Ledger entry of the adjustment. Null: it is not committed.
  entry_id bigint,
  PRIMARY KEY (partner_id, request_id)
);

-- State of each blackjack round, written with its ledger entries: rules, shoe and moves determine it.
CREATE TABLE rounds (
  game_id integer NOT NULL,
  shoe_index bigint NOT NULL,
  partner_id integer NOT NULL,
  player_id text COLLATE "C" NOT NULL,
  request_id text COLLATE "C",
  deal_id bigint NOT NULL,
  status text NOT NULL CHECK (status IN ('OPEN', 'SETTLED', 'VOIDED')),
  -- Codes of src/domain/games/round.ts.
  moves smallint[] NOT NULL DEFAULT '{}',
  -- Id, wager and resulting balance of each ledger entry, the deal's first.
  entry_ids bigint[] NOT NULL,
  wagers_micros bigint[] NOT NULL,
  balances_micros bigint[] NOT NULL,
  payout_micros bigint CHECK ((payout_micros IS NULL) = (status = 'OPEN')),
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (game_id, shoe_index)
);
CREATE UNIQUE INDEX rounds_deal ON rounds (deal_id);
CREATE INDEX rounds_partner ON rounds (partner_id, deal_id);
CREATE INDEX rounds_player ON rounds (partner_id, player_id, deal_id);
-- Few rounds are open, and they are read all the time.
CREATE INDEX rounds_open ON rounds (expires_at) WHERE status = 'OPEN';

-- Pot of each game with a communal progressive, up to the newest committed note.
CREATE TABLE communal_pots (
  game_id integer PRIMARY KEY REFERENCES games,
  version integer NOT NULL,
  progress bigint NOT NULL CHECK (progress >= 0),
  budget_micros bigint NOT NULL CHECK (budget_micros >= 0),
  -- Players who spin after this id are remembered. Null: the bonus was never enabled.
  recency_from bigint,
  -- Id of the newest note of the game.
  noted_to bigint NOT NULL
);

-- Most recent players of a game, no more than a community can have.
CREATE TABLE communal_recency (
  game_id integer NOT NULL,
  player_id text COLLATE "C" NOT NULL,
  spin_id bigint NOT NULL,
  PRIMARY KEY (game_id, player_id)
);

-- Changes of a pot's budget, written before they take effect. Without a note_id one is under way or was abandoned.
CREATE TABLE communal_fundings (
  game_id integer NOT NULL REFERENCES games,
  request_id text COLLATE "C" NOT NULL,
  -- Number of the intent, as in adjustments.
  funding_id bigint GENERATED ALWAYS AS IDENTITY,
  amount_micros bigint NOT NULL CHECK (amount_micros <> 0),
  reason text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Id of the note, whose time is that of the funding.
  note_id bigint UNIQUE,
  -- Budget after the funding.
  budget_micros bigint,
  PRIMARY KEY (game_id, request_id),
  CHECK ((note_id IS NULL) = (budget_micros IS NULL))
);

-- Bonuses that were triggered. The id of an event is that of the spin that triggered it.
CREATE TABLE communal_events (
  event_id bigint PRIMARY KEY,
  game_id integer NOT NULL,
  version integer NOT NULL,
  progress bigint NOT NULL,
  tier_level integer NOT NULL,
  tier_name text NOT NULL,
  amount_micros bigint NOT NULL,
  paid_micros bigint NOT NULL,
  winners integer NOT NULL,
  status text NOT NULL CHECK (status IN ('PAID', 'SKIPPED_BUDGET'))
);
CREATE INDEX ON communal_events (game_id, event_id);

-- Shares of a triggered bonus: a row for each ledger entry of kind 4. Their ids follow that of the event.
CREATE TABLE communal_shares (
  entry_id bigint PRIMARY KEY,
  event_id bigint NOT NULL,
  game_id integer NOT NULL,
  partner_id integer NOT NULL,
  player_id text COLLATE "C" NOT NULL,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  is_trigger boolean NOT NULL,
  -- Entry of the spin whose answer notified the player. Null: the player is not notified yet.
  told_by bigint UNIQUE
);
CREATE INDEX ON communal_shares (partner_id, player_id, entry_id);
CREATE INDEX communal_untold ON communal_shares (entry_id) WHERE told_by IS NULL;

-- The other side of the ledger by day ----------------------------------------------------------------------------------------

-- Account of each game by day. A row is inserted once a game and day; a flush updates no indexed column.
CREATE TABLE game_days (
  game_id integer NOT NULL,
  day date NOT NULL,
  partner_id integer NOT NULL,
  spins bigint NOT NULL,
  wagered_micros numeric(38, 0) NOT NULL,
  paid_micros numeric(38, 0) NOT NULL,
  PRIMARY KEY (game_id, day)
);
CREATE INDEX ON game_days (partner_id, day);
CREATE INDEX game_days_of_day ON game_days (day);

-- Account of each game's forced spins by day (docs/contract.md, sandbox), apart from its totals.
CREATE TABLE sandbox_days (
  game_id integer NOT NULL,
  day date NOT NULL,
  partner_id integer NOT NULL,
  spins bigint NOT NULL,
  wagered_micros numeric(38, 0) NOT NULL,
  paid_micros numeric(38, 0) NOT NULL,
  PRIMARY KEY (game_id, day)
);
CREATE INDEX ON sandbox_days (partner_id, day);

-- Account of each pot's shares by day.
CREATE TABLE communal_days (
  game_id integer NOT NULL,
  day date NOT NULL,
  partner_id integer NOT NULL,
  shares bigint NOT NULL,
  paid_micros numeric(38, 0) NOT NULL,
  PRIMARY KEY (game_id, day)
);
CREATE INDEX ON communal_days (partner_id, day);

-- Account of each partner's opening balances by day.
CREATE TABLE opening_days (
  partner_id integer NOT NULL,
  day date NOT NULL,
  players bigint NOT NULL,
  opened_micros numeric(38, 0) NOT NULL,
  PRIMARY KEY (partner_id, day)
);

-- Account of each partner's adjustments by day.
CREATE TABLE adjustment_days (
  partner_id integer NOT NULL,
  day date NOT NULL,
  adjustments bigint NOT NULL,
  amount_micros numeric(38, 0) NOT NULL,
  PRIMARY KEY (partner_id, day)
);

-- Double entry: every ledger entry as its two postings, which sum to zero.
CREATE VIEW postings AS
  SELECT entry_id, 'player:' || partner_id || ':' || player_id AS account,
         CASE WHEN kind IN (1, 6, 7, 8, 9) THEN credit_micros - wager_micros ELSE credit_micros END AS amount_micros
    FROM ledger
  UNION ALL
  SELECT entry_id,
         CASE kind WHEN 1 THEN 'game:' || game_id WHEN 6 THEN 'game:' || game_id WHEN 7 THEN 'game:' || game_id
                   WHEN 8 THEN 'game:' || game_id WHEN 3 THEN 'adjustment:' || partner_id
                   WHEN 4 THEN 'communal:' || game_id WHEN 9 THEN 'sandbox:' || game_id
                   ELSE 'opening:' || partner_id END,
         CASE WHEN kind IN (1, 6, 7, 8, 9) THEN wager_micros - credit_micros ELSE -credit_micros END
    FROM ledger
  UNION ALL
  SELECT note_id, 'communal:' || game_id, amount_micros FROM communal_fundings WHERE note_id IS NOT NULL
  UNION ALL
  SELECT note_id, 'operator', -amount_micros FROM communal_fundings WHERE note_id IS NOT NULL;

-- Turnover by UTC hour, for charts: the growth of a partner's days in the hour, to within a minute. Kept for 35 days.
CREATE TABLE traffic_hours (
  hour timestamptz NOT NULL,
  partner_id integer NOT NULL,
  spins bigint NOT NULL,
  wagered_micros numeric(38, 0) NOT NULL,
  paid_micros numeric(38, 0) NOT NULL,
  -- False: sums of the days before hours were recorded, which belong to no hour.
  is_known boolean NOT NULL DEFAULT true,
  PRIMARY KEY (hour, partner_id)
);

-- Large wins, a row each, written with the ledger entry (docs/contract.md, reports). Events of webhooks are removed after some days, and
-- exist only where a webhook subscribes to them.
CREATE TABLE large_wins (
  large_win_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partner_id integer NOT NULL,
  at timestamptz NOT NULL,
  -- Data of the event `spin.large_win`.
  data json NOT NULL
);
CREATE INDEX ON large_wins (at);

-- Archived and dropped days of the ledger ------------------------------------------------------------------------------------

-- Days that are archived, and those of them that are dropped (docs/archive.md). A day without a row is kept and not archived.
CREATE TABLE ledger_days (
  day date PRIMARY KEY,
  -- Ledger entries on that day.
  entries bigint NOT NULL,
  -- Size of all files of the archive.
  archive_bytes bigint NOT NULL,
  -- Bytes of manifest.json and their SHA-256: archiving the day again gives the same.
  manifest text NOT NULL,
  manifest_hash text NOT NULL CHECK (manifest_hash ~ '^[0-9a-f]{64}$'),
  archived_at timestamptz NOT NULL DEFAULT now(),
  dropped_at timestamptz
);

-- Players as they were where the oldest kept day begins. The boundary_… tables are all that is needed of the dropped days.
CREATE TABLE boundary_players (
  partner_id integer NOT NULL,
  player_id text COLLATE "C" NOT NULL,
  -- The player's newest dropped entry.
  entry_id bigint NOT NULL,
  entry_number integer NOT NULL,
  outcome_code integer NOT NULL,
  balance_micros bigint NOT NULL,
  -- Id of the player's first entry, whose time is the player's.
  first_id bigint NOT NULL,
  PRIMARY KEY (partner_id, player_id)
);

-- Next outcome index of each game where the oldest kept day begins.
CREATE TABLE boundary_games (
  game_id integer PRIMARY KEY,
  next_index bigint NOT NULL
);

-- Newest dropped entry of each cell.
CREATE TABLE boundary_cells (
  cell integer PRIMARY KEY,
  entry_id bigint NOT NULL
);

-- Communal progressives where the oldest kept day begins. A game without a row had neither rules nor budget.
CREATE TABLE boundary_pots (
  game_id integer PRIMARY KEY,
  -- The rules in force; 0: none were.
  version integer NOT NULL,
  progress bigint NOT NULL,
  budget_micros bigint NOT NULL,
  -- Players who spin after this id are remembered. Null: the bonus was never enabled.
  recency_from bigint
);

-- Most recent players of a game where the oldest kept day begins.
CREATE TABLE boundary_recency (
  game_id integer NOT NULL,
  player_id text COLLATE "C" NOT NULL,
  spin_id bigint NOT NULL,
  PRIMARY KEY (game_id, player_id)
);

-- Tickets and adjustments of dropped days, whose request ids bind for ever.
CREATE TABLE kept_entries (LIKE ledger, PRIMARY KEY (entry_id));

-- Settlement and return to player --------------------------------------------------------------------------------------------

-- Settlement reports, one row for each revision. A report never changes: `report` is its canonical JSON (RFC 8785), whose SHA-256 is
-- integrity_hash. A later report has a higher report_id (its maker holds the partner's lock), which tells the newest revision of the day
-- before at the time when a report was made.
CREATE TABLE settlement_reports (
  report_id bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  partner_id integer NOT NULL REFERENCES partners,
  report_date date NOT NULL,
  revision integer NOT NULL CHECK (revision > 0),
  -- PENDING: made before all of the day was in the ledger.
  status text NOT NULL CHECK (status IN ('PENDING', 'GENERATED', 'ACKNOWLEDGED', 'DISPUTED')),
  -- All of the day was in the ledger when the report was made; later changes of the status do not touch this.
  is_complete boolean NOT NULL,
  report json NOT NULL,
  integrity_hash text NOT NULL CHECK (integrity_hash ~ '^[0-9a-f]{64}$'),
  acknowledged_at timestamptz,
  disputed_at timestamptz,
  dispute_reason text,
  -- An operator made this revision as the answer to a dispute. False: a worker made it, and the dispute stays open.
  ends_dispute boolean NOT NULL DEFAULT true,
  PRIMARY KEY (partner_id, report_date, revision),
  CHECK ((status = 'ACKNOWLEDGED') = (acknowledged_at IS NOT NULL)),
  CHECK ((status = 'DISPUTED') = (disputed_at IS NOT NULL)),
  CHECK ((status = 'DISPUTED') = (dispute_reason IS NOT NULL))
);
-- Which days are settled.
CREATE INDEX settlement_complete ON settlement_reports (report_date, partner_id) WHERE is_complete;
CREATE INDEX settlement_reports_of_day ON settlement_reports (report_date, partner_id);
CREATE INDEX settlement_reports_disputed ON settlement_reports (report_date) WHERE status = 'DISPUTED';
CREATE FUNCTION keep_settlement_report() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'UPDATE' THEN
    RAISE EXCEPTION 'settlement reports are kept';
  END IF;
  IF OLD.status IN ('ACKNOWLEDGED', 'DISPUTED') THEN
    RAISE EXCEPTION 'an acknowledged or disputed settlement report does not change';
  END IF;
  IF NEW.status NOT IN ('ACKNOWLEDGED', 'DISPUTED')
     OR (NEW.report_id, NEW.partner_id, NEW.report_date, NEW.revision, NEW.is_complete, NEW.report::text, NEW.integrity_hash)
        IS DISTINCT FROM
        (OLD.report_id, OLD.partner_id, OLD.report_date, OLD.revision, OLD.is_complete, OLD.report::text, OLD.integrity_hash)
  THEN
    RAISE EXCEPTION 'of a settlement report only the status changes';
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER keep BEFORE UPDATE OR DELETE ON settlement_reports
  FOR EACH ROW EXECUTE FUNCTION keep_settlement_report();
CREATE TRIGGER keep_all BEFORE TRUNCATE ON settlement_reports
  FOR EACH STATEMENT EXECUTE FUNCTION keep_settlement_report();

-- Days without a complete settlement report that the operator was notified of.
CREATE TABLE settlement_notices (
  report_date date PRIMARY KEY,
  noticed_at timestamptz NOT NULL
);

-- Judgements of a game's return, one for each day and window (docs/reports.md). Rows never change.
CREATE TABLE rtp_records (
  game_id integer NOT NULL REFERENCES games,
  day date NOT NULL,
  span text NOT NULL CHECK (span IN ('ROLLING_30', 'LIFE')),
  from_day date NOT NULL,
  spins numeric(38, 0) NOT NULL,
  wagered_micros numeric(38, 0) NOT NULL,
  paid_micros numeric(38, 0) NOT NULL,
  -- Moments of the sheet, in wagers. Null: the game has no sheet.
  mean double precision,
  sigma double precision,
  skewness double precision,
  z double precision,
  nats double precision,
  state text NOT NULL CHECK (state IN ('NOT_JUDGED', 'ALERT', 'TOO_FEW', 'REVIEW', 'WATCH', 'WITHIN')),
  judged_at timestamptz NOT NULL,
  PRIMARY KEY (game_id, day, span)
);

-- Reviews of a game's return by an operator.
CREATE TABLE rtp_reviews (
  review_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  game_id integer NOT NULL REFERENCES games,
  span text NOT NULL,
  opened_at timestamptz NOT NULL,
  -- The day whose judgement opened the review.
  opened_day date NOT NULL,
  finding text CHECK (finding IN ('CHANCE', 'GAME_ERROR', 'DATA_ERROR')),
  closed_at timestamptz,
  closed_by text,
  CHECK ((finding IS NULL) = (closed_at IS NULL) AND (finding IS NULL) = (closed_by IS NULL))
);
CREATE UNIQUE INDEX rtp_review_open ON rtp_reviews (game_id) WHERE closed_at IS NULL;
CREATE INDEX ON rtp_reviews (game_id);

-- Notes of operators in a review.
CREATE TABLE rtp_review_notes (
  note_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  review_id integer NOT NULL REFERENCES rtp_reviews,
  at timestamptz NOT NULL DEFAULT now(),
  by text NOT NULL,
  text text NOT NULL
);
CREATE INDEX ON rtp_review_notes (review_id);
CREATE FUNCTION keep_rtp() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'records and notes of the return to player are kept';
END
$$;
CREATE FUNCTION keep_rtp_review() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'UPDATE' THEN
    RAISE EXCEPTION 'reviews of the return to player are kept';
  END IF;
  IF OLD.closed_at IS NOT NULL
     OR (NEW.review_id, NEW.game_id, NEW.span, NEW.opened_at, NEW.opened_day)
        IS DISTINCT FROM (OLD.review_id, OLD.game_id, OLD.span, OLD.opened_at, OLD.opened_day)
  THEN
    RAISE EXCEPTION 'a review of the return to player is closed once, and nothing else of it changes';
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER keep BEFORE UPDATE OR DELETE ON rtp_records FOR EACH ROW EXECUTE FUNCTION keep_rtp();
CREATE TRIGGER keep_all BEFORE TRUNCATE ON rtp_records FOR EACH STATEMENT EXECUTE FUNCTION keep_rtp();
CREATE TRIGGER keep BEFORE UPDATE OR DELETE ON rtp_review_notes FOR EACH ROW EXECUTE FUNCTION keep_rtp();
CREATE TRIGGER keep_all BEFORE TRUNCATE ON rtp_review_notes FOR EACH STATEMENT EXECUTE FUNCTION keep_rtp();
CREATE TRIGGER keep BEFORE UPDATE OR DELETE ON rtp_reviews FOR EACH ROW EXECUTE FUNCTION keep_rtp_review();
CREATE TRIGGER keep_all BEFORE TRUNCATE ON rtp_reviews FOR EACH STATEMENT EXECUTE FUNCTION keep_rtp_review();

-- Webhooks ------------------------------------------------------------------------------------------------------------------

-- Webhooks of partners. A deleted one keeps its row and gets no events.
CREATE TABLE webhooks (
  webhook_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partner_id integer NOT NULL REFERENCES partners,
  url text NOT NULL,
  events text[] NOT NULL,
  -- Signing secret, encrypted where the service has a key for that.
  secret text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  deleted_at timestamptz,
  -- An inactive webhook gets no events, and its deliveries wait.
  is_active boolean NOT NULL DEFAULT true,
  -- The secret before the newest rotation, which also signs until previous_secret_until.
  previous_secret text,
  previous_secret_until timestamptz,
  -- Since when every attempt has failed.
  failing_since timestamptz,
  -- Host of the URL: attempts are limited by host, over all webhooks of all partners.
  host text NOT NULL,
  -- Version of the partner API with which the webhook was registered and its deliveries are written.
  api_version text NOT NULL DEFAULT 'v1',
  -- When the service made it inactive. Null: it did not.
  deactivated_at timestamptz,
  CHECK ((previous_secret IS NULL) = (previous_secret_until IS NULL))
);
CREATE INDEX ON webhooks (partner_id);

-- Numbers events in the order of their commits.
CREATE SEQUENCE event_places;

-- Events, written in the transaction of their cause if a webhook or an e-mail address wants them.
CREATE TABLE events (
  event_id text COLLATE "C" PRIMARY KEY,
  -- Null: an e-mail to the operator that concerns no partner.
  partner_id integer REFERENCES partners,
  event text NOT NULL,
  -- Body of every attempt, byte for byte.
  body text NOT NULL,
  created_at timestamptz NOT NULL,
  -- Place in the feed. Each event takes its place at the end of its transaction, under a lock of its partner that is held until the
  -- commit is visible, so that the feed is in the order of the commits.
  place bigint,
  -- Made by POST /webhooks/{id}/test; it is in no feed.
  is_test boolean GENERATED ALWAYS AS (body LIKE '%,"test":true}') STORED
);
CREATE INDEX events_feed ON events (partner_id, place);
CREATE FUNCTION place_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(7310006, NEW.partner_id);
  UPDATE events SET place = nextval('event_places') WHERE event_id = NEW.event_id;
  RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER events_place AFTER INSERT ON events DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION place_event();

-- Deliveries of an event to a webhook or by e-mail; src/webhooks/deliverer.ts describes the states of a row.
CREATE TABLE deliveries (
  -- Begins with its time, so that new rows are at the right edge of the index.
  delivery_id text COLLATE "C" PRIMARY KEY,
  webhook_id integer REFERENCES webhooks,
  event_id text COLLATE "C" NOT NULL REFERENCES events,
  -- unsent: an e-mail without SMTP_URL.
  status text NOT NULL DEFAULT 'pending',
  -- Attempts whose result is known.
  attempts integer NOT NULL DEFAULT 0,
  max_attempts integer NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  last_attempt_at timestamptz,
  next_attempt_at timestamptz DEFAULT now(),
  response_status integer,
  -- Why the last attempt failed.
  last_error text,
  -- Until then a worker has the delivery; the lease of a worker that ended lapses.
  leased_until timestamptz NOT NULL DEFAULT '-infinity',
  -- E-mail address. A delivery has a webhook or a recipient.
  recipient text,
  CHECK ((next_attempt_at IS NOT NULL) = (status = 'pending')),
  CHECK ((webhook_id IS NULL) <> (recipient IS NULL)),
  CONSTRAINT deliveries_status_check CHECK (status IN ('pending', 'delivered', 'failed', 'unsent'))
);
CREATE INDEX ON deliveries (webhook_id, delivery_id);
CREATE INDEX deliveries_due ON deliveries (webhook_id, next_attempt_at) WHERE status = 'pending';
-- A failing webhook retries the deliveries with the fewest attempts left first.
CREATE INDEX deliveries_tried ON deliveries (webhook_id, attempts DESC, next_attempt_at)
  WHERE status = 'pending' AND attempts > 0;
CREATE INDEX deliveries_due_email ON deliveries (next_attempt_at) WHERE status = 'pending' AND webhook_id IS NULL;
CREATE INDEX deliveries_failed ON deliveries (last_attempt_at) WHERE status = 'failed';
-- For the retention. An unsent e-mail has no attempt: it ended when it was written.
CREATE INDEX deliveries_ended ON deliveries (coalesce(last_attempt_at, created_at)) WHERE status <> 'pending';
CREATE INDEX deliveries_event ON deliveries (event_id);

-- Attempts of each partner to each host in the present minute. The limit applies to all partners together.
CREATE TABLE webhook_hosts (
  host text NOT NULL,
  partner_id integer NOT NULL REFERENCES partners,
  -- Minutes since the epoch, and the attempts that began in it.
  minute bigint NOT NULL,
  attempts integer NOT NULL,
  PRIMARY KEY (host, partner_id)
);
CREATE INDEX webhook_hosts_minute ON webhook_hosts (minute);

-- Recent results of each webhook's receiver. The back-off is by webhook, so that a dead one does not delay others on its host.
CREATE TABLE webhook_endpoints (
  webhook_id integer PRIMARY KEY REFERENCES webhooks,
  -- Minutes since the epoch, and the attempts that began in it, which decide whose turn is next.
  minute bigint NOT NULL,
  attempts integer NOT NULL,
  -- Failed attempts since the last success, and the earliest time of the next attempt.
  failures integer NOT NULL DEFAULT 0,
  not_before timestamptz NOT NULL DEFAULT '-infinity',
  -- Why the newest failed attempt failed.
  last_error text
);

-- Public log ----------------------------------------------------------------------------------------------------------------

-- The public log and those that it replaced. The one with the highest number is in force.
CREATE TABLE logs (
  log_id smallint PRIMARY KEY,
  origin text NOT NULL,
  -- Keys of its checkpoints that are in force, newest first, as vkeys.
  vkeys text[] NOT NULL,
  -- Signer key, sealed, if neither a setting nor a file has it.
  signer text,
  size bigint NOT NULL,
  root bytea NOT NULL,
  begun_at timestamptz NOT NULL DEFAULT now(),
  -- Witnesses, groups and quorum of LOG_POLICY, served at /log/policy. Null: there is no policy.
  policy text,
  -- Why nothing more is appended, and the note that proves it: it has the log's signature and another tree.
  halt text,
  halt_note text,
  halted_at timestamptz,
  -- The fault was found at a start: this database may be of an older state, and nothing is dealt.
  is_held boolean NOT NULL DEFAULT false,
  -- Another log has begun: nothing more is appended to this one.
  is_replaced boolean NOT NULL DEFAULT false,
  CONSTRAINT logs_halt CHECK ((halt IS NULL) = (halt_note IS NULL) AND (halt IS NOT NULL OR NOT is_held))
);

-- Level -1: bundles of 256 records. Level 0 and above: tiles of 256 hashes. The last one of each level grows.
CREATE TABLE log_tiles (
  log_id smallint NOT NULL REFERENCES logs,
  level smallint NOT NULL,
  index bigint NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (log_id, level, index)
);
ALTER TABLE log_tiles ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- Checkpoints as signed notes. An unpublished one may be signed again; it leaves no process before it is published.
CREATE TABLE log_checkpoints (
  log_id smallint NOT NULL REFERENCES logs,
  size bigint NOT NULL,
  note text NOT NULL,
  signed_at timestamptz NOT NULL DEFAULT now(),
  published_at timestamptz,
  -- A settlement report quotes the checkpoint.
  is_named boolean NOT NULL DEFAULT false,
  -- Number of cosignatures in the note.
  cosignatures smallint NOT NULL DEFAULT 0,
  PRIMARY KEY (log_id, size)
);

-- Games in the public log.
CREATE TABLE log_games (
  game_id integer PRIMARY KEY REFERENCES games,
  next_number bigint NOT NULL,
  -- 32 bytes, made when the first entry is appended.
  label_key bytea,
  -- Hash of the sheet, prize table or rules.
  math_hash bytea
);

-- Entries of games: sealed outcomes and voids. Their records are made from these rows and from `blocks`.
CREATE TABLE log_entries (
  game_id integer NOT NULL REFERENCES log_games,
  number bigint NOT NULL,
  -- 1 block, 2 pool, 3 shoes, 4 void, 5 lost.
  kind smallint NOT NULL,
  -- Outcome indices; numbers of entries for a lost one.
  from_index bigint NOT NULL,
  to_index bigint NOT NULL,
  at timestamptz(3) NOT NULL,
  is_late boolean NOT NULL DEFAULT false,
  reason text,
  -- Order of the entries that wait to be appended.
  queued bigint GENERATED ALWAYS AS IDENTITY,
  -- Null until the entry is appended.
  salt bytea,
  log_id smallint,
  log_index bigint,
  logged_at timestamptz(3),
  PRIMARY KEY (game_id, number)
);
CREATE INDEX log_entries_waiting ON log_entries (queued) WHERE log_index IS NULL;
-- Returns the kind of entry that a game's sealed outcomes have.
CREATE FUNCTION log_kind(game integer) RETURNS integer LANGUAGE sql STABLE AS $$
  SELECT CASE game_type WHEN 'slot' THEN 1 WHEN 'raffle' THEN 2 ELSE 3 END FROM games WHERE game_id = game
$$;
-- Inserts a game's next entry and returns its number. The row of the game stays locked until the transaction ends, so that numbers have
-- no gap.
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
-- Every void is logged.
CREATE FUNCTION log_void() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM next_log_entry(NEW.game_id, 4, NEW.from_index, NEW.to_index, NEW.voided_at, false, NEW.reason);
  RETURN NULL;
END
$$;
CREATE TRIGGER voids_are_logged AFTER INSERT ON voids FOR EACH ROW EXECUTE FUNCTION log_void();

-- Public records that belong to no game (docs/proofs.md): written here first, appended by any worker.
CREATE TABLE log_notices (
  notice_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- Name of the record, for example `audit 2026-11-24`; each is logged once.
  name text NOT NULL UNIQUE,
  -- The JSON object that is logged.
  body jsonb NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  log_id integer REFERENCES logs,
  log_index bigint
);
CREATE INDEX log_notices_waiting ON log_notices (notice_id) WHERE log_index IS NULL;

-- State of each witness as the workers know it.
CREATE TABLE log_witnesses (
  log_id smallint NOT NULL REFERENCES logs,
  vkey text NOT NULL,
  -- Size of the newest checkpoint that the witness is known to have.
  size bigint NOT NULL DEFAULT 0,
  known_at timestamptz NOT NULL DEFAULT now(),
  cosigned_at timestamptz,
  -- Why it did not cosign at the last attempt. Null: it cosigned, or did not answer.
  refusal text,
  -- Earliest time of the next attempt.
  not_before timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (log_id, vkey)
);

-- Lease of the round in which one worker asks all witnesses to cosign the same checkpoint.
CREATE TABLE log_rounds (
  log_id smallint PRIMARY KEY REFERENCES logs,
  holder text NOT NULL,
  -- Earliest time of the next round.
  until timestamptz NOT NULL
);

-- Records that a log took over from its copy, because this database was restored to a state before them.
CREATE TABLE log_imports (
  log_id smallint NOT NULL REFERENCES logs,
  from_index bigint NOT NULL,
  to_index bigint NOT NULL,
  -- Records of games that this database does not have.
  strangers bigint NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (log_id, from_index)
);
