-- For inlining. Adds a ledger entry of an existing `player` to the outbox.
--
-- Expects  head (kind u8, game id u32, wager i64), index, credit, code, balance (after the entry), text
--          (lengths of player and requestId u16 each, player, requestId)
-- Gives    core
--
-- src/domain/layouts.ts, ENTRY, has the layout.
do
  -- inline: takeEntryId
  local low = idLow + idSequence
  local record = pack(ENTRY_BODY_FORMAT, index, credit, low, idHigh, code, balance,
    previousLow[player], previousHigh[player], entryNumbers[player])
  core = sub(record, ENTRY_BODY_ID_AT, ENTRY_BODY_CORE_END)
  outboxRecords[outboxPieces + 1], outboxRecords[outboxPieces + 2], outboxRecords[outboxPieces + 3] =
    head, record, text
  outboxPieces, outboxEntries = outboxPieces + 3, outboxEntries + 1
  if not playerCores[player] then
    movedCount = movedCount + 1
    movedPlayers[movedCount] = player
  end
  balances[player], playerCores[player] = balance, core
  previousLow[player], previousHigh[player] = low, idHigh
end
