-- The newest entry of each cell that front ends say they have answered, and the number of the epoch that it was made under. A Redis that lacks it
-- is an older copy: the cell is rebuilt, also where the front ends were started again since. One row a cell.
CREATE TABLE answered_entries (
  cell int PRIMARY KEY REFERENCES cells,
  epoch bigint NOT NULL,
  entry_id bigint NOT NULL,
  -- A call was refused because the cell lacked the entry: its owner is to look again.
  is_lacking boolean NOT NULL DEFAULT false
);
