--[[
Changes the budget of a game's communal progressive, once for each intent and requestId. The script is atomic.
All reads and checks come before the first write, and no write after the first can fail.

KEYS[1]  to KEYS[5], ARGV[1] to ARGV[7]: as for every cell command, include/cell.lua. The reply is not stored.

ARGV[8]  game id
ARGV[9]  number of the intent, higher than that of every earlier funding and version of the rules
ARGV[10] amount in micro-USD, positive or negative
ARGV[11] 16-byte requestId hash
ARGV[12] 10-byte fingerprint of the amount
ARGV[13] partner id

Reply    INTENT_REPLY (include/intents.lua), whose balance is the budget after the change; statuses
         (src/engine/redis/statuses.ts): DEALT, CONFLICT, LAPSED, SHORT_BUDGET (the budget is too small),
         OVERFLOW, OUTBOX_FULL, NO_BLOCK (the game has no communal progressive)
Errors   EPOCH: include/cell.lua; AWAY: include/notAway.lua
]]
local requestKeys = { ARGV[11] }
local gameId, intent, amount, fingerprint = ARGV[8], tonumber(ARGV[9]), tonumber(ARGV[10]), ARGV[12]
local awayPartner = ARGV[13]
-- include: notAway
local refusedField = 'refusedCommunal'
-- include: intents
-- include: notes
-- include: communalRecords
local decided = decidedEarlier(intent, fingerprint)
if decided then
  return decided
end
local stored = call('HGET', cellPrefix .. 'communal', gameId)
if not stored then
  return intentReply(NO_BLOCK, NO_CORE)
end
local pot = readPot(stored)
pot.budget = pot.budget + amount
local refusal
if isOutboxFull then
  refusal = OUTBOX_FULL
elseif pot.budget < 0 then
  refusal = SHORT_BUDGET
elseif pot.budget > MONEY_MAX then
  refusal = OVERFLOW
end
if refusal then
  return refuseIntent(refusal, intent)
end
local noteId = addNote(COMMUNAL_NOTE_ENTRY, tonumber(gameId), pot.partner, stateNote(pot, BY_FUNDING, intent))
local core = pack(CORE_OF_ID_FORMAT, noteId, 0, pot.budget)

-- From here on the script only writes.
-- include: writeStream
call('HSET', idemKey, requestKeys[1], core .. fingerprint)
call('HSET', cellPrefix .. 'communal', gameId, potRecord(pot))
call('HSET', KEYS[1], 'last', newLast)
return intentReply(DEALT, core)
