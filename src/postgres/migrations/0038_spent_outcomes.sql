-- Up Migration

-- When a worker first saw that every index of a block is booked or given up. Of slot games the outcomes leave 90 days later: they are
-- empty then, and the PAR sheet and the seed give them again (docs/retention.md). Its indexes are made beside live traffic, after the
-- migrations: src/postgres/concurrentIndexes.ts.
ALTER TABLE blocks ADD COLUMN exhausted_at timestamptz;
