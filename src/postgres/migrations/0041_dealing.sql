-- Up Migration

-- Whether anything is dealt at all: one row. Off: spins, tickets and deals are refused everywhere.
CREATE TABLE dealing (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  is_on boolean NOT NULL DEFAULT true,
  -- Of the newest change; null: it was never changed.
  reason text,
  actor text,
  changed_at timestamptz,
  -- 0: never, so that nobody reads it before.
  changed bigint NOT NULL DEFAULT 0
);
INSERT INTO dealing DEFAULT VALUES;

ALTER TABLE partners ADD COLUMN is_dealing boolean NOT NULL DEFAULT true;

-- Changes of many games at once, of which each partner is to be told: written with the change, worked off piece by piece, in order.
CREATE TABLE game_status_notices (
  notice_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL,
  status text NOT NULL,
  reason text NOT NULL,
  -- By partner and id.
  game_ids integer[] NOT NULL,
  told integer NOT NULL DEFAULT 0
);
