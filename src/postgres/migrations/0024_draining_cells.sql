-- Up Migration

-- A cell that drains takes no new partners.
ALTER TABLE cells ADD COLUMN is_draining boolean NOT NULL DEFAULT false;
