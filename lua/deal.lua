--[[
Deals a batch of spins of one cell, and counts requests against their windows. Atomic; all reads and checks come
before the first write, and no write after the first can fail.

KEYS[1]  to KEYS[5], ARGV[1] to ARGV[7]: as for every cell command, include/cell.lua. The reply is stored.

ARGV[8]  the batch (little endian). It names each partner, game, player and requestId once; places in these lists count
         from 1, and 0 is none:
           partners u16, games u16, players u16, requestIds u16, spins u16, bytes of the payouts, offsets of the first
           player and of the first spin, u32 each
           each partner:   spin limit u32, API limit u32, opening balance i64, funding i64 (-1: none),
                           flags u8 (1 enforce the balance, 2 sandbox), number of its newest move that the caller knows u32
                           (0: none), its id in digits and their number u8 before
           payouts:        i64 per outcome code (micro-USD); games may share theirs
           each game:      id u32, wager i64, largest payout i64, offset of its payouts u32, number of its payouts u16,
                           tickets of its pool u32 (a raffle; 0: a slot game, whose queue has no end),
                           its spins in this batch u16, its id in digits and their number u8 before
           each spin:      kind u8 (1 deal, 2 count a spin request, 3 count an API request, 4 deal what is counted already),
                           deny u8 (0 none; else the spin is refused unless its requestId is bound: src/redis/statuses.ts, DENY),
                           places of partner u16, game u16, player u16, requestId u16, 10-byte fingerprint,
                           and as the ledger entry ends: length of player u16, length of requestId u16,
                           "<partner id>:<playerId>", requestId
           each player:    length u16, "<partner id>:<playerId>"
           each requestId: 16-byte hash of partner and requestId

Reply    time ms u48; per partner: spin count u32 and API count u32 of the window before this batch; per spin:
         status u8 (include/statuses.lua) and CORE (zeros where nothing was dealt); then the tails, of those spins
         that have one: place of the spin u16 (from 0), length u16, bytes
Errors   EPOCH, STALE: include/cell.lua
]]
-- include: batch
-- include: statuses
-- include: windows
-- include: away
-- include: players
-- include: idempotency
-- include: gameSupply
-- include: playerFlags
-- include: forced
-- include: communal

local reply = { pack('<I6', nowMs) }
local replied = 1
for i = 1, partnerCount do
  replied = replied + 1
  reply[replied] = pack('<I4I4', spinsUsed[i], apiUsed[i])
end

local isAway = {}
if away then
  for i = 1, partnerCount do isAway[i] = isTurnedAway(away, partnerIds[i], knownMoves[i]) end
end

-- Decide each spin in the order of arrival; repeats within the batch see each other.
local tails, position = nil, spinsAt + 1
for place = 1, spinCount do
  local kind, deny, partner, game, player, request, fingerprint, playerLength, requestLength, textAt =
    unpackStruct('<BBI2I2I2I2c10I2I2', batch, position)
  position = textAt + playerLength + requestLength
  local status, core, tail
  if isAway[partner] then
    status = AWAY
  elseif isDeferring then
    status = DEFERRED
  elseif kind == 3 then
    if apiUsed[partner] >= apiLimit[partner] then
      status = LIMITED
    else
      apiUsed[partner] = apiUsed[partner] + 1
      status = COUNTED
    end
  elseif spinsUsed[partner] >= spinLimit[partner] and kind ~= 4 then
    status = LIMITED
  else
    if kind ~= 4 then spinsUsed[partner] = spinsUsed[partner] + 1 end
    local boundTo = request > 0 and bound[request]
    if kind == 2 then
      status = COUNTED
    elseif boundTo then
      if sub(boundTo, CORE_BYTES + 1, BOUND_BYTES) == fingerprint then
        status, core, tail = REPLAY, sub(boundTo, 1, CORE_BYTES), sub(boundTo, BOUND_BYTES + 1)
      else
        status = CONFLICT
      end
    elseif deny ~= 0 then
      status = DENIALS[deny]
    else
      -- include: dealSpin
      if isDeferring then
        -- A second event is left to the next call, and all that comes after it: it did not count.
        status = DEFERRED
        if kind ~= 4 then spinsUsed[partner] = spinsUsed[partner] - 1 end
      end
    end
  end
  reply[replied + 1], reply[replied + 2] = status, core or NO_CORE
  replied = replied + 2
  if tail and tail ~= '' then
    tails = (tails or '') .. pack('<I2I2', place - 1, #tail) .. tail
  end
end
reply[replied + 1] = tails

reply = concat(reply)

if bonus then bonus.note() end

-- Write.
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
