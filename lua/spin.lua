--[[
Deals a batch of spins of one cell, and counts requests against their windows. Atomic; all reads and checks come
before the first write, and no write after the first can fail.

KEYS[1]  {cN}:cell      hash    epoch; last: LAST; booked: BOOKED; op:<front end>: the newest batch of each front end
                                and its reply
KEYS[2]  {cN}:partners  hash    partner id -> PARTNER
KEYS[3]  {cN}:players   hash    "<partner id>:<playerId>" -> PLAYER
KEYS[4]  {cN}:games     hash    game id -> GAME
KEYS[5]  {cN}:outbox    stream  one entry a batch; b: the ledger entries of the batch, in order; t: TOTALS before it
computed {cN}:idem:<period>           hash, 16-byte hash of partner and requestId -> BOUND; the current period's is
                                      written, the current and the one before are read
computed {cN}:block:<game id>:<from>  string, packed outcomes (u16 each) of the block that starts at index <from>

ARGV[1]  epoch that the caller believes in
ARGV[2]  cell number, 0..255
ARGV[3]  length of an idempotency period, seconds
ARGV[4]  field of the caller's newest batch in KEYS[1], "op:<front end>"
ARGV[5]  operation id of this batch, u64: greater than those before; the same again is answered with the stored reply
         and changes nothing
ARGV[6]  ledger entries that may wait in the outbox, and
ARGV[7]  their bytes: while it holds as much, nothing is dealt (a batch that begins below may end above)
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
         status u8 and CORE (zeros where nothing was dealt). Statuses: src/redis/records.ts, SPIN_STATUS.
Errors   EPOCH <epoch>: the cell is at another epoch, or none; nothing was done.
         STALE: a batch with a greater operation id is known; nothing was done now.
]]
-- include: records
local floor, byte, sub, rep = math.floor, string.byte, string.sub, string.rep
local pack, unpackStruct, concat = struct.pack, struct.unpack, table.concat
local call = redis.call

local DEALT, REPLAY, CONFLICT, LIMITED, DENIED = '\0', '\1', '\2', '\3', '\4'
local INSUFFICIENT, FUNDING, EXHAUSTED, NO_BLOCK, COUNTED, OVERFLOW = '\5', '\6', '\7', '\8', '\9', '\10'
local OUTBOX_FULL, CLOSED = '\11', '\12'
local NO_CORE = rep('\0', CORE_BYTES)
-- How the ledger entry of an opening begins: its kind, and no game.
local OPENING_HEAD = '\2' .. rep('\0', 18)
local MONEY_MAX = 9e15
local SEQ_MAX = 16383
local READ_AHEAD = 16

local cell = call('HMGET', KEYS[1], 'epoch', 'last', 'booked', ARGV[4])
if cell[1] ~= ARGV[1] then
  return redis.error_reply('EPOCH ' .. (cell[1] or 'none'))
end
local opId = ARGV[5]
if cell[4] then
  local newest, this = unpackStruct('<I8', cell[4]), unpackStruct('<I8', opId)
  if this == newest then
    return sub(cell[4], 9)
  end
  if this < newest then
    return redis.error_reply('STALE a newer operation of this front end is known')
  end
end

local time = call('TIME')
local second = tonumber(time[1])
local nowMs = second * 1000 + floor(tonumber(time[2]) / 1000)
local minute = floor(second / 60)
local batch = ARGV[8]
local partnerCount, gameCount, playerCount, requestCount, spinCount, listsAt, spinsAt =
  unpackStruct('<I2I2I2I2I2I4I4', batch)

-- Partners and games of the batch.
local partnerIds, spinLimit, apiLimit, opening, funding, enforce = {}, {}, {}, {}, {}, {}
local offset = 19
for i = 1, partnerCount do
  partnerIds[i], spinLimit[i], apiLimit[i], opening[i], funding[i], enforce[i], offset =
    unpackStruct('<I4I4I4i8i8B', batch, offset)
