-- The keys with which a running process seals: ids, not the keys. '': it seals nothing; null: an earlier version, which does not say.
ALTER TABLE processes ADD COLUMN seeds_key text, ADD COLUMN secrets_key text;
