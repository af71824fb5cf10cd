-- Up Migration

-- Versions of the partner API whose end is announced.
CREATE TABLE api_versions (
  version text PRIMARY KEY,
  deprecated_at timestamptz NOT NULL,
  sunset_at timestamptz NOT NULL,
  successor text,
  migration_url text,
  -- When the sunset that stands was announced.
  announced_at timestamptz NOT NULL,
  changed bigint NOT NULL
);

-- Which reminders of a sunset were recorded: so many days before it.
CREATE TABLE api_version_reminders (
  version text NOT NULL REFERENCES api_versions,
  sunset_at timestamptz NOT NULL,
  days integer NOT NULL,
  recorded_at timestamptz NOT NULL,
  PRIMARY KEY (version, sunset_at, days)
);

-- Requests of each partner by version and hour: those of the last day, and the newest hour of each partner.
CREATE TABLE api_version_uses (
  version text NOT NULL,
  partner_id integer NOT NULL REFERENCES partners,
  hour timestamptz NOT NULL,
  requests bigint NOT NULL,
  last_used_at timestamptz NOT NULL,
  PRIMARY KEY (version, partner_id, hour)
);
