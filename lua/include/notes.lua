-- Notes in the outbox: what the ledger must know and what is no entry of a player. A note has the layout of an entry, an id
-- of its own (which is given back), "<partner id>:" for its player, and its payload in the place of a requestId.
-- include: outbox
local function addNote(gameId, partner, payload)
  -- inline: takeEntryId
  local low, high = idLow + idSequence, idHigh
  local pieces = outboxPieces
  outboxRecords[pieces + 1] = '\5' .. pack('<I4i8', gameId, 0)
  outboxRecords[pieces + 2] = pack('<I6i8I4I4I2i8I4I4I4', 0, 0, low, high, 0, 0, 0, 0, 0)
  outboxRecords[pieces + 3] = pack('<I2I2', #partner, #payload) .. partner .. payload
  outboxPieces, outboxEntries = pieces + 3, outboxEntries + 1
  return pack('<I4I4', low, high)
end
