--[[
Books an adjustment of a player's balance, once for each intent and requestId. Atomic; all reads and checks come before
the first write, and no write after the first can fail. It counts against no window and touches no partner's net.
A player that is not known is made, with its opening.

What an intent comes to is decided once and kept: done (BOUND) or refused (REFUSED). So a call that comes late, after its
intent was refused to another call and has been withdrawn, does nothing any more.

KEYS[1]  to KEYS[5], ARGV[1] to ARGV[7]: as for every cell command, include/cell.lua. The reply is not stored.

ARGV[8]  number of the intent, greater than that of every intent before with this requestId
ARGV[9]  "<partner id>:<playerId>"
ARGV[10] amount, micro-USD, -9e15..9e15
ARGV[11] opening balance of the partner's players, micro-USD
ARGV[12] 1: no debit below zero
ARGV[13] 16-byte requestId hash
ARGV[14] 10-byte fingerprint of player and amount
ARGV[15] requestId

Reply    status u8, whether an earlier call decided it u8, CORE (zeros where nothing was booked).
         Statuses (include/statuses.lua): DEALT, CONFLICT, INSUFFICIENT, OVERFLOW, OUTBOX_FULL.
Errors   EPOCH: include/cell.lua; AWAY: include/notAway.lua
]]
local intent, amount, opening, enforces = tonumber(ARGV[8]), tonumber(ARGV[10]), tonumber(ARGV[11]), ARGV[12] == '1'
local fingerprint, requestId = ARGV[14], ARGV[15]
local playerNames, requestKeys = { ARGV[9] }, { ARGV[13] }
-- include: library
local awayPartner = sub(ARGV[9], 1, find(ARGV[9], ':', 1, true) - 1)
-- include: notAway
-- include: statuses
-- include: players
-- include: idempotency

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

-- The place of the only player.
local player = 1
local before
-- include: loadPlayer
local isNew = not before
if isNew then before = opening end
local after = before + amount
local refusal
if isOutboxFull then
  refusal = OUTBOX_FULL
elseif enforces and amount < 0 and after < 0 then
  refusal = INSUFFICIENT
elseif after > MONEY_MAX or after < -MONEY_MAX then
  refusal = OVERFLOW
end
if refusal then
  call('HSET', idemKey, requestKeys[1], pack(REFUSED_FORMAT, byte(refusal), intent))
  return refusal .. '\0' .. NO_CORE
end

if isNew then
  -- include: openPlayer
end
-- It takes no number: it bears that of the entry before it, so that a player's spins are numbered without a gap.
local text = pack('<I2I2', #playerNames[1], #requestId) .. playerNames[1] .. requestId
local head, index, credit, code, balance, core = '\3' .. rep('\0', 12), 0, amount, 0, after, nil
-- inline: bookEntry
newlyBound, newlyBoundCount = { requestKeys[1], core .. fingerprint }, 2

-- Write.
-- include: writeEntries
call('HSET', KEYS[1], 'last', newLast)
return DEALT .. '\0' .. core
