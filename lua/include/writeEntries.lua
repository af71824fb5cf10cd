-- Writes what was booked: the outbox, the players, the requestIds. Gives `newLast`, the cell's field `last`.
-- The stream comes first of all writes: it is the only one that Redis itself could refuse (an id that is not the newest).
-- include: outbox
-- include: players
-- include: idempotency
local outboxBytes = concat(outboxRecords)
call('XADD', KEYS[5], format('%.0f-%d', idMs, idSequence), 'b', outboxBytes, 't',
  pack(TOTALS_FORMAT, totalEntries, totalBytes))
local playerValues = {}
for i = 1, movedCount do
  local player = movedPlayers[i]
  local record = pack('<c18I4I6', playerCores[player], entryNumbers[player], createdAt[player])
  local tail = playerTails[player]
  playerValues[2 * i - 1], playerValues[2 * i] = playerNames[player], tail and record .. tail or record
end
call('HSET', KEYS[3], unpack(playerValues))
if newlyBoundCount > 0 then
  call('HSET', idemKey, unpack(newlyBound))
end
local newLast = pack(LAST_FORMAT, idMs, idSequence, totalEntries + outboxEntries, totalBytes + #outboxBytes)
