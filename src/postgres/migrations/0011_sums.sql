-- Up Migration

-- Sums of amounts are numeric: as 8-byte integers they could overflow, and then no flush of the cell could be committed.
ALTER TABLE game_days
  ALTER COLUMN wagered_micros TYPE numeric(38, 0),
  ALTER COLUMN paid_micros TYPE numeric(38, 0);
ALTER TABLE opening_days ALTER COLUMN opened_micros TYPE numeric(38, 0);
ALTER TABLE adjustment_days ALTER COLUMN amount_micros TYPE numeric(38, 0);
