-- Up Migration

ALTER TABLE games DROP CONSTRAINT games_game_type_check;
ALTER TABLE games ADD CONSTRAINT games_game_type_check CHECK (game_type IN ('slot', 'raffle', 'blackjack'));

-- A blackjack table: a game that is played in rounds. Its shoes are rows of `blocks`: outcomes are what each deal comes to by
-- itself (src/domain/games/table.ts), the seed is that of each shoe, 32 bytes, in order.
CREATE TABLE blackjack_tables (
  game_id integer PRIMARY KEY REFERENCES games,
  wager_micros bigint NOT NULL CHECK (wager_micros > 0),
  -- RFC 8785 text (json, not jsonb): what the rules' hash is of.
  rules json NOT NULL,
  round_timeout_s integer NOT NULL CHECK (round_timeout_s > 0)
);

-- What the ledger's entries of rounds (kinds 6 to 8) make of each round, written with them: rules + shoe + moves are its state.
CREATE TABLE rounds (
  game_id integer NOT NULL,
  shoe_index bigint NOT NULL,
  partner_id integer NOT NULL,
  player_id text COLLATE "C" NOT NULL,
  request_id text COLLATE "C",
  deal_id bigint NOT NULL,
  status text NOT NULL CHECK (status IN ('OPEN', 'SETTLED', 'VOIDED')),
  -- As src/domain/games/round.ts codes them.
  moves smallint[] NOT NULL DEFAULT '{}',
  -- Of each entry, the deal's first: its id, what it wagered, the player's balance after it.
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
-- What is open is little, and is asked for all the time.
CREATE INDEX rounds_open ON rounds (expires_at) WHERE status = 'OPEN';

-- Ledger entries of kind 6 (deal), 7 (action) and 8 (void) move money between player and game as spins do.
CREATE OR REPLACE VIEW postings AS
  SELECT entry_id, 'player:' || partner_id || ':' || player_id AS account,
         CASE WHEN kind IN (1, 6, 7, 8) THEN credit_micros - wager_micros ELSE credit_micros END AS amount_micros
    FROM ledger
  UNION ALL
  SELECT entry_id,
         CASE kind WHEN 1 THEN 'game:' || game_id WHEN 6 THEN 'game:' || game_id WHEN 7 THEN 'game:' || game_id
                   WHEN 8 THEN 'game:' || game_id WHEN 3 THEN 'adjustment:' || partner_id
                   ELSE 'opening:' || partner_id END,
         CASE WHEN kind IN (1, 6, 7, 8) THEN wager_micros - credit_micros ELSE -credit_micros END
    FROM ledger;
