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
ARGV[8]  the batch (little endian):
           partners u16, games u16, spins u16, offset of the first spin u32
           each partner: id u32, spin limit u32, API limit u32, opening balance i64, funding i64 (-1: none),
                         enforce the balance u8
           each game:    id u32, wager i64, largest payout i64, offset of its payouts u32, number of its payouts u16,
                         tickets of its pool u32 (a raffle; 0: a slot game, whose queue has no end)
           payouts:      i64 per outcome code (micro-USD)
           each spin:    kind u8 (1 deal, 2 count a spin request, 3 count an API request, 4 deal what is counted already),
                         deny u8 (0 none; else the spin is refused unless its requestId is bound),
                         partner u16, game u16 (places in the lists above), 16-byte requestId hash, 10-byte fingerprint,
                         length of player u16, length of requestId u16, "<partner id>:<playerId>", requestId

Reply    time ms u48; per partner: spin count u32 and API count u32 of the window before this batch; per spin:
         status u8 and CORE (zeros where nothing was dealt). Statuses: src/redis/records.ts, SPIN_STATUS.
Errors   EPOCH <epoch>: the cell is at another epoch, or none; nothing was done.
         STALE: a batch with a greater operation id is known; nothing was done now.
]]
-- include: records
local floor, byte, sub, char = math.floor, string.byte, string.sub, string.char
local pack, unpackStruct, concat = struct.pack, struct.unpack, table.concat
local call = redis.call

local DEALT, REPLAY, CONFLICT, LIMITED, DENIED = '\0', '\1', '\2', '\3', '\4'
local INSUFFICIENT, FUNDING, EXHAUSTED, NO_BLOCK, COUNTED, OVERFLOW = '\5', '\6', '\7', '\8', '\9', '\10'
local OUTBOX_FULL, CLOSED = '\11', '\12'
local NO_CORE = string.rep('\0', CORE_BYTES)
local MONEY_MAX = 9e15
local SEQ_MAX = 16383

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
local partnerCount, gameCount, spinCount, position = unpackStruct('<I2I2I2I4', batch)
position = position + 1

-- Partners and games of the batch.
local partnerIds, spinLimit, apiLimit, opening, funding, enforce = {}, {}, {}, {}, {}, {}
local offset = 11
for i = 1, partnerCount do
  local id
  id, spinLimit[i], apiLimit[i], opening[i], funding[i], enforce[i], offset = unpackStruct('<I4I4I4i8i8B', batch, offset)
  partnerIds[i] = id
end
local gameIds, wager, gameMaxPayout, payoutsAt, payoutCount, poolSize, spinHead = {}, {}, {}, {}, {}, {}, {}
for i = 1, gameCount do
  spinHead[i] = '\1' .. sub(batch, offset, offset + 11)
  gameIds[i], wager[i], gameMaxPayout[i], payoutsAt[i], payoutCount[i], poolSize[i], offset =
    unpackStruct('<I4i8i8I4I2I4', batch, offset)
end

-- Parse the spins; collect what must be read.
local kind, deny, partnerOf, gameOf, idemOf, fingerprintOf, playerOf, tailAt, tailEnd = {}, {}, {}, {}, {}, {}, {}, {}, {}
local players, playerCount, seenPlayer = {}, 0, {}
local idems, idemCount, seenIdem = {}, 0, {}
local wanted = {}
for i = 1, spinCount do
  local playerLength, requestLength, idem
  kind[i], deny[i], partnerOf[i], gameOf[i], idem, fingerprintOf[i], playerLength, requestLength =
    unpackStruct('<BBI2I2c16c10I2I2', batch, position)
  local playerAt = position + 36
  tailAt[i] = position + 32
  position = playerAt + playerLength + requestLength
  tailEnd[i] = position - 1
  if kind[i] == 1 or kind[i] == 4 then
    if requestLength > 0 then
      idemOf[i] = idem
      if not seenIdem[idem] then
        seenIdem[idem] = true
        idemCount = idemCount + 1
        idems[idemCount] = idem
      end
    end
    if deny[i] == 0 then
      local player = sub(batch, playerAt, playerAt + playerLength - 1)
      playerOf[i] = player
      if not seenPlayer[player] then
        seenPlayer[player] = true
        playerCount = playerCount + 1
        players[playerCount] = player
      end
      local game = gameOf[i] + 1
      wanted[game] = (wanted[game] or 0) + 1
    end
  end
