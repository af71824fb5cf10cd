-- Up Migration

-- Why a game is suspended; null: the operator suspended it. RESTORED: Postgres was restored to an older state, and tickets of the
-- raffle may have been shown that this database does not have.
ALTER TABLE games ADD COLUMN status_reason text CHECK (status_reason IN ('RESTORED'));
ALTER TABLE games ADD CONSTRAINT games_reason_of_suspension CHECK (status_reason IS NULL OR status = 'SUSPENDED');
