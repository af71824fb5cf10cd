-- Writes the entries of the call: the outbox, the players, the requestIds. Gives `newLast`, the new value of
-- the cell's field `last`, which the including script writes.
-- include: players
-- include: idempotency
-- include: writeStream
local playerValues = {}
for i = 1, movedCount do
  local player = movedPlayers[i]
  local record = pack(PLAYER_OF_CORE_FORMAT, playerCores[player], entryNumbers[player], createdAt[player])
  local tail = playerTails[player]
  playerValues[2 * i - 1], playerValues[2 * i] = playerNames[player], tail and record .. tail or record
end
call('HSET', KEYS[3], unpack(playerValues))
if newlyBoundCount > 0 then
  call('HSET', idemKey, unpack(newlyBound))
end
