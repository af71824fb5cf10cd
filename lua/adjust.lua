--[[
Books an adjustment of a player's balance, once for each intent and requestId. Atomic; all reads and checks come before
the first write, and no write after the first can fail. It counts against no window and touches no partner's net.

What an intent comes to is decided once and kept: done (BOUND) or refused (REFUSED). So a call that comes late, after its
intent was refused to another call and has been withdrawn, does nothing any more.

KEYS[1]  {cN}:cell      hash    epoch; last: LAST; booked: BOOKED
KEYS[2]  {cN}:players   hash    "<partner id>:<playerId>" -> PLAYER; a player that is not known is made, with its opening
KEYS[3]  {cN}:outbox    stream  b: the ledger entries (an opening, the adjustment), in order; t: TOTALS before them
computed {cN}:idem:<period>     hash, 16-byte hash of partner and requestId -> BOUND or REFUSED; the current period's is
                                written, the current and the one before are read. No spin has the same hash.

ARGV[1]  epoch that the caller believes in
ARGV[2]  cell number, 0..255
ARGV[3]  length of an idempotency period, seconds
ARGV[4]  ledger entries that may wait in the outbox, and
ARGV[5]  their bytes: while it holds as much, nothing is booked
ARGV[6]  number of the intent, greater than that of every intent before with this requestId
ARGV[7]  "<partner id>:<playerId>"
ARGV[8]  amount, micro-USD, -9e15..9e15
ARGV[9]  opening balance of the partner's players, micro-USD
ARGV[10] 1: no debit below zero
ARGV[11] 16-byte requestId hash
ARGV[12] 10-byte fingerprint of player and amount
ARGV[13] requestId

Reply    status u8, whether an earlier call decided it u8, CORE (zeros where nothing was booked).
         Statuses: src/redis/records.ts, SPIN_STATUS: dealt, conflict, insufficientBalance, overflow, outboxFull.
Errors   EPOCH <epoch>: the cell is at another epoch, or none; nothing was done.
]]
-- include: records
local floor, sub, char = math.floor, string.sub, string.char
local pack, unpackStruct = struct.pack, struct.unpack
local call = redis.call

local DONE, CONFLICT, INSUFFICIENT, OVERFLOW, OUTBOX_FULL = 0, 2, 5, 10, 11
local NO_CORE = string.rep('\0', CORE_BYTES)
local MONEY_MAX = 9e15
local SEQ_MAX = 16383

local cell = call('HMGET', KEYS[1], 'epoch', 'last', 'booked')
if cell[1] ~= ARGV[1] then
  return redis.error_reply('EPOCH ' .. (cell[1] or 'none'))
end

local intent, player, amount = tonumber(ARGV[6]), ARGV[7], tonumber(ARGV[8])
local idem, fingerprint, requestId = ARGV[11], ARGV[12], ARGV[13]
local time = call('TIME')
local second = tonumber(time[1])
local nowMs = second * 1000 + floor(tonumber(time[2]) / 1000)

-- By the newest entry where the clock went back: what was bound in a later period must be found.
local idMs, seq, totalEntries, totalBytes = nowMs, -1, 0, 0
local newestSecond = 0
if cell[2] then
  local lastMs, lastSeq = unpackStruct('<I6I2', cell[2])
  if #cell[2] > 8 then
    totalEntries, totalBytes = unpackStruct(TOTALS_FORMAT, cell[2], 9)
  end
  newestSecond = floor(lastMs / 1000)
  if lastMs >= nowMs then
    idMs, seq = lastMs, lastSeq
  end
end
local period = floor((second > newestSecond and second or newestSecond) / tonumber(ARGV[3]))
local prefix = sub(KEYS[1], 1, -5) .. 'idem:'
local idemKey = prefix .. period
local bound = call('HGET', idemKey, idem) or call('HGET', prefix .. (period - 1), idem)
if bound and #bound == REFUSED_BYTES then
  local status, refused = unpackStruct(REFUSED_FORMAT, bound)
  if intent <= refused then
    return char(status, 1) .. NO_CORE
  end
elseif bound then
  if sub(bound, CORE_BYTES + 1) == fingerprint then
    return char(DONE, 1) .. sub(bound, 1, CORE_BYTES)
  end
  return char(CONFLICT, 1) .. NO_CORE
end

local stored = call('HGET', KEYS[2], player)
local before, entries, previousId, createdAt = tonumber(ARGV[9]), 1, nil, nil
if stored then
  local _, code
  _, _, code, before, entries = unpackStruct('<I4I4I2i8I4', stored)
  previousId, createdAt = sub(stored, 1, 8), sub(stored, 23, 28)
end
local bookedEntries, bookedBytes = 0, 0
if cell[3] then
  bookedEntries, bookedBytes = unpackStruct(TOTALS_FORMAT, cell[3], 9)
end
local after = before + amount
local refusal
if totalEntries - bookedEntries >= tonumber(ARGV[4]) or totalBytes - bookedBytes >= tonumber(ARGV[5]) then
  refusal = OUTBOX_FULL
elseif ARGV[10] == '1' and amount < 0 and after < 0 then
  refusal = INSUFFICIENT
elseif after > MONEY_MAX or after < -MONEY_MAX then
  refusal = OVERFLOW
end
if refusal then
  call('HSET', idemKey, idem, pack(REFUSED_FORMAT, refusal, intent))
  return char(refusal, 0) .. NO_CORE
end

-- Ids of ledger entries as in spin.lua: ms (41 bits), cell (8), seq (14), never going back.
local cellBits = tonumber(ARGV[2]) * 16384
local function newCore(balance)
  seq = seq + 1
  if seq > SEQ_MAX then
    idMs, seq = idMs + 1, 0
  end
  return pack(CORE_FORMAT, (idMs % 1024) * 4194304 + cellBits + seq, floor(idMs / 1024), 0, balance)
end
local function record(kind, credit, core, previous, request)
  return kind .. string.rep('\0', 18) .. pack('<i8', credit) .. core .. previous
    .. pack('<I4I2I2', entries, #player, #request) .. player .. request
end
local entry, recordCount = '', 1
if not stored then
  local openingCore = newCore(before)
  entry, recordCount = record('\2', before, openingCore, string.rep('\0', 8), ''), 2
  previousId, createdAt = sub(openingCore, 1, 8), pack('<I6', idMs)
end
-- It takes no number: it bears that of the entry before it, so that a player's spins are numbered without a gap.
local core = newCore(after)
entry = entry .. record('\3', amount, core, previousId, requestId)

-- Write. The stream comes first: it is the only write that Redis itself could refuse (an id that is not the newest).
call('XADD', KEYS[3], string.format('%.0f-%d', idMs, seq), 'b', entry, 't', pack(TOTALS_FORMAT, totalEntries, totalBytes))
call('HSET', KEYS[2], player, core .. pack('<I4', entries) .. createdAt)
call('HSET', idemKey, idem, core .. fingerprint)
call('HSET', KEYS[1], 'last', pack(LAST_FORMAT, idMs, seq, totalEntries + recordCount, totalBytes + #entry))
return char(DONE, 0) .. core
