--[[
Adjusts a player's balance, once for each intent and requestId. The script is atomic. All reads and checks
come before the first write, and no write after the first can fail. An adjustment does not count against a
rate limit window and does not change a partner's net result. A player that does not exist is created with its
opening.

KEYS[1]  to KEYS[5], ARGV[1] to ARGV[7]: as for every cell command, include/cell.lua. The reply is not stored.

ARGV[8]  number of the intent, higher than that of every earlier adjustment
ARGV[9]  "<partner id>:<playerId>"
ARGV[10] amount in micro-USD, -9e15..9e15
ARGV[11] opening balance of the partner's players, micro-USD
ARGV[12] 1: a debit below zero is refused
ARGV[13] 16-byte requestId hash
ARGV[14] 10-byte fingerprint of player and amount
ARGV[15] requestId

Reply    INTENT_REPLY (include/intents.lua); statuses (src/engine/redis/statuses.ts): DEALT, CONFLICT, LAPSED,
         INSUFFICIENT_BALANCE, OVERFLOW, OUTBOX_FULL
Errors   EPOCH: include/cell.lua; AWAY: include/notAway.lua
]]
local intent, amount = tonumber(ARGV[8]), tonumber(ARGV[10])
local opening, enforces = tonumber(ARGV[11]), ARGV[12] == '1'
local fingerprint, requestId = ARGV[14], ARGV[15]
local playerNames, requestKeys = { ARGV[9] }, { ARGV[13] }
-- include: library
local awayPartner = sub(ARGV[9], 1, find(ARGV[9], ':', 1, true) - 1)
-- include: notAway
-- include: players
local refusedField = 'refusedAdjustment'
-- include: intents
-- include: refuse
local decided = decidedEarlier(intent, fingerprint)
if decided then
  return decided
end

-- An adjustment has only one player, so the player's position in the lists of the call is 1.
local player = 1
local before
-- include: loadPlayer
local isNew = not before
if isNew then before = opening end
local refusal = refuse(nil, false, before, max(-amount, 0), max(amount, 0), enforces, -1, 0)
if refusal then
  return refuseIntent(refusal, intent)
end

if isNew then
  -- include: openPlayer
end
-- An adjustment gets no entry number of its own, but the number of the player's entry before it. A player's
-- spins are thus numbered without gaps.
local text = pack(ENTRY_TEXT_FORMAT, #playerNames[1], #requestId) .. playerNames[1] .. requestId
local head, index, credit, code, balance, core =
  pack(ENTRY_HEAD_FORMAT, ADJUSTMENT_ENTRY, 0, 0), 0, amount, 0, before + amount, nil
-- inline: bookEntry
newlyBound, newlyBoundCount = { requestKeys[1], core .. fingerprint }, 2

-- From here on the script only writes.
-- include: writeEntries
call('HSET', KEYS[1], 'last', newLast)
return intentReply(DEALT, core)