end
local gameIds, wager, gameMaxPayout, payoutsAt, payoutCount, poolSize, wanted, spinHead = {}, {}, {}, {}, {}, {}, {}, {}
for i = 1, gameCount do
  spinHead[i] = '\1' .. sub(batch, offset, offset + 11)
  gameIds[i], wager[i], gameMaxPayout[i], payoutsAt[i], payoutCount[i], poolSize[i], wanted[i], offset =
    unpackStruct('<I4i8i8I4I2I4I2', batch, offset)
end

-- Read.
offset = listsAt + 1
local partnerRecords = call('HMGET', KEYS[2], unpack(partnerIds))
local prefix = sub(KEYS[1], 1, -5)
local players, stored = nil, nil
if playerCount > 0 then
  -- What unpack gives last is where it ended.
  players = { unpackStruct('<' .. rep('I2c0', playerCount), batch, offset) }
  offset = players[playerCount + 1]
  players[playerCount + 1] = nil
  stored = call('HMGET', KEYS[3], unpack(players))
end
-- By the newest entry where the clock went back: what was bound in a later period must be found.
local newestSecond = cell[2] and floor(unpackStruct('<I6', cell[2]) / 1000) or 0
local period = floor((second > newestSecond and second or newestSecond) / tonumber(ARGV[3]))
local idemKey = prefix .. 'idem:' .. period
local requestIds, bound = nil, nil
if requestCount > 0 then
  requestIds = { unpackStruct('<' .. rep('c16', requestCount), batch, offset) }
  requestIds[requestCount + 1] = nil
  bound = call('HMGET', idemKey, unpack(requestIds))
  local earlier = call('HMGET', prefix .. 'idem:' .. (period - 1), unpack(requestIds))
  for i = 1, requestCount do
    bound[i] = bound[i] or earlier[i]
  end
end
-- A stretch of a game's outcomes, and the index at which it begins.
local chunk, chunkFrom = {}, {}
local nextIndex, queueEnd, blockFrom, blockEnd, readyBlocks = {}, {}, {}, {}, {}
if gameCount > 0 then
  local values = call('HMGET', KEYS[4], unpack(gameIds))
  for i = 1, gameCount do
    if values[i] then
      nextIndex[i], queueEnd[i], blockFrom[i], blockEnd[i], readyBlocks[i] = unpackStruct(GAME_FORMAT, values[i])
      if #values[i] > GAME_BYTES then
        chunk[i], chunkFrom[i] = sub(values[i], GAME_BYTES + 1), nextIndex[i]
      end
    else
      nextIndex[i], queueEnd[i], blockFrom[i], blockEnd[i], readyBlocks[i] = 0, 0, 0, 0, 0
    end
  end
end

-- Statuses and COREs, behind a head.
local reply = { pack('<I6', nowMs) }
local replied = 1
local spinUsed, apiUsed, net = {}, {}, {}
for i = 1, partnerCount do
  local spinMinute, apiMinute = 0, 0
  spinUsed[i], apiUsed[i], net[i] = 0, 0, 0
  if partnerRecords[i] then
    spinMinute, spinUsed[i], apiMinute, apiUsed[i], net[i] = unpackStruct(PARTNER_FORMAT, partnerRecords[i])
  end
  if spinMinute ~= minute then spinUsed[i] = 0 end
  if apiMinute ~= minute then apiUsed[i] = 0 end
  replied = replied + 1
  reply[replied] = pack('<I4I4', spinUsed[i], apiUsed[i])
end

-- Ids of ledger entries: ms (41 bits), cell (8), seq (14), never going back even where the clock does.
local idMs, seq, totalEntries, totalBytes = nowMs, -1, 0, 0
if cell[2] then
  local lastMs, lastSeq = unpackStruct('<I6I2', cell[2])
  if #cell[2] > 8 then
    totalEntries, totalBytes = unpackStruct(TOTALS_FORMAT, cell[2], 9)
  end
  if lastMs >= nowMs then
    idMs, seq = lastMs, lastSeq
  end
end
local bookedEntries, bookedBytes = 0, 0
if cell[3] then
  bookedEntries, bookedBytes = unpackStruct(TOTALS_FORMAT, cell[3], 9)
