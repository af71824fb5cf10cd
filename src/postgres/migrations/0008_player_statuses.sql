-- Up Migration

-- The players whose status an operator has changed (author and earlier changes are in audit_log). Redis has a copy in the
-- player's record, which a rebuild makes of this.
CREATE TABLE player_statuses (
  partner_id integer NOT NULL REFERENCES partners,
  player_id text COLLATE "C" NOT NULL,
  status text NOT NULL CHECK (status IN ('ACTIVE', 'BLOCKED')),
  reason text NOT NULL,
  -- Counts the changes: Redis takes none that is older than the one it has (lua/setPlayerStatus.lua).
  change integer NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, player_id)
);
