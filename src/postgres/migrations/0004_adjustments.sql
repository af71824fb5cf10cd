-- Up Migration

-- What an operator asked for: author and reason of every adjustment (the author is in audit_log), written before its
-- effect. A row without an effect in the ledger is one that is under way, or was given up: its repetition does it. One that
-- was refused is removed, and the audit log says so.
CREATE TABLE adjustments (
  partner_id integer NOT NULL REFERENCES partners,
  request_id text COLLATE "C" NOT NULL,
  -- In the order in which they are made: what comes of an intent is decided once (lua/adjust.lua).
  intent_id bigint GENERATED ALWAYS AS IDENTITY,
  player_id text COLLATE "C" NOT NULL,
  amount_micros bigint NOT NULL CHECK (amount_micros <> 0),
  reason text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, request_id)
);

-- The other side of adjustments: each partner's account by day.
CREATE TABLE adjustment_days (
  partner_id integer NOT NULL,
  day date NOT NULL,
  adjustments bigint NOT NULL,
  amount_micros bigint NOT NULL,
  PRIMARY KEY (partner_id, day)
);

-- A ledger entry of kind 3: the partner's adjustment account pays credit_micros (of either sign) to the player.
-- Spins have no entry in this index.
CREATE INDEX ledger_adjustment ON ledger (partner_id, request_id) WHERE kind = 3;

CREATE OR REPLACE VIEW postings AS
  SELECT entry_id, 'player:' || partner_id || ':' || player_id AS account,
         CASE kind WHEN 1 THEN credit_micros - wager_micros ELSE credit_micros END AS amount_micros
    FROM ledger
  UNION ALL
  SELECT entry_id,
         CASE kind WHEN 1 THEN 'game:' || game_id WHEN 3 THEN 'adjustment:' || partner_id ELSE 'opening:' || partner_id END,
         CASE kind WHEN 1 THEN wager_micros - credit_micros ELSE -credit_micros END
    FROM ledger;
