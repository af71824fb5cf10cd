-- Up to where the newest rotation of a game voids its outcomes, exclusive. While the ledger has not come that far, no block of the
-- game is leased: the void is logged before it.
ALTER TABLE games ADD COLUMN rotating_to bigint;
