-- Up Migration

-- The rules of a game's communal progressive, a row for each version (docs/communal.md). A version is on record before Redis
-- puts it in force.
CREATE TABLE communal_rules (
  game_id integer NOT NULL REFERENCES games,
  version integer NOT NULL CHECK (version > 0),
  rules json NOT NULL,
  resets_progress boolean NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Id of the note that put it in force: it holds for the spins after it. Null: that is not booked.
  in_force_from bigint,
  PRIMARY KEY (game_id, version)
);

-- Where the pot of a game stands, as far as it is booked.
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

-- The players who spun a game last, no more than a community can have.
CREATE TABLE communal_recency (
  game_id integer NOT NULL,
  player_id text COLLATE "C" NOT NULL,
  spin_id bigint NOT NULL,
  PRIMARY KEY (game_id, player_id)
);

-- Changes of budgets: on record before they take effect. A row without an id is one that is under way, or was given up.
CREATE TABLE communal_fundings (
  game_id integer NOT NULL REFERENCES games,
  request_id text COLLATE "C" NOT NULL,
  funding_id bigint GENERATED ALWAYS AS IDENTITY,
  amount_micros bigint NOT NULL CHECK (amount_micros <> 0),
  reason text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Of its note, whose time is that of the funding.
  note_id bigint UNIQUE,
  -- After it.
  budget_micros bigint,
  PRIMARY KEY (game_id, request_id),
  CHECK ((note_id IS NULL) = (budget_micros IS NULL))
);

-- What fired. Its id is that of the spin that fired it.
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

-- What an event paid: a row for each ledger entry of kind 4.
CREATE TABLE communal_shares (
  entry_id bigint PRIMARY KEY,
  event_id bigint NOT NULL,
  game_id integer NOT NULL,
  partner_id integer NOT NULL,
  player_id text COLLATE "C" NOT NULL,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  is_trigger boolean NOT NULL,
  -- Entry of the spin that told it. Null: its player is still to be told.
  told_by bigint UNIQUE
);
CREATE INDEX ON communal_shares (event_id);
CREATE INDEX ON communal_shares (partner_id, player_id, entry_id);
CREATE INDEX communal_untold ON communal_shares (entry_id) WHERE told_by IS NULL;

-- The other side of the shares: each pot's account by day.
CREATE TABLE communal_days (
  game_id integer NOT NULL,
  day date NOT NULL,
  partner_id integer NOT NULL,
  shares bigint NOT NULL,
  paid_micros numeric(38, 0) NOT NULL,
  PRIMARY KEY (game_id, day)
);
CREATE INDEX ON communal_days (partner_id, day);

-- A ledger entry of kind 4: the pot of the game pays credit_micros to the player. A funding has its postings here, too.
CREATE OR REPLACE VIEW postings AS
  SELECT entry_id, 'player:' || partner_id || ':' || player_id AS account,
         CASE WHEN kind IN (1, 6, 7, 8) THEN credit_micros - wager_micros ELSE credit_micros END AS amount_micros
    FROM ledger
  UNION ALL
  SELECT entry_id,
         CASE kind WHEN 1 THEN 'game:' || game_id WHEN 6 THEN 'game:' || game_id WHEN 7 THEN 'game:' || game_id
                   WHEN 8 THEN 'game:' || game_id WHEN 3 THEN 'adjustment:' || partner_id
                   WHEN 4 THEN 'communal:' || game_id ELSE 'opening:' || partner_id END,
         CASE WHEN kind IN (1, 6, 7, 8) THEN wager_micros - credit_micros ELSE -credit_micros END
    FROM ledger
  UNION ALL
  SELECT note_id, 'communal:' || game_id, amount_micros FROM communal_fundings WHERE note_id IS NOT NULL
  UNION ALL
  SELECT note_id, 'operator', -amount_micros FROM communal_fundings WHERE note_id IS NOT NULL;
