-- Up to where outcomes of a void were sealed, exclusive; null: all of them were. A restore to an older state leaves a gap behind them,
-- of indices that may have been shown.
ALTER TABLE voids ADD COLUMN sealed_to bigint CHECK (sealed_to BETWEEN from_index AND to_index);
-- Of voids before: as far as the blocks that Postgres knows of.
UPDATE voids v SET sealed_to = sealed
FROM (
  SELECT v.game_id, v.from_index, greatest(v.from_index, coalesce(max(b.to_index), 0)) AS sealed
  FROM voids v LEFT JOIN blocks b ON b.game_id = v.game_id AND b.from_index < v.to_index AND b.to_index > v.from_index
  GROUP BY v.game_id, v.from_index) s
WHERE s.game_id = v.game_id AND s.from_index = v.from_index AND sealed < v.to_index;
