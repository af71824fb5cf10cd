-- Up Migration

-- Who chose the outcome of a spin: `tester`; null where it was the next one of the queue, and in entries of earlier versions.
ALTER TABLE ledger ADD COLUMN chosen_by text COLLATE "C";
ALTER TABLE kept_entries ADD COLUMN chosen_by text COLLATE "C";
