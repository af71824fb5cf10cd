-- Up Migration

-- What a partner may register of each kind; what the operator makes does not count.
ALTER TABLE partners
  ADD COLUMN max_games integer NOT NULL DEFAULT 1000,
  ADD COLUMN max_par_sheets integer NOT NULL DEFAULT 1000,
  ADD COLUMN max_webhooks integer NOT NULL DEFAULT 50;
CREATE INDEX games_of_partner ON games (partner_id, game_type);

-- What a list shows of a sheet, so that it need not read the sheets themselves.
ALTER TABLE par_sheets
  ADD COLUMN game_title text,
  ADD COLUMN num_reels integer,
  ADD COLUMN certified_rtp float8,
  ADD COLUMN symbol_count integer,
  ADD COLUMN tier_count integer,
  ADD COLUMN combination_count integer;
UPDATE par_sheets SET game_title = sheet->>'gameTitle', num_reels = (sheet->>'numReels')::integer,
  certified_rtp = (sheet->>'certifiedRtp')::float8, symbol_count = json_array_length(sheet->'symbols'),
  tier_count = json_array_length(sheet->'tiers'), combination_count = json_array_length(sheet->'combinations');
ALTER TABLE par_sheets
  ALTER COLUMN game_title SET NOT NULL,
  ALTER COLUMN num_reels SET NOT NULL,
  ALTER COLUMN certified_rtp SET NOT NULL,
  ALTER COLUMN symbol_count SET NOT NULL,
  ALTER COLUMN tier_count SET NOT NULL,
  ALTER COLUMN combination_count SET NOT NULL;
