-- Up Migration

-- Operators with the role support. Their column `role` has auditor, because a version that does not know the role support must not
-- permit them more than reads.
ALTER TABLE operators ADD COLUMN is_support boolean NOT NULL DEFAULT false CHECK (NOT is_support OR role = 'auditor');
