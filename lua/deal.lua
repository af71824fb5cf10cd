--[[
Deals a batch of spins of one cell, and counts requests in their rate limit windows. The script is atomic. All
reads and checks come before the first write, and no write after the first can fail.

KEYS[1]  to KEYS[5], ARGV[1] to ARGV[7]: as for every cell command, include/cell.lua. The reply is stored.

ARGV[8]  the batch, which contains each partner, game, player and requestId once (src/domain/layouts.ts, BATCH
         to BATCH_REQUEST). A spin whose `deny` is not 0 is refused unless its requestId is bound
         (src/engine/redis/statuses.ts, DENY).

Reply    REPLY; a REPLY_PARTNER for each partner, with the windows before this batch; a REPLY_SPIN for each
         spin (with a CORE of zeros if nothing was dealt); the tails of the spins that have one, each after
         its REPLY_TAIL
Errors   EPOCH, STALE: include/cell.lua
]]
-- include: batch
-- include: layouts/statuses
-- include: windows
-- include: away
-- include: players
-- include: idempotency
-- include: gameSupply
-- include: playerFlags
-- include: forced
-- include: communal

local reply = { pack(REPLY_FORMAT, nowMs) }
local replied = 1
for i = 1, partnerCount do
  replied = replied + 1
  reply[replied] = pack(REPLY_PARTNER_FORMAT, spinsUsed[i], apiUsed[i])
end

local isAway = {}
if away then
  for i = 1, partnerCount do isAway[i] = isTurnedAway(away, partnerIds[i], knownMoves[i]) end
end

-- Decide the spins in order of arrival. If an earlier spin of the same batch has the same requestId, the
-- later spin finds that requestId bound.
local tails, position = nil, spinsAt + 1
for place = 1, spinCount do
  local kind, deny, partner, game, player, request, fingerprint, playerLength, requestLength, textAt =
    unpackStruct(BATCH_SPIN_FORMAT, batch, position)
  position = textAt + playerLength + requestLength
  local status, core, tail
  if isAway[partner] then
    status = PARTNER_AWAY
  elseif isDeferring then
    status = DEFERRED
  elseif kind == COUNT_API_KIND then
    if apiUsed[partner] >= apiLimit[partner] then
      status = LIMITED
    else
      apiUsed[partner] = apiUsed[partner] + 1
      status = COUNTED
    end
  elseif spinsUsed[partner] >= spinLimit[partner] and kind ~= DEAL_COUNTED_KIND then
    status = LIMITED
  else
    if kind ~= DEAL_COUNTED_KIND then spinsUsed[partner] = spinsUsed[partner] + 1 end
    local boundTo = request > 0 and bound[request]
    if kind == COUNT_SPIN_KIND then
      status = COUNTED
    elseif boundTo then
      if sub(boundTo, CORE_BYTES + 1, BOUND_BYTES) == fingerprint then
        status, core, tail = REPLAY, sub(boundTo, 1, CORE_BYTES), sub(boundTo, BOUND_BYTES + 1)
      else
        status = CONFLICT
      end
    elseif deny ~= 0 and deny ~= OTHER_WAGER then
      status = DENIALS[deny]
    elseif poolSize[game] > 0 and nextIndex[game] >= poolSize[game] then
      -- RAFFLE_CLOSED takes precedence over a refusal because of the wager or the player.
      status = RAFFLE_CLOSED
    elseif deny ~= 0 then
      status = DENIALS[deny]
    else
      -- include: dealSpin
      if isDeferring then
        -- A call handles only one event of a communal progressive. The spin that would fire a second event,
        -- and all spins after it, are not processed in this call and do not count towards the rate limit.
        -- They are sent again in the next call.
        status = DEFERRED
        if kind ~= DEAL_COUNTED_KIND then spinsUsed[partner] = spinsUsed[partner] - 1 end
      end
    end
  end
  reply[replied + 1], reply[replied + 2] = status, core or NO_CORE
  replied = replied + 2
  if tail and tail ~= '' then
    tails = (tails or '') .. pack(REPLY_TAIL_FORMAT, place - 1, #tail) .. tail
  end
end
reply[replied + 1] = tails

reply = concat(reply)

if bonus then bonus.note() end

-- From here on the script only writes.
if outboxEntries > 0 then
  -- include: writeEntries
  -- include: writeGames
  for field, key in pairs(usedForced) do call('HDEL', key, field) end
  if bonus then bonus.write() end
  call('HSET', KEYS[1], 'last', newLast, operationField, operationId .. reply)
else
  call('HSET', KEYS[1], operationField, operationId .. reply)
end
-- include: writeWindows
return reply
