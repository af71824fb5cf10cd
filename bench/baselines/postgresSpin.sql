-- The Postgres baseline: everything that a spin reads and writes, and the function that does it in one transaction.
-- Rows that are written again and again leave room in their pages, so that an update touches no index (HOT).

CREATE TABLE windows (
  partner_id integer PRIMARY KEY, minute bigint NOT NULL, used integer NOT NULL) WITH (fillfactor = 10);

CREATE TABLE games (
  game_id integer PRIMARY KEY, next_index bigint NOT NULL DEFAULT 0) WITH (fillfactor = 10);

CREATE TABLE players (
  player_id text PRIMARY KEY, balance_micros bigint NOT NULL) WITH (fillfactor = 70);

-- Made beforehand, in the order in which they are dealt.
CREATE TABLE outcomes (
  game_id integer NOT NULL, outcome_index bigint NOT NULL, outcome integer NOT NULL, payout_micros bigint NOT NULL,
  PRIMARY KEY (game_id, outcome_index));

CREATE TABLE spins (
  spin_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT now(),
  game_id integer NOT NULL, outcome_index bigint NOT NULL, outcome integer NOT NULL, player_id text NOT NULL,
  wager_micros bigint NOT NULL, payout_micros bigint NOT NULL, balance_micros bigint NOT NULL,
  request_id text UNIQUE);

CREATE TYPE dealt AS (status text, used integer, spin_id bigint, outcome integer, balance_micros bigint);

CREATE FUNCTION spin(
  p_partner integer, p_limit integer, p_minute bigint, p_game integer, p_player text, p_wager bigint, p_opening bigint,
  p_request text) RETURNS dealt LANGUAGE plpgsql AS $$
DECLARE
  result dealt;
  bound spins;
  at_index bigint;
  payout bigint;
BEGIN
  INSERT INTO windows AS w VALUES (p_partner, p_minute, 1)
  ON CONFLICT (partner_id) DO UPDATE
    SET minute = p_minute, used = CASE WHEN w.minute = p_minute THEN w.used + 1 ELSE 1 END
  RETURNING w.used INTO result.used;
  IF result.used > p_limit THEN
    result.status := 'limited';
    RETURN result;
  END IF;

  IF p_request IS NOT NULL THEN
    SELECT * INTO bound FROM spins WHERE request_id = p_request;
    IF FOUND THEN
      IF (bound.game_id, bound.player_id, bound.wager_micros) <> (p_game, p_player, p_wager) THEN
        result.status := 'conflict';
        RETURN result;
      END IF;
      result := ('dealt', result.used, bound.spin_id, bound.outcome, bound.balance_micros);
      RETURN result;
    END IF;
  END IF;

  -- The next outcome in order, and none skipped: whoever comes next waits until this transaction has ended.
  UPDATE games SET next_index = next_index + 1 WHERE game_id = p_game RETURNING next_index - 1 INTO at_index;
  SELECT o.outcome, o.payout_micros INTO result.outcome, payout
  FROM outcomes o WHERE o.game_id = p_game AND o.outcome_index = at_index;
  IF NOT FOUND THEN
    UPDATE games SET next_index = at_index WHERE game_id = p_game;
    result.status := 'exhausted';
    RETURN result;
  END IF;

  INSERT INTO players AS p VALUES (p_player, p_opening - p_wager + payout)
  ON CONFLICT (player_id) DO UPDATE SET balance_micros = p.balance_micros - p_wager + payout
  RETURNING p.balance_micros INTO result.balance_micros;

  INSERT INTO spins (game_id, outcome_index, outcome, player_id, wager_micros, payout_micros, balance_micros, request_id)
  VALUES (p_game, at_index, result.outcome, p_player, p_wager, payout, result.balance_micros, p_request)
  RETURNING spin_id INTO result.spin_id;
  result.status := 'dealt';
  RETURN result;
END $$;
