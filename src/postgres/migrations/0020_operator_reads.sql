-- Up Migration

-- What operators list over all partners: the traffic of a day, reports by day, and those that wait for an answer.
CREATE INDEX game_days_of_day ON game_days (day);
CREATE INDEX settlement_reports_of_day ON settlement_reports (report_date, partner_id);
CREATE INDEX settlement_reports_disputed ON settlement_reports (report_date) WHERE status = 'DISPUTED';
