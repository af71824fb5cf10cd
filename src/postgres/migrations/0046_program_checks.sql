-- Up Migration

-- What each process found of its own files (docs/operations.md, "The program check"). A row is never changed.
CREATE TABLE program_checks (
  check_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Of the process, and what it does, such as `http,worker`.
  host text NOT NULL,
  roles text NOT NULL,
  -- The program itself, or the packages beside it.
  part text NOT NULL CHECK (part IN ('program', 'packages')),
  -- Before anything was dealt.
  is_start boolean NOT NULL,
  version text NOT NULL,
  -- SHA-256 of the list of files, hexadecimal; null: there is none, and nothing was compared.
  manifest text CHECK (manifest ~ '^[0-9a-f]{64}$'),
  files integer NOT NULL,
  scripts integer NOT NULL,
  differing integer NOT NULL,
  -- The first hundred of them: [{"path": …, "what": …}].
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

-- What an e-mail tells the operator may be of no partner.
ALTER TABLE events ALTER COLUMN partner_id DROP NOT NULL;