end

-- Read.
local partnerRecords = call('HMGET', KEYS[2], unpack(partnerIds))
local prefix = sub(KEYS[1], 1, -5)
-- By the newest entry where the clock went back: what was bound in a later period must be found.
local newestSecond = cell[2] and floor(unpackStruct('<I6', cell[2]) / 1000) or 0
local period = floor((second > newestSecond and second or newestSecond) / tonumber(ARGV[3]))
local idemKey = prefix .. 'idem:' .. period
local bound = {}
if idemCount > 0 then
  local current = call('HMGET', idemKey, unpack(idems))
  local earlier = call('HMGET', prefix .. 'idem:' .. (period - 1), unpack(idems))
  for i = 1, idemCount do
    bound[idems[i]] = current[i] or earlier[i] or nil
  end
end
local stored = {}
if playerCount > 0 then
  local values = call('HMGET', KEYS[3], unpack(players))
  for i = 1, playerCount do
    stored[players[i]] = values[i]
  end
end
local nextIndex, queueEnd, blockFrom, blockEnd, readyBlocks = {}, {}, {}, {}, {}
if gameCount > 0 then
  local values = call('HMGET', KEYS[4], unpack(gameIds))
  for i = 1, gameCount do
    if values[i] then
      nextIndex[i], queueEnd[i], blockFrom[i], blockEnd[i], readyBlocks[i] = unpackStruct(GAME_FORMAT, values[i])
    else
      nextIndex[i], queueEnd[i], blockFrom[i], blockEnd[i], readyBlocks[i] = 0, 0, 0, 0, 0
    end
  end
end

local head = { pack('<I6', nowMs) }
local spinUsed, apiUsed, net = {}, {}, {}
for i = 1, partnerCount do
  local spinMinute, apiMinute = 0, 0
  spinUsed[i], apiUsed[i], net[i] = 0, 0, 0
  if partnerRecords[i] then
    spinMinute, spinUsed[i], apiMinute, apiUsed[i], net[i] = unpackStruct(PARTNER_FORMAT, partnerRecords[i])
  end
  if spinMinute ~= minute then spinUsed[i] = 0 end
  if apiMinute ~= minute then apiUsed[i] = 0 end
  head[i + 1] = pack('<I4I4', spinUsed[i], apiUsed[i])
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

