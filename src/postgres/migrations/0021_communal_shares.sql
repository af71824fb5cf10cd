-- Up Migration

-- The shares of an event are found by their ids, which follow the event's own.
DROP INDEX communal_shares_event_id_idx;
