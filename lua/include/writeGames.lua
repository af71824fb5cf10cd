-- Writes the games from which an outcome was taken. There are none if every spin of the call was forced.
-- include: gameSupply
local gameValues, gameValueCount = {}, 0
-- One call packs the fields and the outcomes, because each text that the script creates costs 0.2 us.
local gameFormat = GAME_FORMAT .. 'c0'
for game in pairs(takenGames) do
  -- A batch may have read more outcomes than it dealt. Of the outcomes that remain, only READ_AHEAD are kept
  -- in the game's record.
  local ahead = (nextIndex[game] - chunkFrom[game]) * 2 + 1
  gameValues[gameValueCount + 1] = gameIds[game]
  gameValues[gameValueCount + 2] =
    pack(gameFormat, nextIndex[game], queueEnd[game], blockFrom[game], blockEnd[game], readyBlocks[game],
      sub(chunk[game], ahead, ahead + READ_AHEAD * 2 - 1))
  gameValueCount = gameValueCount + 2
end
if gameValueCount > 0 then call('HSET', KEYS[4], unpack(gameValues)) end
-- From the announcement, the worker learns of a dealt-out block sooner than from the ledger. Nothing may
-- depend on the announcement, because it can be lost, and Redis may not permit it.
if dealtOutGames then
  for game in pairs(dealtOutGames) do
    announce('SPUBLISH', 'spindle:dealt:' .. sub(cellPrefix, 1, -2),
      ARGV[2] .. ' ' .. ARGV[1] .. ' ' .. gameIds[game] .. ' ' .. format('%.0f', nextIndex[game]))
  end
end
