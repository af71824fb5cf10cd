-- Defines isTurnedAway, which is true if a partner's command must be rejected because of a move. This is the
-- case if the partner has left the cell, is about to leave it, or has come back by a move that the caller
-- does not know of. Such a caller does not know which requestIds the partner has used in other cells in the
-- meantime.
-- include: cell
local function isTurnedAway(away, partnerId, knownMove)
  if find(away, ';' .. partnerId .. ';', 1, true) then return true end
  local _, moveAt = find(away, ';' .. partnerId .. ':', 1, true)
  return moveAt and tonumber(match(away, '^%d+', moveAt + 1)) > knownMove
end
-- The cell's field `away` is nil if no partner has ever left the cell.
local away = cell[7] ~= ';' and cell[7] or nil
