-- Up Migration

-- What a webhook's receiver did lately. Back-off is each webhook's own: a dead one takes nothing from its neighbours on a host.
CREATE TABLE webhook_endpoints (
  webhook_id integer PRIMARY KEY REFERENCES webhooks,
  -- Minutes since the epoch, and the attempts that were begun in that one: whose turn it is.
  minute bigint NOT NULL,
  attempts integer NOT NULL,
  -- Attempts that failed since the last one that succeeded, and when the next one may begin.
  failures integer NOT NULL DEFAULT 0,
  not_before timestamptz NOT NULL DEFAULT '-infinity',
  -- Why the last attempt that failed did.
  last_error text
);
ALTER TABLE webhook_hosts DROP COLUMN failures, DROP COLUMN not_before;
-- A webhook that fails tries first what has the fewest attempts left.
CREATE INDEX deliveries_tried ON deliveries (webhook_id, attempts DESC, next_attempt_at)
  WHERE status = 'pending' AND attempts > 0;

-- When the service set it inactive; null: it did not.
ALTER TABLE webhooks ADD COLUMN deactivated_at timestamptz;

-- An e-mail that nobody could send has no attempt: it ended when it was written.
DROP INDEX deliveries_ended;
CREATE INDEX deliveries_ended ON deliveries (coalesce(last_attempt_at, created_at)) WHERE status <> 'pending';

-- The feed of events is read in the order in which they were committed: each takes its place at the very end of its
-- transaction, under a lock of its partner that is held until the commit is seen. What was written before keeps its order.
ALTER TABLE events ADD COLUMN place bigint,
  -- Made by POST /webhooks/{id}/test: in no feed.
  ADD COLUMN is_test boolean GENERATED ALWAYS AS (body LIKE '%,"test":true}') STORED;
CREATE SEQUENCE event_places;
UPDATE events SET place = placed.place
  FROM (SELECT event_id, row_number() OVER (ORDER BY written_by, event_id) AS place FROM events) placed
  WHERE placed.event_id = events.event_id;
SELECT setval('event_places', max(place)) FROM events HAVING max(place) IS NOT NULL;
DROP INDEX events_feed;
ALTER TABLE events DROP COLUMN written_by;
CREATE INDEX events_feed ON events (partner_id, place);

CREATE FUNCTION place_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(7310006, NEW.partner_id);
  UPDATE events SET place = nextval('event_places') WHERE event_id = NEW.event_id;
  RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER events_place AFTER INSERT ON events DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION place_event();
