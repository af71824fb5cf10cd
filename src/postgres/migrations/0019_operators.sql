-- Up Migration

-- Operators by name, beside the one whose key the environment gives. Of a key only the SHA-256 is kept.
CREATE TABLE operators (
  name text COLLATE "C" PRIMARY KEY,
  role text NOT NULL CHECK (role IN ('admin', 'operator', 'auditor')),
  key_hash bytea NOT NULL UNIQUE CHECK (octet_length(key_hash) = 32),
  created_at timestamptz NOT NULL DEFAULT now(),
  -- When the key was issued: at the creation, or at its newest rotation.
  issued_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  changed bigint NOT NULL
);
CREATE INDEX ON operators (changed);

-- Who is signed in to the console: a session lasts no longer than the key that it was begun with.
CREATE TABLE operator_sessions (
  session_hash bytea PRIMARY KEY CHECK (octet_length(session_hash) = 32),
  key_hash bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX ON operator_sessions (key_hash, created_at);
CREATE INDEX ON operator_sessions (expires_at);
