-- Up Migration

-- How the return of a game was judged, once a day and window (docs/rtp.md). A row is never changed.
CREATE TABLE rtp_records (
  game_id integer NOT NULL REFERENCES games,
  day date NOT NULL,
  span text NOT NULL CHECK (span IN ('ROLLING_30', 'LIFE')),
  from_day date NOT NULL,
  spins numeric(38, 0) NOT NULL,
  wagered_micros numeric(38, 0) NOT NULL,
  paid_micros numeric(38, 0) NOT NULL,
  -- Of the sheet, in wagers; null where the game has none.
  mean double precision,
  sigma double precision,
  skewness double precision,
  z double precision,
  nats double precision,
  state text NOT NULL CHECK (state IN ('NOT_JUDGED', 'ALERT', 'TOO_FEW', 'REVIEW', 'WATCH', 'WITHIN')),
  judged_at timestamptz NOT NULL,
  PRIMARY KEY (game_id, day, span)
);

CREATE TABLE rtp_reviews (
  review_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  game_id integer NOT NULL REFERENCES games,
  span text NOT NULL,
  opened_at timestamptz NOT NULL,
  -- The day whose judgement opened it.
  opened_day date NOT NULL,
  finding text CHECK (finding IN ('CHANCE', 'GAME_ERROR', 'DATA_ERROR')),
  closed_at timestamptz,
  closed_by text,
  CHECK ((finding IS NULL) = (closed_at IS NULL) AND (finding IS NULL) = (closed_by IS NULL))
);
CREATE UNIQUE INDEX rtp_review_open ON rtp_reviews (game_id) WHERE closed_at IS NULL;
CREATE INDEX ON rtp_reviews (game_id);

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
CREATE TRIGGER keep BEFORE UPDATE OR DELETE ON rtp_records FOR EACH ROW EXECUTE FUNCTION keep_rtp();
CREATE TRIGGER keep_all BEFORE TRUNCATE ON rtp_records FOR EACH STATEMENT EXECUTE FUNCTION keep_rtp();
CREATE TRIGGER keep BEFORE UPDATE OR DELETE ON rtp_review_notes FOR EACH ROW EXECUTE FUNCTION keep_rtp();
CREATE TRIGGER keep_all BEFORE TRUNCATE ON rtp_review_notes FOR EACH STATEMENT EXECUTE FUNCTION keep_rtp();

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
CREATE TRIGGER keep BEFORE UPDATE OR DELETE ON rtp_reviews FOR EACH ROW EXECUTE FUNCTION keep_rtp_review();
CREATE TRIGGER keep_all BEFORE TRUNCATE ON rtp_reviews FOR EACH STATEMENT EXECUTE FUNCTION keep_rtp_review();
