-- Up Migration

-- Highest version of communal rules that was ever recorded for a game, also if it was withdrawn. 0: none since this column exists.
ALTER TABLE games ADD COLUMN communal_version integer NOT NULL DEFAULT 0;
