-- Whether a partner's command is turned away: it has left the cell, or is about to, or has come back by a move that the caller does
-- not know of. Such a caller knows nothing of what the partner's requestIds were bound to in the cells between.
-- include: cell
local function isTurnedAway(away, partnerId, knownMove)
  if find(away, ';' .. partnerId .. ';', 1, true) then return true end
  local _, moveAt = find(away, ';' .. partnerId .. ':', 1, true)
  return moveAt and tonumber(match(away, '^%d+', moveAt + 1)) > knownMove
end
-- Nil: no partner has ever left the cell.
local away = cell[7] ~= ';' and cell[7] or nil
