--[[
Blocks or unblocks a player. Postgres has the status and counts its changes. In Redis the status is a flag in
the player's record. The script is atomic. A change that arrives after a newer one has no effect.

KEYS[1]  to KEYS[5], ARGV[1] to ARGV[7]: as for every cell command, include/cell.lua. The reply is not stored.

ARGV[8]  "<partner id>:<playerId>"
ARGV[9]  1: blocked; 0: not blocked
ARGV[10] number of the change, higher than that of every earlier change of the player, u32

Reply    status u8 (src/engine/redis/statuses.ts): DEALT, PLAYER_UNKNOWN
Errors   EPOCH: include/cell.lua; AWAY: include/notAway.lua
]]
-- include: library
local awayPartner = sub(ARGV[8], 1, find(ARGV[8], ':', 1, true) - 1)
-- include: notAway
-- include: layouts/statuses
-- include: playerFlags
local player, flags, change = ARGV[8], tonumber(ARGV[9]), tonumber(ARGV[10])
local record = call('HGET', KEYS[3], player)
if not record then
  return PLAYER_UNKNOWN
end
if #record > PLAYER_BYTES then
  local knownFlags, known = unpackStruct(PLAYER_STATUS_FORMAT, record, PLAYER_BYTES + 1)
  if known >= change then
    return DEALT
  end
  -- All flags of the player other than isBlocked are kept.
  flags = flags + knownFlags - (isBlocked(sub(record, PLAYER_BYTES + 1)) and 1 or 0)
end
local status = pack(PLAYER_STATUS_FORMAT, flags, change)
local changed = sub(record, 1, PLAYER_BYTES) .. status .. sub(record, PLAYER_BYTES + #status + 1)
call('HSET', KEYS[3], player, changed)
return DEALT
