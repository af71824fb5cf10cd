-- Up Migration

-- When a worker first saw that every index of a block is booked or given up. Of slot games the outcomes leave 90 days later: they are
-- empty then, and the PAR sheet and the seed give them again (docs/retention.md). To look for either is quick: few blocks are in the indexes.
ALTER TABLE blocks ADD COLUMN exhausted_at timestamptz;
CREATE INDEX blocks_not_exhausted ON blocks (game_id, to_index) WHERE exhausted_at IS NULL;
CREATE INDEX blocks_with_outcomes ON blocks (exhausted_at) WHERE exhausted_at IS NOT NULL AND octet_length(outcomes) > 0;
