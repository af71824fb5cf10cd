-- The queues of the call's games: counter, blocks, and the outcomes that were read ahead. Needs `gameIds`.
--
-- computed {cN}:block:<game id>:<from>  string, packed outcomes (u16 each) of the block that starts at index <from>
-- include: cell
-- include: statuses
-- Outcomes that are read at a time at the least.
local READ_AHEAD = 16
local nextIndex, queueEnd, blockFrom, blockEnd, readyBlocks = {}, {}, {}, {}, {}
-- A stretch of a game's outcomes, and the index at which it begins.
local chunk, chunkFrom = {}, {}
local takenGames = {}
local gameRecords = {}
if #gameIds > 0 then
  gameRecords = call('HMGET', KEYS[4], unpack(gameIds))
end
for i = 1, #gameIds do
  local record = gameRecords[i]
  nextIndex[i], queueEnd[i], blockFrom[i], blockEnd[i], readyBlocks[i] = 0, 0, 0, 0, 0
  if record then
    nextIndex[i], queueEnd[i], blockFrom[i], blockEnd[i], readyBlocks[i] = unpackStruct(GAME_FORMAT, record)
    if #record > GAME_BYTES then
      chunk[i], chunkFrom[i] = sub(record, GAME_BYTES + 1), nextIndex[i]
    end
  end
end

-- Reads a stretch of the block, from the counter on: what the batch wants, or enough for the next batches where a game
-- has few spins in each.
local function readChunk(game, index, wanted)
  local key = cellPrefix .. 'block:' .. gameIds[game] .. ':'
  if index >= blockEnd[game] then
    blockFrom[game] = blockEnd[game]
    key = key .. format('%.0f', blockFrom[game])
    blockEnd[game] = blockFrom[game] + floor(call('STRLEN', key) / 2)
  else
    key = key .. format('%.0f', blockFrom[game])
  end
  local first = (index - blockFrom[game]) * 2
  local count = wanted > READ_AHEAD and wanted or READ_AHEAD
  chunk[game], chunkFrom[game] = call('GETRANGE', key, first, first + count * 2 - 1), index
end

-- Takes the outcome at a game's counter: its code and its index; or nil and the status that says why there is none.
-- `codes`: how many the game's sheet has. `poolSize` > 0: the queue has an end.
local function takeOutcome(game, poolSize, wanted, codes)
  local index = nextIndex[game]
  if index >= queueEnd[game] then
    return nil, (queueEnd[game] == 0 or poolSize > 0) and NO_BLOCK or EXHAUSTED
  end
  local outcomes = chunk[game]
  local at = outcomes and (index - chunkFrom[game]) * 2 + 1
  if not at or at > #outcomes then
    readChunk(game, index, wanted)
    outcomes, at = chunk[game], 1
  end
  local low, high = byte(outcomes, at, at + 1)
  local code = high and low + high * 256
  if not code or code >= codes then
    return nil, NO_BLOCK
  end
  nextIndex[game] = index + 1
  takenGames[game] = true
  if index + 1 == blockEnd[game] then
    readyBlocks[game] = readyBlocks[game] - 1
  end
  return code, index
end
