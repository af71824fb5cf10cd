-- Up Migration

-- What was played in each UTC hour, for charts: what the days of a partner's games grew by in it, to within a minute. Kept for 35 days.
CREATE TABLE traffic_hours (
  hour timestamptz NOT NULL,
  partner_id integer NOT NULL,
  spins bigint NOT NULL,
  wagered_micros numeric(38, 0) NOT NULL,
  paid_micros numeric(38, 0) NOT NULL,
  -- False: what days had come to before hours were kept; of no hour.
  is_known boolean NOT NULL DEFAULT true,
  PRIMARY KEY (hour, partner_id)
);
INSERT INTO traffic_hours (hour, partner_id, spins, wagered_micros, paid_micros, is_known)
SELECT (day::timestamp + interval '1 minute') AT TIME ZONE 'UTC', partner_id, sum(spins), sum(wagered_micros), sum(paid_micros), false
FROM game_days WHERE day >= (now() AT TIME ZONE 'UTC')::date - 1 GROUP BY day, partner_id;
