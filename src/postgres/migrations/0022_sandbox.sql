-- Up Migration

-- The other side of forced spins (docs/sandbox.md): each game's account by day, apart from game_days and its totals.
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

-- A ledger entry of kind 9: the sandbox account of the game takes the wager and pays credit_micros.
CREATE OR REPLACE VIEW postings AS
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
