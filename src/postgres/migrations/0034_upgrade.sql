-- Up Migration

-- The format in which processes write what they share, and which of them run: so that neighbouring versions can run side by side.
ALTER TABLE installation ADD COLUMN format integer NOT NULL DEFAULT 1;

-- A process that runs says so every few seconds. One that ended without a word is removed after a day.
CREATE TABLE processes (
  process_id uuid PRIMARY KEY,
  version text NOT NULL,
  roles text NOT NULL,
  host text NOT NULL,
  -- Formats that it reads.
  oldest_format integer NOT NULL,
  newest_format integer NOT NULL,
  started_at timestamptz NOT NULL DEFAULT now(),
  seen_at timestamptz NOT NULL DEFAULT now()
);
