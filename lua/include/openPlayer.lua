-- Creates `player`, which does not exist yet, with its opening balance `before`.
-- include: players
local playerName = playerNames[player]
previousLow[player], previousHigh[player], entryNumbers[player] = 0, 0, 1
do
  local head, index, credit, code, balance, core =
    pack(ENTRY_HEAD_FORMAT, OPENING_ENTRY, 0, 0), 0, before, 0, before, nil
  local text = pack(ENTRY_TEXT_FORMAT, #playerName, 0) .. playerName
  -- inline: bookEntry
end
createdAt[player] = idMs
