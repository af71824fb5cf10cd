-- Up Migration

-- What the policy file of the workers (LOG_POLICY) says of witnesses, groups and the quorum, for /log/policy; null: there is none.
ALTER TABLE logs ADD COLUMN policy text;
-- Cosignatures in the note.
ALTER TABLE log_checkpoints ADD COLUMN cosignatures smallint NOT NULL DEFAULT 0;

-- What the workers know of each witness.
CREATE TABLE log_witnesses (
  log_id smallint NOT NULL REFERENCES logs,
  vkey text NOT NULL,
  -- Of the newest checkpoint that it has, as far as is known.
  size bigint NOT NULL DEFAULT 0,
  known_at timestamptz NOT NULL DEFAULT now(),
  cosigned_at timestamptz,
  -- Why it did not cosign at the last try; null: it did, or did not answer.
  refusal text,
  -- It is not asked before.
  not_before timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (log_id, vkey)
);
-- One worker at a time asks the witnesses, all for the same checkpoint.
CREATE TABLE log_rounds (
  log_id smallint PRIMARY KEY REFERENCES logs,
  holder text NOT NULL,
  -- The next round begins then at the earliest.
  until timestamptz NOT NULL
);
