-- Up Migration

-- The host that a webhook leads to: attempts are bounded by host, over all webhooks of all partners.
ALTER TABLE webhooks ADD COLUMN host text;
UPDATE webhooks SET host = lower(coalesce(substring(url FROM '^[A-Za-z]+://(\[[^]]*\]|[^/:?#]+)'), url));
ALTER TABLE webhooks ALTER COLUMN host SET NOT NULL;

-- What a partner's webhooks sent to a host: the bound of a minute is that of all partners, back-off is each partner's own.
CREATE TABLE webhook_hosts (
  host text NOT NULL,
  partner_id integer NOT NULL REFERENCES partners,
  -- Minutes since the epoch, and the attempts that were begun in that one.
  minute bigint NOT NULL,
  attempts integer NOT NULL,
  -- Attempts that failed since the last one that succeeded, and when the next one may begin.
  failures integer NOT NULL DEFAULT 0,
  not_before timestamptz NOT NULL DEFAULT '-infinity',
  PRIMARY KEY (host, partner_id)
);
CREATE INDEX webhook_hosts_minute ON webhook_hosts (minute);

-- For the retention.
CREATE INDEX deliveries_ended ON deliveries (last_attempt_at) WHERE status <> 'pending';
CREATE INDEX deliveries_event ON deliveries (event_id);
