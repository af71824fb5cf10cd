-- Defines isTurnedAway, which is true if a partner's command must be rejected because of a move. This is the
-- case if the partner has left the cell, is about to leave it, or came back by a move that the caller does
-- not know of. Such a caller does not know what the partner's requestIds were bound to in the cells in
-- between.
-- include: cell
local function isTurnedAway(away, partnerId, knownMove)
  if find(away, ';' .. partnerId .. ';', 1, true) then return true end
  local _, moveAt = find(away, ';' .. partnerId .. ':', 1, true)
  return moveAt and tonumber(match(away, '^%d+', moveAt + 1)) > knownMove
end
-- `away` is nil if no partner has ever left the cell.
local away = cell[7] ~= ';' and cell[7] or nil
