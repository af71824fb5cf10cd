-- Notes in the outbox: what the ledger must know and what is no entry of a player. A note has the layout of an entry, an id
-- of its own (which is given back), "<partner id>:" for its player, and its payload in the place of a requestId.
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
