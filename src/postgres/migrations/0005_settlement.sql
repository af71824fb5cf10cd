-- Up Migration

-- Settlement reports, one row a revision. What a report says is never written again: `report` is its canonical JSON
-- (RFC 8785), the very bytes that integrity_hash is the SHA-256 of. What was made later has a higher report_id (makers
-- hold the partner's lock), so that it can be told which revision of the day before was the newest when a report was made.
CREATE TABLE settlement_reports (
  report_id bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  partner_id integer NOT NULL REFERENCES partners,
  report_date date NOT NULL,
  revision integer NOT NULL CHECK (revision > 0),
  -- PENDING: made before all of the day was in the ledger.
  status text NOT NULL CHECK (status IN ('PENDING', 'GENERATED', 'ACKNOWLEDGED', 'DISPUTED')),
  -- All of the day was in the ledger, whatever the status became.
  is_complete boolean NOT NULL,
  report json NOT NULL,
  integrity_hash text NOT NULL CHECK (integrity_hash ~ '^[0-9a-f]{64}$'),
  acknowledged_at timestamptz,
  disputed_at timestamptz,
  dispute_reason text,
  PRIMARY KEY (partner_id, report_date, revision),
  CHECK ((status = 'ACKNOWLEDGED') = (acknowledged_at IS NOT NULL)),
  CHECK ((status = 'DISPUTED') = (disputed_at IS NOT NULL)),
  CHECK ((status = 'DISPUTED') = (dispute_reason IS NOT NULL))
);

-- Which days are settled.
CREATE INDEX settlement_complete ON settlement_reports (report_date, partner_id) WHERE is_complete;

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

-- A partner's first day. Inserted once a game and day: what a flush updates is in no index.
CREATE INDEX ON game_days (partner_id, day);
