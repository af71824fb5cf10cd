-- Takes the forced outcome for the next spin of `player` at `game`. Gives `forcedCode`, nil if there is none.
-- include: forced
local field = gameIds[game] .. ':' .. playerNames[player]
local chosen = not usedForced[field] and call('HGET', forcedKeys[partner], field)
if chosen then
  local chosenCode, untilMs = unpackStruct(FORCED_FORMAT, chosen)
  usedForced[field] = forcedKeys[partner]
  if untilMs > nowMs and chosenCode < payoutCount[game] then forcedCode = chosenCode end
end
