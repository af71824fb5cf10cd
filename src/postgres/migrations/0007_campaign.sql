-- Up Migration

-- The partner's campaign that led to a spin; null if the spin has none.
ALTER TABLE ledger ADD COLUMN campaign text COLLATE "C";
ALTER TABLE kept_entries ADD COLUMN campaign text COLLATE "C";
