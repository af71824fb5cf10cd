-- The key that seed, nonce and outcomes of a block are encrypted with, itself sealed with a key that is not in the database
-- (src/postgres/blockSeals.ts). Null: they are not encrypted.
ALTER TABLE blocks ADD COLUMN sealed text;
