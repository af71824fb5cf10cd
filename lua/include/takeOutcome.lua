-- Takes the outcome at the counter of `game`. Gives `index` and `code`, which the including script declares.
-- If there is no outcome, gives `status` and leaves the enclosing loop by `break`.
-- include: gameSupply
local outcomes = chunk[game]
index = nextIndex[game]
if index >= queueEnd[game] then
  status = (queueEnd[game] == 0 or poolSize[game] > 0) and NO_BLOCK or QUEUE_EXHAUSTED
  break
end
local outcomeAt = outcomes and (index - chunkFrom[game]) * 2 + 1
if not outcomeAt or outcomeAt > #outcomes then
  -- Reads a range of the block at once: the outcomes that the batch needs, or at least READ_AHEAD of them. If
  -- a game has only few spins in each batch, READ_AHEAD outcomes suffice for several batches.
  if index >= blockEnd[game] then
    local blockKey = cellPrefix .. 'block:' .. gameIds[game] .. ':' .. format('%.0f', blockEnd[game])
    blockFrom[game], blockEnd[game] = blockEnd[game], blockEnd[game] + floor(call('STRLEN', blockKey) / 2)
  end
  local blockKey = cellPrefix .. 'block:' .. gameIds[game] .. ':' .. format('%.0f', blockFrom[game])
  local first = (index - blockFrom[game]) * 2
  local count = wanted[game] > READ_AHEAD and wanted[game] or READ_AHEAD
  outcomes = call('GETRANGE', blockKey, first, first + count * 2 - 1)
  chunk[game], chunkFrom[game], outcomeAt = outcomes, index, 1
end
local codeLow, codeHigh = byte(outcomes, outcomeAt, outcomeAt + 1)
code = codeHigh and codeLow + codeHigh * 256
if not code or code >= payoutCount[game] then status = NO_BLOCK break end
nextIndex[game] = index + 1
takenGames[game] = true
if index + 1 == blockEnd[game] then
  readyBlocks[game] = readyBlocks[game] - 1
  dealtOutGames = dealtOutGames or {}
  dealtOutGames[game] = true
end
