-- Notes in the outbox, for changes that the ledger must record and that are not entries of a player. A note
-- has the layout of an entry, an id of its own (which is returned), "<partner id>:" in place of the player,
-- and its payload in place of the requestId.
-- include: outbox
local function addNote(kind, gameId, partner, payload, index)
  -- inline: takeEntryId
  local low, high = idLow + idSequence, idHigh
  local pieces = outboxPieces
  outboxRecords[pieces + 1] = pack(ENTRY_HEAD_FORMAT, kind, gameId, 0)
  outboxRecords[pieces + 2] = pack(ENTRY_BODY_FORMAT, index or 0, 0, low, high, 0, 0, 0, 0, 0)
  outboxRecords[pieces + 3] = pack(ENTRY_TEXT_FORMAT, #partner, #payload) .. partner .. payload
  outboxPieces, outboxEntries = pieces + 3, outboxEntries + 1
  return pack(ENTRY_ID_FORMAT, low, high)
end
