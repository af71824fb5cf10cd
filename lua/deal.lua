--[[
Deals a batch of spins of one cell, and counts requests against their windows. Atomic; all reads and checks come
before the first write, and no write after the first can fail.

KEYS[1]  to KEYS[5], ARGV[1] to ARGV[7]: as for every cell command, include/cell.lua. The reply is stored.

ARGV[8]  the batch (little endian). It names each partner, game, player and requestId once; places in these lists count
         from 1, and 0 is none:
           partners u16, games u16, players u16, requestIds u16, spins u16, offsets of the first player and of
           the first spin, u32 each
           each partner:   id u32, spin limit u32, API limit u32, opening balance i64, funding i64 (-1: none),
                           enforce the balance u8
           each game:      id u32, wager i64, largest payout i64, offset of its payouts u32, number of its payouts u16,
                           tickets of its pool u32 (a raffle; 0: a slot game, whose queue has no end),
                           its spins in this batch u16
           payouts:        i64 per outcome code (micro-USD); games may share theirs
           each spin:      kind u8 (1 deal, 2 count a spin request, 3 count an API request, 4 deal what is counted already),
                           deny u8 (0 none; else the spin is refused unless its requestId is bound),
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
-- include: cell
-- include: statuses
-- include: entryIds
-- include: outbox
-- include: idempotency
-- include: players
-- include: windows
-- include: gameSupply
local batch = ARGV[8]
local partnerCount, gameCount, playerCount, requestCount, spinCount, listsAt, spinsAt =
  unpackStruct('<I2I2I2I2I2I4I4', batch)
local HEADER_BYTES = 18
-- A spin has no tail of its own yet.
local NO_TAIL = ''

local spinLimit, apiLimit, opening, funding, enforce = {}, {}, {}, {}, {}
local wager, gameMaxPayout, payoutsAt, payoutCount, poolSize, wanted, spinHead = {}, {}, {}, {}, {}, {}, {}

-- Reads the lists of the batch, and the records of all that they name.
local function readBatch(nowMs)
  local offset = HEADER_BYTES + 1
  local partners, games, players, requests = {}, {}, {}, {}
  for i = 1, partnerCount do
    partners[i], spinLimit[i], apiLimit[i], opening[i], funding[i], enforce[i], offset =
      unpackStruct('<I4I4I4i8i8B', batch, offset)
  end
  for i = 1, gameCount do
    spinHead[i] = '\1' .. sub(batch, offset, offset + 11)
    games[i], wager[i], gameMaxPayout[i], payoutsAt[i], payoutCount[i], poolSize[i], wanted[i], offset =
      unpackStruct('<I4i8i8I4I2I4I2', batch, offset)
  end
  offset = listsAt + 1
  -- The last value that unpack gives is where it ended.
  if playerCount > 0 then
    players = { unpackStruct('<' .. rep('I2c0', playerCount), batch, offset) }
    offset = players[playerCount + 1]
    players[playerCount + 1] = nil
  end
  if requestCount > 0 then
    requests = { unpackStruct('<' .. rep('c16', requestCount), batch, offset) }
    requests[requestCount + 1] = nil
  end
  readPartners(partners, nowMs)
  readPlayers(players)
  readBound(requests)
  readGames(games)
end

-- Decides a spin that has counted and whose requestId is free: the status, and the CORE and tail where it is dealt.
local function deal(partner, game, player, request, fingerprint, textAt, textEnd)
  if poolSize[game] > 0 and nextIndex[game] >= poolSize[game] then return CLOSED end
  if isOutboxFull then return OUTBOX_FULL end
  local before = balances[player] or loadPlayer(player)
  local isNew = not before
  if isNew then before = opening[partner] end
  local stake, payoutMax = wager[game], gameMaxPayout[game]
  if enforce[partner] == 1 and before < stake then return INSUFFICIENT end
  if funding[partner] >= 0 and funding[partner] - netPaid[partner] < payoutMax then return FUNDING end
  if before > MONEY_MAX - payoutMax or before < stake - MONEY_MAX then return OVERFLOW end
  local code, index = takeOutcome(game, poolSize[game], wanted[game], payoutCount[game])
  if not code then return index end
  local payout = unpackStruct('<i8', batch, payoutsAt[game] + code * 8 + 1)
  if isNew then openPlayer(player, before) end
  local after = before - stake + payout
  entryNumbers[player] = entryNumbers[player] + 1
  local core = bookEntry(player, spinHead[game], index, payout, code, after, sub(batch, textAt, textEnd))
  netPaid[partner] = netPaid[partner] + payout - stake
  local tail = NO_TAIL
  if request > 0 then bind(request, core .. fingerprint .. tail) end
  return DEALT, core, tail
end

local answer, last, booked = openCell()
if answer then
  return answer
end
local nowMs = readClock()
beginEntryIds(last, nowMs)
beginOutbox(last, booked)
readBatch(nowMs)

local reply = { pack('<I6', nowMs) }
local replied = 1
for i = 1, partnerCount do
  replied = replied + 1
  reply[replied] = pack('<I4I4', spinsUsed[i], apiUsed[i])
end

-- Decide each spin in the order of arrival; repeats within the batch see each other.
local tails, position = nil, spinsAt + 1
for place = 1, spinCount do
  local kind, deny, partner, game, player, request, fingerprint, playerLength, requestLength, textAt =
    unpackStruct('<BBI2I2I2I2c10I2I2', batch, position)
  position = textAt + playerLength + requestLength
  local status, core, tail
  if kind == 3 then
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
      core, tail = repeatBound(boundTo, fingerprint)
      status = core and REPLAY or CONFLICT
    elseif deny ~= 0 then
      status = DENIED
    else
      status, core, tail = deal(partner, game, player, request, fingerprint, textAt - 4, position - 1)
    end
  end
  reply[replied + 1], reply[replied + 2] = status, core or NO_CORE
  replied = replied + 2
  if tail and tail ~= NO_TAIL then
    tails = (tails or '') .. pack('<I2I2', place - 1, #tail) .. tail
  end
end
reply[replied + 1] = tails

-- Write.
local isDealt = outboxEntries > 0
if isDealt then writeOutbox() end
writePartners()
reply = concat(reply)
if isDealt then
  writePlayers()
  writeGames()
  writeBound()
  call('HSET', KEYS[1], 'last', packLast(), operationField, operationId .. reply)
else
  call('HSET', KEYS[1], operationField, operationId .. reply)
end
return reply
