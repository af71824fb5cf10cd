-- Up Migration

-- This revision ends a dispute of an earlier one: an operator answered it. False: a worker made it, and the dispute stays open.
-- Revisions that were there before count as answers, as those of a version that does not write the column.
ALTER TABLE settlement_reports ADD COLUMN ends_dispute boolean NOT NULL DEFAULT true;
