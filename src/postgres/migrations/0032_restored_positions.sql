-- Position files (POSITION_FILE) that say more than the stores have: the stores were restored. While a row is not accepted nothing is
-- dealt; `spindle recover --restored` accepts it, and the worker that has the file begins another one.
CREATE TABLE restored_positions (
  position_id uuid PRIMARY KEY,
  reason text NOT NULL,
  found_at timestamptz NOT NULL DEFAULT now(),
  accepted_at timestamptz
);
