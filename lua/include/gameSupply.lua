-- The queues of the call's games: counter, blocks, and outcomes that were read ahead. Needs `gameIds`.
--
-- computed {cN}:block:<game id>:<from>  string, packed outcomes (u16 each) of the block that begins at index
--                                       <from>
-- include: cell
-- include: layouts/statuses
local nextIndex, queueEnd, blockFrom, blockEnd, readyBlocks = {}, {}, {}, {}, {}
-- By game: a range of outcomes that was read from the block, and the index of the first of these outcomes.
local chunk, chunkFrom = {}, {}
local takenGames = {}
-- Games whose block this call has dealt out; nil if there are none.
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
    -- The outcomes that were read ahead follow the fields of a game's record. The whole record serves as the
    -- first range of outcomes, with its start index shifted as if these fields were outcomes too.
    chunk[i], chunkFrom[i] = record, nextIndex[i] - GAME_BYTES / 2
  end
end