-- Decide each spin in the order of arrival; repeats within the batch see each other.
local status, core = {}, {}
local chunk, chunkFrom = {}, {}
local balance, entries, previousId, createdAt, playerCore, touched, touchedCount = {}, {}, {}, {}, {}, {}, 0
local newlyBound, newlyBoundCount = {}, 0
local records, recordCount = {}, 0
local dealtGames = {}
for i = 1, spinCount do
  local partner = partnerOf[i] + 1
  local result
  local resultCore = NO_CORE
  if kind[i] == 3 then
    if apiUsed[partner] >= apiLimit[partner] then
      result = LIMITED
    else
      apiUsed[partner] = apiUsed[partner] + 1
      result = COUNTED
    end
  elseif spinUsed[partner] >= spinLimit[partner] and kind[i] ~= 4 then
    result = LIMITED
  else
    if kind[i] ~= 4 then spinUsed[partner] = spinUsed[partner] + 1 end
    local idem = idemOf[i]
    local boundTo = idem and bound[idem]
    if kind[i] == 2 then
      result = COUNTED
    elseif boundTo then
      if sub(boundTo, CORE_BYTES + 1) == fingerprintOf[i] then
        result, resultCore = REPLAY, sub(boundTo, 1, CORE_BYTES)
      else
        result = CONFLICT
      end
    elseif deny[i] ~= 0 then
      result = DENIED
    elseif poolSize[gameOf[i] + 1] > 0 and nextIndex[gameOf[i] + 1] >= poolSize[gameOf[i] + 1] then
      result = CLOSED
    elseif isFull then
      result = OUTBOX_FULL
    else
      local game, player = gameOf[i] + 1, playerOf[i]
      local isNew = false
      if not balance[player] then
        if stored[player] then
          local _, code
          _, _, code, balance[player], entries[player] = unpackStruct('<I4I4I2i8I4', stored[player])
          previousId[player], createdAt[player] = sub(stored[player], 1, 8), sub(stored[player], 23, 28)
        else
          isNew = true
          balance[player], entries[player] = opening[partner], 0
        end
      end
      local before = balance[player]
      if enforce[partner] == 1 and before < wager[game] then
        result = INSUFFICIENT
      elseif funding[partner] >= 0 and funding[partner] - net[partner] < gameMaxPayout[game] then
        result = FUNDING
      elseif before > MONEY_MAX - gameMaxPayout[game] or before < wager[game] - MONEY_MAX then
        result = OVERFLOW
      else
        local index = nextIndex[game]
        if index >= queueEnd[game] then
          result = (queueEnd[game] == 0 or poolSize[game] > 0) and NO_BLOCK or EXHAUSTED
        else
          -- The outcome at the game's counter; the wanted stretch of the block is read once.
          local at = chunk[game] and (index - chunkFrom[game]) * 2 + 1
          if not at or at > #chunk[game] then
            local key = prefix .. 'block:' .. gameIds[game] .. ':' .. string.format('%.0f', blockFrom[game])
            if index >= blockEnd[game] then
              key = prefix .. 'block:' .. gameIds[game] .. ':' .. string.format('%.0f', blockEnd[game])
              local length = floor(call('STRLEN', key) / 2)
              blockFrom[game], blockEnd[game] = blockEnd[game], blockEnd[game] + length
            end
            local first = (index - blockFrom[game]) * 2
            chunk[game] = call('GETRANGE', key, first, first + wanted[game] * 2 - 1)
            chunkFrom[game] = index
            at = 1
          end
          local low, high = byte(chunk[game], at, at + 1)
          local code = high and low + high * 256
          if not code or code >= payoutCount[game] then
            result = NO_BLOCK
          else
            local payoutAt = payoutsAt[game] + code * 8 + 1
            local payout = unpackStruct('<i8', batch, payoutAt)
            if isNew then
              local openingCore = pack(CORE_FORMAT, nextLow(), idHigh, 0, before)
              recordCount = recordCount + 1
              records[recordCount] = concat({
                '\2', string.rep('\0', 18), pack('<i8', before), openingCore, string.rep('\0', 8),
                pack('<I4I2I2', 1, #player, 0), player })
              entries[player], previousId[player] = 1, sub(openingCore, 1, 8)
              createdAt[player] = pack('<I6', idMs)
            end
            local after = before - wager[game] + payout
            resultCore = pack(CORE_FORMAT, nextLow(), idHigh, code, after)
            local count = entries[player] + 1
            recordCount = recordCount + 1
            records[recordCount] = spinHead[game] .. pack('<I6', index) .. sub(batch, payoutAt, payoutAt + 7) .. resultCore
              .. previousId[player] .. pack('<I4', count) .. sub(batch, tailAt[i], tailEnd[i])
            if not playerCore[player] then
              touchedCount = touchedCount + 1
              touched[touchedCount] = player
            end
            balance[player], entries[player], playerCore[player] = after, count, resultCore
            previousId[player] = sub(resultCore, 1, 8)
            net[partner] = net[partner] + payout - wager[game]
            nextIndex[game] = index + 1
            dealtGames[game] = true
            if index + 1 == blockEnd[game] then
              readyBlocks[game] = readyBlocks[game] - 1
            end
            if idem then
              local value = resultCore .. fingerprintOf[i]
              bound[idem] = value
              newlyBound[newlyBoundCount + 1], newlyBound[newlyBoundCount + 2] = idem, value
              newlyBoundCount = newlyBoundCount + 2
            end
            result = DEALT
          end
        end
      end
      if isNew and result ~= DEALT then
        balance[player] = nil
      end
    end
  end
  status[i], core[i] = result, resultCore
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
local reply = head
local length = #head
for i = 1, spinCount do
  reply[length + 1], reply[length + 2] = status[i], core[i]
  length = length + 2
end
reply = concat(reply)
if recordCount > 0 then
  values = {}
  for i = 1, touchedCount do
    local player = touched[i]
    values[2 * i - 1] = player
    values[2 * i] = playerCore[player] .. pack('<I4', entries[player]) .. createdAt[player]
  end
  call('HSET', KEYS[3], unpack(values))
  values = {}
  local count = 0
  for game in pairs(dealtGames) do
    values[count + 1] = gameIds[game]
    values[count + 2] =
      pack(GAME_FORMAT, nextIndex[game], queueEnd[game], blockFrom[game], blockEnd[game], readyBlocks[game])
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
