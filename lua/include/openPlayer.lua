-- Makes `player`, which is not known, with its opening balance `before`.
-- include: players
local playerName = playerNames[player]
previousLow[player], previousHigh[player], entryNumbers[player] = 0, 0, 1
bookEntry(player, '\2' .. rep('\0', 12), 0, before, 0, before, pack('<I2I2', #playerName, 0) .. playerName)
createdAt[player] = idMs
