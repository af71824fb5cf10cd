-- Writes the games that an outcome was taken from: none where every spin of the call was forced.
-- include: gameSupply
local gameValues, gameValueCount = {}, 0
for game in pairs(takenGames) do
  -- A batch may have wanted more than it dealt: not all of what is left is kept.
  local ahead = (nextIndex[game] - chunkFrom[game]) * 2 + 1
  gameValues[gameValueCount + 1] = gameIds[game]
  gameValues[gameValueCount + 2] =
    pack(GAME_FORMAT, nextIndex[game], queueEnd[game], blockFrom[game], blockEnd[game], readyBlocks[game])
    .. sub(chunk[game], ahead, ahead + READ_AHEAD * 2 - 1)
  gameValueCount = gameValueCount + 2
end
if gameValueCount > 0 then call('HSET', KEYS[4], unpack(gameValues)) end
-- The worker hears of a block that is dealt out sooner than from the ledger. A message may be lost, or not be allowed:
-- nothing depends on one.
if dealtOutGames then
  for game in pairs(dealtOutGames) do
    announce('SPUBLISH', 'spindle:dealt:' .. sub(cellPrefix, 1, -2),
      ARGV[2] .. ' ' .. ARGV[1] .. ' ' .. gameIds[game] .. ' ' .. format('%.0f', nextIndex[game]))
  end
end
