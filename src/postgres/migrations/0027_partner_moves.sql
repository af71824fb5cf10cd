-- Up Migration

-- Moves of partners from cell to cell. The old cell's owner carries one out (src/recovery/partnerMove.ts).
CREATE TABLE partner_moves (
  move_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partner_id integer NOT NULL REFERENCES partners,
  from_cell integer NOT NULL REFERENCES cells,
  to_cell integer NOT NULL REFERENCES cells CHECK (to_cell <> from_cell),
  requested_at timestamptz NOT NULL DEFAULT now(),
  -- No entry of the partner's in the old cell is after this one; its request ids up to here are in the old cell's runs.
  until_id bigint,
  switched_at timestamptz,
  -- The old cell holds nothing of the partner any more; or the move was given up, with the reason.
  finished_at timestamptz,
  failure text,
  CHECK ((switched_at IS NULL) = (until_id IS NULL))
);
CREATE INDEX ON partner_moves (partner_id);
CREATE UNIQUE INDEX partner_moves_open ON partner_moves (partner_id) WHERE finished_at IS NULL;
