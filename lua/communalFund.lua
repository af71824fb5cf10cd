--[[
Changes the budget of a game's communal progressive, once for each intent and requestId. Atomic; all reads and checks come
before the first write, and no write after the first can fail.

KEYS[1]  to KEYS[5], ARGV[1] to ARGV[7]: as for every cell command, include/cell.lua. The reply is not stored.

ARGV[8]  game id
ARGV[9]  number of the intent, greater than that of every intent before with this requestId
ARGV[10] amount, micro-USD, of either sign
ARGV[11] 16-byte requestId hash
ARGV[12] 10-byte fingerprint of the amount
ARGV[13] partner id

What an intent comes to is decided once and kept, as an adjustment's (adjust.lua): BOUND, whose balance is the budget after
it, or REFUSED.

Reply    status u8, whether an earlier call decided it u8, CORE (zeros where nothing was done).
         Statuses (include/statuses.lua): DEALT, CONFLICT, SHORT (more than there is), OVERFLOW, OUTBOX_FULL,
         NO_BLOCK (the game has none).
Errors   EPOCH: include/cell.lua; AWAY: include/notAway.lua
]]
local requestKeys = { ARGV[11] }
local gameId, intent, amount, fingerprint = ARGV[8], tonumber(ARGV[9]), tonumber(ARGV[10]), ARGV[12]
local awayPartner = ARGV[13]
-- include: notAway
-- include: statuses
-- include: idempotency
-- include: notes
-- include: communalRecords
local boundTo = bound[1]
if boundTo and #boundTo == REFUSED_BYTES then
  local status, refusedIntent = unpackStruct(REFUSED_FORMAT, boundTo)
  if intent <= refusedIntent then
    return char(status, 1) .. NO_CORE
  end
elseif boundTo then
  if sub(boundTo, CORE_BYTES + 1, BOUND_BYTES) == fingerprint then
    return DEALT .. '\1' .. sub(boundTo, 1, CORE_BYTES)
  end
  return CONFLICT .. '\1' .. NO_CORE
end
local stored = call('HGET', cellPrefix .. 'communal', gameId)
if not stored then
  return NO_BLOCK .. '\0' .. NO_CORE
end
local pot = readPot(stored)
pot.budget = pot.budget + amount
local refusal
if isOutboxFull then
  refusal = OUTBOX_FULL
elseif pot.budget < 0 then
  refusal = SHORT
elseif pot.budget > MONEY_MAX then
  refusal = OVERFLOW
end
if refusal then
  call('HSET', idemKey, requestKeys[1], pack(REFUSED_FORMAT, byte(refusal), intent))
  return refusal .. '\0' .. NO_CORE
end
local core = addNote(tonumber(gameId), pot.partner, stateNote(pot, 3, intent)) .. pack('<I2i8', 0, pot.budget)

-- Write.
-- include: writeStream
call('HSET', idemKey, requestKeys[1], core .. fingerprint)
call('HSET', cellPrefix .. 'communal', gameId, potRecord(pot))
call('HSET', KEYS[1], 'last', newLast)
return DEALT .. '\0' .. core
