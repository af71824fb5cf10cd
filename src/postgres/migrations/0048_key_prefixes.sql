-- Up Migration

-- How a key begins, by which it is recognised; no secret: 37 of its 43 random characters stay. Null: the key was made before.
ALTER TABLE api_keys ADD COLUMN prefix text CHECK (prefix ~ '^ks_[\w-]{6}$');
ALTER TABLE operators ADD COLUMN prefix text CHECK (prefix ~ '^kso_[\w-]{6}$');

-- A version that knows no prefixes gives an operator another key: the prefix of the one before is not that of the new one.
CREATE FUNCTION forget_prefix() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.key_hash <> OLD.key_hash AND NEW.prefix IS NOT DISTINCT FROM OLD.prefix THEN
    NEW.prefix := NULL;
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER forget_prefix BEFORE UPDATE OF key_hash ON operators FOR EACH ROW EXECUTE FUNCTION forget_prefix();
