-- Up Migration

-- Where a partner wants its events. A deleted one is kept, and gets nothing any more.
CREATE TABLE webhooks (
  webhook_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  partner_id integer NOT NULL REFERENCES partners,
  url text NOT NULL,
  events text[] NOT NULL,
  -- In the clear: it must sign, and whoever reads this database reads sealed outcomes, too.
  secret text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  deleted_at timestamptz
);
CREATE INDEX ON webhooks (partner_id);

-- What happened, written in the transaction that books its cause, where somebody wants to know it.
CREATE TABLE events (
  event_id text COLLATE "C" PRIMARY KEY,
  partner_id integer NOT NULL REFERENCES partners,
  event text NOT NULL,
  -- What is sent, byte for byte, on every attempt.
  body text NOT NULL,
  created_at timestamptz NOT NULL
);

-- An event on its way to a webhook; src/webhooks/deliverer.ts says how a row moves.
CREATE TABLE deliveries (
  -- Begins with its time, so that the newest are at the right edge.
  delivery_id text COLLATE "C" PRIMARY KEY,
  webhook_id integer NOT NULL REFERENCES webhooks,
  event_id text COLLATE "C" NOT NULL REFERENCES events,
  status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'failed')),
  -- Attempts whose result is known.
  attempts integer NOT NULL DEFAULT 0,
  max_attempts integer NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  last_attempt_at timestamptz,
  next_attempt_at timestamptz DEFAULT now(),
  response_status integer,
  -- Why the last attempt failed, for whoever looks.
  last_error text,
  -- Until then a worker is at it; one that ended lets its leases lapse.
  leased_until timestamptz NOT NULL DEFAULT '-infinity',
  CHECK ((next_attempt_at IS NOT NULL) = (status = 'pending'))
);
CREATE INDEX ON deliveries (webhook_id, delivery_id);
CREATE INDEX deliveries_due ON deliveries (webhook_id, next_attempt_at) WHERE status = 'pending';
CREATE INDEX deliveries_failed ON deliveries (last_attempt_at) WHERE status = 'failed';

-- Whether a game has its reserve of blocks; a game that never had it has no row. A fall is told once: when this turns.
CREATE TABLE block_reserves (
  game_id integer PRIMARY KEY REFERENCES games,
  is_low boolean NOT NULL,
  since timestamptz NOT NULL DEFAULT now()
);

-- Which notices of its expiry a key had: so many days before it.
CREATE TABLE key_notices (
  key_id integer NOT NULL REFERENCES api_keys,
  days integer NOT NULL,
  noticed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (key_id, days)
);
