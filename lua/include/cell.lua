-- Begins a cell command, in the same way for every command that CellClient sends: its keys and first
-- arguments, the check of the epoch, the stored reply of an operation, and the clock. Gives `cellPrefix`,
-- `operationField`, `operationId`, `nowMs`, and the cell's fields `last` and `booked`.
--
-- An included file is inserted once, where it is first included. Code that is needed in several places is
-- inlined there. A function would cost each call of the script about 0.1 us per captured local, and further
-- time for each of its calls.
--
-- KEYS[1]  {cN}:cell      hash    epoch; last: LAST; booked: BOOKED; op:<slot>: newest operation id of each
--                                 slot of a front end, with its reply; communal: present if games of the cell
--                                 have a communal progressive; segments: SEGMENTS, absent if the cell was
--                                 never opened; format: newest data format that the cell may hold
--                                 (claimCell.lua); away: partners that have left the cell, or have come back
--                                 (setAway.lua)
-- KEYS[2]  {cN}:partners  hash    partner id -> PARTNER
-- KEYS[3]  {cN}:players   hash    "<partner id>:<playerId>" -> PLAYER
-- KEYS[4]  {cN}:games     hash    game id -> GAME
-- KEYS[5]  {cN}:outbox    stream  one stream entry per call; b: its ledger entries, in order; t: TOTALS
--                                 before it; k: keys of the requestIds of a batch's spins, in order
--
-- ARGV[1]  epoch that the caller expects
-- ARGV[2]  cell number, 0..255
-- ARGV[3]  watermark of the caller's request-id filters, an entry id as low u32 and high u32; empty: none
-- ARGV[4]  maximum number of ledger entries in the outbox
-- ARGV[5]  maximum size of the outbox in bytes. At either maximum no entry is added; a batch that begins
--          below it may end above it.
-- ARGV[6]  field of the caller's newest operation in KEYS[1], "op:<slot>"; empty: the reply is not stored
-- ARGV[7]  id of this operation, u64, higher than earlier ids in its field. A call with the stored id is
--          answered with the stored reply and changes nothing. Empty if the reply is not stored.
--
-- ARGV     fourth from the end: number of the newest move that the caller knows of the command's partner; 0:
--          none. A batch has this number for each of its partners.
-- ARGV     third from the end: newest entry of the cell that the caller has answered under this epoch,
--          MOMENT; empty: none
-- ARGV     second from the end: clock of the caller, in ms since the Unix epoch
-- ARGV     last: maximum difference of the caller's clock and of the newest entry from the clock of this
--          server, in ms; 0: not checked. With a clock that has jumped, entries would be on the wrong day.
--
-- Errors   LACKS: the cell does not have the answered entry, because a replica without it was promoted.
--          Nothing was done.
--          CLOCK <ms>: the clocks differ by this time. Nothing was done.
--          FORMAT <format>: the cell may hold data that this build does not support. Nothing was done.
--          EPOCH <epoch>: the cell has another epoch or none. Nothing was done.
--          STALE: the field has a higher operation id. This call did nothing.
-- include: records
-- include: epoch
local cellPrefix = sub(KEYS[1], 1, -5)
local operationField, operationId = ARGV[6], ARGV[7]
local cell = call(
  'HMGET', KEYS[1], 'epoch', 'last', 'booked', operationField, 'communal', 'segments', 'away', 'format'
)
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
    -- WAIT must wait for the stored reply, too. From Redis 7.2 on, WAIT returns immediately on a connection
    -- that has written nothing, so the stored reply is written again.
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
