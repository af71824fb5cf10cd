-- Up Migration

-- Whether the missing copy is there, but can't be read.
ALTER TABLE outside_copies ADD COLUMN is_unreadable boolean NOT NULL DEFAULT false;
-- Whether Postgres has all that the position file records, so that it may have its newest state. An operator who is certain of that may
-- give the file up.
ALTER TABLE restored_positions ADD COLUMN may_be_newest boolean NOT NULL DEFAULT false;