end
local isFull = totalEntries - bookedEntries >= tonumber(ARGV[6]) or totalBytes - bookedBytes >= tonumber(ARGV[7])
local cellBits = tonumber(ARGV[2]) * 16384
local idHigh, idLow = floor(idMs / 1024), (idMs % 1024) * 4194304 + cellBits
local function nextLow()
  seq = seq + 1
  if seq > SEQ_MAX then
    idMs, seq = idMs + 1, 0
    idHigh, idLow = floor(idMs / 1024), (idMs % 1024) * 4194304 + cellBits
  end
  return idLow + seq
end

-- Decide each spin in the order of arrival; repeats within the batch see each other. A player's state is read from its
-- record when its first spin is judged, and then kept here.
local balance, entries, previousLow, previousHigh, createdAt = {}, {}, {}, {}, {}
local playerCore, touched, touchedCount = {}, {}, 0
local newlyBound, newlyBoundCount = {}, 0
local records, recordCount, pieces = {}, 0, 0
local dealtGames = {}
local position = spinsAt + 1
for _ = 1, spinCount do
  local kind, deny, partner, game, player, request, fingerprint, playerLength, requestLength, tailAt =
    unpackStruct('<BBI2I2I2I2c10I2I2', batch, position)
  position = tailAt + playerLength + requestLength
  local result
  local core = NO_CORE
  if kind == 3 then
    if apiUsed[partner] >= apiLimit[partner] then
      result = LIMITED
    else
      apiUsed[partner] = apiUsed[partner] + 1
      result = COUNTED
    end
  elseif spinUsed[partner] >= spinLimit[partner] and kind ~= 4 then
    result = LIMITED
  else
    if kind ~= 4 then spinUsed[partner] = spinUsed[partner] + 1 end
    local boundTo = request > 0 and bound[request]
    if kind == 2 then
      result = COUNTED
    elseif boundTo then
      if sub(boundTo, CORE_BYTES + 1) == fingerprint then
        result, core = REPLAY, sub(boundTo, 1, CORE_BYTES)
      else
        result = CONFLICT
      end
    elseif deny ~= 0 then
      result = DENIED
    elseif poolSize[game] > 0 and nextIndex[game] >= poolSize[game] then
      result = CLOSED
    elseif isFull then
      result = OUTBOX_FULL
    else
      local before = balance[player]
      local isNew = false
      if not before then
        if stored[player] then
          local _
          previousLow[player], previousHigh[player], _, before, entries[player], createdAt[player] =
            unpackStruct(PLAYER_FORMAT, stored[player])
          balance[player] = before
        else
          isNew, before = true, opening[partner]
        end
      end
      local stake, payoutMax = wager[game], gameMaxPayout[game]
      if enforce[partner] == 1 and before < stake then
        result = INSUFFICIENT
      elseif funding[partner] >= 0 and funding[partner] - net[partner] < payoutMax then
        result = FUNDING
      elseif before > MONEY_MAX - payoutMax or before < stake - MONEY_MAX then
        result = OVERFLOW
      else
        local index = nextIndex[game]
        if index >= queueEnd[game] then
          result = (queueEnd[game] == 0 or poolSize[game] > 0) and NO_BLOCK or EXHAUSTED
        else
          -- The outcome at the game's counter. A stretch of the block is read at once: what the batch wants, or enough for
          -- the next batches, where a game has few spins in each.
          local at = chunk[game] and (index - chunkFrom[game]) * 2 + 1
          if not at or at > #chunk[game] then
            local key = prefix .. 'block:' .. gameIds[game] .. ':' .. string.format('%.0f', blockFrom[game])
            if index >= blockEnd[game] then
              key = prefix .. 'block:' .. gameIds[game] .. ':' .. string.format('%.0f', blockEnd[game])
              local length = floor(call('STRLEN', key) / 2)
              blockFrom[game], blockEnd[game] = blockEnd[game], blockEnd[game] + length
            end
            local first = (index - blockFrom[game]) * 2
            local count = wanted[game] > READ_AHEAD and wanted[game] or READ_AHEAD
            chunk[game] = call('GETRANGE', key, first, first + count * 2 - 1)
            chunkFrom[game] = index
            at = 1
          end
          local low, high = byte(chunk[game], at, at + 1)
          local code = high and low + high * 256
          if not code or code >= payoutCount[game] then
            result = NO_BLOCK
          else
            local payout = unpackStruct('<i8', batch, payoutsAt[game] + code * 8 + 1)
            if isNew then
              local text = players[player]
              local openingLow = nextLow()
              records[pieces + 1] =
                pack('<c19i8I4I4I2i8I4I4I4I2I2', OPENING_HEAD, before, openingLow, idHigh, 0, before, 0, 0, 1, #text, 0)
              records[pieces + 2] = text
              pieces, recordCount = pieces + 2, recordCount + 1
              entries[player], previousLow[player], previousHigh[player] = 1, openingLow, idHigh
              createdAt[player] = idMs
            end
            local after = before - stake + payout
            local entryLow, count = nextLow(), entries[player] + 1
            local record = pack('<I6i8I4I4I2i8I4I4I4', index, payout, entryLow, idHigh, code, after,
              previousLow[player], previousHigh[player], count)
            core = sub(record, 15, 14 + CORE_BYTES)
            records[pieces + 1], records[pieces + 2] = spinHead[game], record
            records[pieces + 3] = sub(batch, tailAt - 4, position - 1)
            pieces, recordCount = pieces + 3, recordCount + 1
            if not playerCore[player] then
              touchedCount = touchedCount + 1
              touched[touchedCount] = player
            end
            balance[player], entries[player], playerCore[player] = after, count, core
            previousLow[player], previousHigh[player] = entryLow, idHigh
            net[partner] = net[partner] + payout - stake
            nextIndex[game] = index + 1
            dealtGames[game] = true
            if index + 1 == blockEnd[game] then
              readyBlocks[game] = readyBlocks[game] - 1
            end
            if request > 0 then
              local value = core .. fingerprint
              bound[request] = value
              newlyBound[newlyBoundCount + 1], newlyBound[newlyBoundCount + 2] = requestIds[request], value
              newlyBoundCount = newlyBoundCount + 2
            end
            result = DEALT
          end
        end
      end
    end
  end
  reply[replied + 1], reply[replied + 2] = result, core
  replied = replied + 2
end

-- Write. The stream comes first: it is the only write that Redis itself could refuse (an id that is not the newest).
if recordCount > 0 then
  local entry = concat(records)
  call('XADD', KEYS[5], string.format('%.0f-%d', idMs, seq), 'b', entry, 't', pack(TOTALS_FORMAT, totalEntries, totalBytes))
  totalEntries, totalBytes = totalEntries + recordCount, totalBytes + #entry
end
local values = {}
for i = 1, partnerCount do
  values[2 * i - 1] = partnerIds[i]
  values[2 * i] = pack(PARTNER_FORMAT, minute, spinUsed[i], minute, apiUsed[i], net[i])
end
call('HSET', KEYS[2], unpack(values))
reply = concat(reply)
if recordCount > 0 then
  values = {}
  for i = 1, touchedCount do
    local player = touched[i]
    values[2 * i - 1] = players[player]
    values[2 * i] = pack('<c18I4I6', playerCore[player], entries[player], createdAt[player])
  end
  call('HSET', KEYS[3], unpack(values))
  values = {}
  local count = 0
  for game in pairs(dealtGames) do
    -- A batch may have wanted more than it dealt: not all of what is left is kept.
    local ahead = (nextIndex[game] - chunkFrom[game]) * 2 + 1
    values[count + 1] = gameIds[game]
    values[count + 2] =
      pack(GAME_FORMAT, nextIndex[game], queueEnd[game], blockFrom[game], blockEnd[game], readyBlocks[game])
      .. sub(chunk[game], ahead, ahead + READ_AHEAD * 2 - 1)
    count = count + 2
  end
  call('HSET', KEYS[4], unpack(values))
  if newlyBoundCount > 0 then
    call('HSET', idemKey, unpack(newlyBound))
  end
  call('HSET', KEYS[1], 'last', pack(LAST_FORMAT, idMs, seq, totalEntries, totalBytes), ARGV[4], opId .. reply)
else
  call('HSET', KEYS[1], ARGV[4], opId .. reply)
end
return reply
