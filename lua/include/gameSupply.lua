-- The queues of the call's games: counter, blocks, and the outcomes that were read ahead. Needs `gameIds`.
--
-- computed {cN}:block:<game id>:<from>  string, packed outcomes (u16 each) of the block that starts at index <from>
-- include: cell
-- include: layouts/statuses
local nextIndex, queueEnd, blockFrom, blockEnd, readyBlocks = {}, {}, {}, {}, {}
-- A stretch of a game's outcomes, and the index at which it begins.
local chunk, chunkFrom = {}, {}
local takenGames = {}
-- Games of which a block was dealt out; nil: none.
local dealtOutGames
local gameRecords = {}
if #gameIds > 0 then
  gameRecords = call('HMGET', KEYS[4], unpack(gameIds))
end
for i = 1, #gameIds do
  local record = gameRecords[i]
  nextIndex[i], queueEnd[i], blockFrom[i], blockEnd[i], readyBlocks[i] = 0, 0, 0, 0, 0
  if record then
    nextIndex[i], queueEnd[i], blockFrom[i], blockEnd[i], readyBlocks[i] = unpackStruct(GAME_FORMAT, record)
    -- The record itself, as if it began with outcomes where it has other members.
    chunk[i], chunkFrom[i] = record, nextIndex[i] - GAME_BYTES / 2
  end
end
