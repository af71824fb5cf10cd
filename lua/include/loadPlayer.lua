-- Reads the record of `player`, unless this call has already read it. `before` becomes the player's balance
-- in micro-USD, and stays nil if the player does not exist.
-- include: players
local playerRecord = storedPlayers[player]
if playerRecord then
  local _
  previousLow[player], previousHigh[player], _, before, entryNumbers[player], createdAt[player] =
    unpackStruct(PLAYER_FORMAT, playerRecord)
  balances[player] = before
  if #playerRecord > PLAYER_BYTES then
    playerTails[player] = sub(playerRecord, PLAYER_BYTES + 1)
  end
end
