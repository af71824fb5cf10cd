-- Up Migration

-- The audit log is a chain: each entry's hash is SHA-256 over the hash before it (none: empty) and the entry's members, each
-- as `<bytes>:<text>`, null as `-` (src/postgres/auditChain.ts checks it). Entries are numbered without a gap.
ALTER TABLE audit_log ADD COLUMN hash bytea;

CREATE FUNCTION audit_text(value text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN value IS NULL THEN '-' ELSE octet_length(value) || ':' || value END
$$;
CREATE FUNCTION audit_hash(previous bytea, e audit_log) RETURNS bytea LANGUAGE sql STABLE AS $$
  SELECT sha256(coalesce(previous, ''::bytea) || convert_to(
    audit_text(e.audit_id::text) || audit_text(to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))
    || audit_text(e.actor) || audit_text(e.action) || audit_text(e.subject) || audit_text(e.before::text)
    || audit_text(e.after::text), 'UTF8'))
$$;

-- What is there already is taken into the chain.
DO $$
DECLARE
  entry audit_log;
  previous bytea;
BEGIN
  FOR entry IN SELECT * FROM audit_log ORDER BY audit_id LOOP
    previous := audit_hash(previous, entry);
    UPDATE audit_log SET hash = previous WHERE audit_id = entry.audit_id;
  END LOOP;
END
$$;
ALTER TABLE audit_log ALTER COLUMN hash SET NOT NULL;

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
CREATE TRIGGER chain BEFORE INSERT ON audit_log FOR EACH ROW EXECUTE FUNCTION chain_audit_entry();

CREATE FUNCTION keep_audit_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the audit log is kept: entries are neither changed nor removed';
END
$$;
CREATE TRIGGER keep BEFORE UPDATE OR DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION keep_audit_log();
CREATE TRIGGER keep_all BEFORE TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION keep_audit_log();
