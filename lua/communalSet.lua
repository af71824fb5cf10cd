--[[
Puts the rules of a game's communal progressive into force, once for each version. The script is atomic. All
reads and checks come before the first write, and no write after the first can fail.

KEYS[1]  to KEYS[5], ARGV[1] to ARGV[7]: as for every cell command, include/cell.lua. The reply is not stored.

ARGV[8]  game id
ARGV[9]  version, higher than every earlier version of this game
ARGV[10] POT_RULES and its tiers
ARGV[11] 1: the counter is reset to 0
ARGV[12] partner id
ARGV[13] number of the intent, higher than that of every earlier funding and version of the rules

Reply    status u8 (src/engine/redis/statuses.ts: DEALT, SUPERSEDED, LAPSED, OUTBOX_FULL), POT_STATE.
         DEALT is also the reply if this version is already in force, SUPERSEDED if a later one is; nothing
         was done then.
Errors   EPOCH: include/cell.lua; AWAY: include/notAway.lua
]]
local gameId, version, rules, intent = ARGV[8], tonumber(ARGV[9]), ARGV[10], tonumber(ARGV[13])
local awayPartner = ARGV[12]
-- include: notAway
local refusedField, requestKeys = 'refusedCommunal', {}
-- include: intents
-- include: notes
-- include: communalRecords
local stored = call('HGET', cellPrefix .. 'communal', gameId)
local state = stored and sub(stored, 1, POT_STATE_BYTES) or pack(POT_STATE_FORMAT, 0, 0, 0, 0)
local pot = readPot(state .. rules)
if pot.version >= version then
  return (pot.version == version and DEALT or SUPERSEDED) .. sub(stored, 1, POT_STATE_BYTES)
end
if isLapsed(intent) then
  return LAPSED .. sub(potRecord(pot), 1, POT_STATE_BYTES)
end
if isOutboxFull then
  refuseIntent(OUTBOX_FULL, intent)
  return OUTBOX_FULL .. sub(potRecord(pot), 1, POT_STATE_BYTES)
end
pot.version = version
if ARGV[11] == '1' then pot.progress = 0 end
if pot.enabled then pot.stateFlags = REMEMBERS_PLAYERS end
addNote(COMMUNAL_NOTE_ENTRY, tonumber(gameId), pot.partner, stateNote(pot, BY_RULES, version))

-- From here on the script only writes.
-- include: writeStream
call('HSET', cellPrefix .. 'communal', gameId, potRecord(pot))
call('HSET', KEYS[1], 'last', newLast, 'communal', '1')
return DEALT .. sub(potRecord(pot), 1, POT_STATE_BYTES)
