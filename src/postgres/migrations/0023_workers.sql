-- The workers that are there, so that each knows its share of the cells.

CREATE TABLE workers (
  -- As in cells.owner.
  owner text PRIMARY KEY,
  -- Those that came first get what the cells can't be divided by.
  since timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Prolonged while the worker is able to write cells.
  alive_until timestamptz NOT NULL
);
