-- Begins a cell command, the same way for each that CellClient sends: its keys and first arguments, the check of the
-- epoch, the stored reply of an operation, the clock. Gives `cellPrefix`, `operationField`, `operationId`, `nowMs`, and the
-- cell's fields `last` and `booked`.
--
-- An include runs where it stands, once; what runs in several places is inlined there. A function costs each call of the
-- script about 0.1 us for every local that it captures, and each call of it more.
--
-- KEYS[1]  {cN}:cell      hash    epoch; last: LAST; booked: BOOKED; op:<slot>: id of the newest operation of each slot
--                                 of a front end, and its reply; communal: games of the cell have a communal progressive;
--                                 segments: SEGMENTS, absent while the cell was never opened;
--                                 format: the newest that the cell may hold (claimCell.lua)
--                                 away: partners that have left the cell, or have come back (setAway.lua)
-- KEYS[2]  {cN}:partners  hash    partner id -> PARTNER
-- KEYS[3]  {cN}:players   hash    "<partner id>:<playerId>" -> PLAYER
-- KEYS[4]  {cN}:games     hash    game id -> GAME
-- KEYS[5]  {cN}:outbox    stream  one entry a call; b: its ledger entries, in order; t: TOTALS before it; k: keys of the requestIds
--                                 of a batch's spins among them, in order
--
-- ARGV[1]  epoch that the caller believes in
-- ARGV[2]  cell number, 0..255
-- ARGV[3]  id of the entry up to which the caller's filters of request ids reach, as low u32 and high u32; empty: none
-- ARGV[4]  ledger entries that may wait in the outbox, and
-- ARGV[5]  their bytes: while it holds as much, nothing is booked (a batch that begins below may end above)
-- ARGV[6]  field of the caller's newest operation in KEYS[1], "op:<slot>"; empty: the reply is not stored
-- ARGV[7]  id of this operation, u64: greater than those before in its field; the same again is answered with the
--          stored reply and changes nothing. Empty where the reply is not stored.
--
-- ARGV     last but one: the caller's clock, ms since the epoch; last: by how many ms it and the newest entry may differ from
--          this server's clock. Entries of a clock that jumped would lie in days that are not theirs. 0: not checked.
--
-- ARGV     last but three: number of the newest move that the caller knows of the partner whose command it is; 0: none. A batch has that
--          of each of its partners.
--
-- ARGV     last but two: the newest entry of the cell that the caller has answered under this epoch, MOMENT; empty: none.
--
-- Errors   LACKS: the cell has not that entry. A replica has taken over that lacks it. Nothing was done.
--          CLOCK <ms>: they differ by so much; nothing was done.
--          FORMAT <format>: the cell may hold data that this build does not read. Nothing was done.
--          EPOCH <epoch>: the cell is at another epoch, or none; nothing was done.
--          STALE: an operation with a greater id is known in the field; nothing was done now.
-- include: records
-- include: epoch
local cellPrefix = sub(KEYS[1], 1, -5)
local operationField, operationId = ARGV[6], ARGV[7]
local cell = call('HMGET', KEYS[1], 'epoch', 'last', 'booked', operationField, 'communal', 'segments', 'away', 'format')
if cell[1] ~= ARGV[1] then
  return epochError(cell[1])
end
if cell[8] and tonumber(cell[8]) > FORMAT_NEWEST then
  return redis.error_reply('FORMAT ' .. cell[8])
end
local last, booked, stored = cell[2], cell[3], cell[4]
if stored then
  local newest, this = unpackStruct('<I8', stored), unpackStruct('<I8', operationId)
  if this == newest then
    -- Written again: from Redis 7.2 on WAIT waits for nothing on a connection that has written nothing.
    call('HSET', KEYS[1], operationField, stored)
    return sub(stored, 9)
  end
  if this < newest then
    return redis.error_reply('STALE a newer operation of this front end is known')
  end
end
if ARGV[#ARGV - 2] ~= '' then
  local answeredMs, answeredSequence = unpackStruct(MOMENT_FORMAT, ARGV[#ARGV - 2])
  local lastMs, lastSequence = 0, 0
  if last then lastMs, lastSequence = unpackStruct(MOMENT_FORMAT, last) end
  if lastMs < answeredMs or (lastMs == answeredMs and lastSequence < answeredSequence) then
    return redis.error_reply('LACKS an entry that was answered')
  end
end
local time = call('TIME')
-- Milliseconds since the epoch.
local nowMs = tonumber(time[1]) * 1000 + floor(tonumber(time[2]) / 1000)
do
  local callerMs, skewMax = tonumber(ARGV[#ARGV - 1]), tonumber(ARGV[#ARGV])
  local skew = nowMs - callerMs
  if last and skew >= -skewMax then
    local lastMs = unpackStruct(MOMENT_FORMAT, last)
    if lastMs > nowMs then skew = lastMs - callerMs end
  end
  if skewMax > 0 and (skew > skewMax or skew < -skewMax) then
    return redis.error_reply(format('CLOCK %.0f', skew))
  end
end
