-- When Redis confirmed that a version of a progressive's rules is in force. Null: nobody was ever told so, and a rebuild or a move
-- of the cell withdraws a version whose note is not booked either.
ALTER TABLE communal_rules ADD COLUMN confirmed_at timestamptz;
